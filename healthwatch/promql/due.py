"""When a rule is due: at the ticks of a step at which something comes that it reads (R3)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from healthwatch.promql.select import Selection
from healthwatch.promql.vector import Indices
from healthwatch.stream import Frame, History, tick_of
from healthwatch.stream.series import Series

AT_STEP_END = frozenset(("absent", "absent_over_time", "present_over_time", "time", "stalled_seconds"))
"""Functions that say something although nothing comes."""


class Schedule:
    """The ticks of one frame after another for all rules that read the same."""

    def __init__(self, history: History, selections: Sequence[Selection], *, at_step_end: bool) -> None:
        """Rules that read no series at all are due `at_step_end`, too."""
        self._history, self._selections, self._at_step_end = history, selections, at_step_end
        self._frame: Frame | None = None
        self._ticks: tuple[int, ...] = ()
        self._micro_steps: dict[int, int | None] = {}  # by tick
        self._reading: dict[int, bool] = {}  # by the id of a series
        self._reading_of = -1

    def ticks(self, frame: Frame) -> tuple[int, ...]:
        """Those of a closed frame at which what reads is evaluated, ascending."""
        if frame is not self._frame:
            found: dict[int, int | None] = {}
            for column in frame.columns:
                if self._reads(column.series) and found.get(column.tick) is None:
                    found[column.tick] = None if column.micro_step is None else column.micro_step + 1
            if self._at_step_end:
                found.setdefault(tick_of(frame.step), None)
            self._frame, self._ticks, self._micro_steps = frame, tuple(sorted(found)), found
        return self._ticks

    def micro_step(self, tick: int) -> int | None:
        """Which micro-step (from 1) a tick of the last frame is, as far as what is read goes; None at a step's end."""
        return self._micro_steps.get(tick)

    def _reads(self, series: Series) -> bool:
        """Whether a selector matches any of the series; asked again only when the set of series has changed."""
        version = self._history.table.version
        if self._reading_of != version:
            self._reading_of = version
            self._reading.clear()
        if series.id not in self._reading:
            self._reading[series.id] = self._matches(series.metric, series.columns)
        return self._reading[series.id]

    def _matches(self, metric: str, columns: Indices) -> bool:
        parts = [part for each in self._selections if (part := each.columns_of(metric)) is not None]
        return any(part.whole or np.isin(columns, part.columns).any() for part in parts)
