"""What a log says of a step, gathered into frames."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import TypeAlias

import numpy as np

from healthwatch.stream import Frame, Series, SeriesTable
from healthwatch.stream.series import LabelSet

Part: TypeAlias = tuple[LabelSet, str, int]  # labels; the label that numbers the values, if any; how many they are

LATE_BY = 1  # records of the step before the one under way are late; of one further back, the training went back


class Steps:
    """Frames in the order of the log, each closed when a record of a later step comes.

    A log that goes back by more than a step, or says that a training starts, begins the next attempt. `late` counts
    the samples of steps that were closed already.
    """

    def __init__(self, table: SeriesTable) -> None:
        self.table = table
        self.attempt = 1
        self.late = 0
        self._step: int | None = None
        self._last = 0
        self._first: int | None = None  # step of this attempt
        self._time = 0.0
        self._micro_steps = 0
        self._parts: dict[tuple[str, int | None], dict[Part, Sequence[float]]] = {}
        self._series: dict[tuple[str, tuple[Part, ...]], Series] = {}
        self.ready: list[Frame] = []

    def enter(self, step: int, time: float = 0.0) -> bool:
        """Make `step` the one under way; False where it has been closed, and a sample of it is late."""
        if self._step is not None and step < self._step:
            if self._step - step <= LATE_BY:
                self.late += 1
                return False
            self.restart()
        if step != self._step:
            self._close()
            self._step = step
            self._first = step if self._first is None else self._first
        self._time = time or self._time
        return True

    def restart(self) -> None:
        """The training starts, for the first time or once more."""
        self._close()
        if self._first is not None:
            self.attempt += 1
        self._first = None

    def fail(self) -> None:
        """An error has ended the training: the step after the last one is none."""
        self._close()
        frame = Frame(self._last + 1, self.attempt, self._time)
        frame.add(self.table.register("run_failed", [{}]), 1.0)
        frame.close()
        self.ready.append(frame)
        self._first = frame.step if self._first is None else self._first

    def expect(self, micro_steps: int) -> None:
        """How many micro-steps a step has, whether or not each of them is printed."""
        self._micro_steps = micro_steps

    def add(
        self, metric: str, values: Sequence[float], labels: LabelSet = (), micro_step: int | None = None, over: str = ""
    ) -> None:
        """Samples of the step under way: one, or one for each value of the label `over`, numbered from 0."""
        self._parts.setdefault((metric, micro_step), {})[labels, over, len(values)] = values

    def take(self) -> list[Frame]:
        """The frames that have been closed since the last call."""
        ready, self.ready = self.ready, []
        return ready

    def finish(self) -> list[Frame]:
        """As `take`, with the step under way."""
        self._close()
        return self.take()

    def _close(self) -> None:
        step, self._step = self._step, None
        parts, self._parts = self._parts, {}
        if step is None or self._first is None:
            return
        self._last = step
        frame = Frame(step, self.attempt, self._time)
        for (metric, micro_step), found in parts.items():
            values = np.fromiter(chain.from_iterable(found.values()), np.float64)
            frame.add(self._series_of(metric, tuple(found)), values, micro_step)
        frame.add(self.table.register("attempt_step", [{}]), step - self._first + 1)
        seen = max((micro_step for _, micro_step in parts if micro_step is not None), default=-1) + 1
        frame.close(max(seen, self._micro_steps) or None)
        self.ready.append(frame)

    def _series_of(self, metric: str, parts: tuple[Part, ...]) -> Series:
        series = self._series.get((metric, parts))
        if series is None:
            labels = [each for part in parts for each in _labels(part)]
            series = self._series[metric, parts] = self.table.register(metric, labels)
        return series


def _labels(part: Part) -> list[dict[str, str]]:
    labels, over, size = part
    return [dict(labels) | ({over: str(number)} if over else {}) for number in range(size)]
