"""What the tests of readers share."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, TypeAlias

from healthwatch.readers import Options
from healthwatch.readers.mindformers import FORMAT
from healthwatch.stream import Frame, SeriesTable

LOGS = "mindformers-logs"
HEALTHY = (
    "healthy.2.0.0.info.log",
    "healthy.head.info.log",
    "moe_expert_bias_head.2.1.0.info.log",
    "norms_filtered.head.stdout.log",
)
FAULTY = ("diverge_lr.head.info.log", "moe_imbalance.head.stdout.log", "nan_injected.head.info.log")

Samples: TypeAlias = dict[tuple[Any, ...], float]

FILE = "[INFO] 2026-11-29 19:00:29,868 [mindformers/pynative/tools/monitor.py:121] _flush_logger: "
CONSOLE = "2026-11-29 19:00:29,868 - mindformers/out/log[mindformers/pynative/tools/monitor.py:121] - INFO - "


def frames_of(lines: Iterable[str], options: Options = Options()) -> list[Frame]:
    reader = FORMAT.open(SeriesTable(), options)
    return [*(frame for line in lines for frame in reader.feed(line)), *reader.finish()]


def samples(frames: Sequence[Frame]) -> list[Samples]:
    """Of each frame (step, attempt and micro-step among the keys), so that what was read can be compared."""
    return [
        {
            (frame.step, frame.attempt, column.tick, column.series.metric, labels): value
            for column in frame.columns
            for labels, value in zip(column.series.labels, column.values.tolist(), strict=True)
        }
        for frame in frames
    ]
