"""A frame filled by one monitor, read back as plain dictionaries."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from healthwatch.monitors import Monitor
from healthwatch.stream.frame import Frame
from healthwatch.stream.series import SeriesTable

Samples = dict[tuple[str, int | None], dict[tuple[str, ...], float]]
Flush = Callable[[], Samples]


@pytest.fixture
def flushing() -> Callable[[Monitor], Flush]:
    """Registers a monitor and returns what flushes one step: {(metric, micro_step): {label values: sample}}."""

    def register(monitor: Monitor) -> Flush:
        monitor.register(SeriesTable())
        steps = iter(range(1, 10_000))

        def flush() -> Samples:
            frame = Frame(next(steps))
            monitor.flush(frame)
            frame.close()
            return {(column.series.metric, column.micro_step): _by_labels(column) for column in frame.columns}

        return flush

    return register


def _by_labels(column: Any) -> dict[tuple[str, ...], float]:
    return {
        tuple(value for _, value in labels): float(sample)
        for labels, sample in zip(column.series.labels, column.values, strict=True)
    }
