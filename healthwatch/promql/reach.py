"""How far back an expression looks: what the history must keep for it."""

from __future__ import annotations

from dataclasses import dataclass, replace

from healthwatch.promql import ast
from healthwatch.promql.select import Selection
from healthwatch.stream.ticks import TICKS_PER_STEP

_EVERYTHING = -(1 << 62)


@dataclass(frozen=True, slots=True)
class Reach:
    """The earliest tick at which something is evaluated: `back` before the newest one, or a fixed one."""

    back: int = 0
    fixed: int | None = None

    def shifted(self, offset: int, at: ast.At | None) -> Reach:
        if at is None:
            return self._moved(offset)
        return Reach(fixed=_EVERYTHING if at.tick is None else at.tick - offset)

    def widened(self, window: int) -> Reach:
        return self._moved(window)

    def _moved(self, ticks: int) -> Reach:
        if self.fixed is not None:
            return replace(self, fixed=self.fixed - ticks)
        return replace(self, back=max(self.back + ticks, 0))

    def earliest(self, newest: int) -> int:
        # The ticks of a step are evaluated after all of its samples have been written.
        return newest - self.back - TICKS_PER_STEP if self.fixed is None else min(self.fixed, newest)


@dataclass(frozen=True, slots=True)
class Demand:
    """What one selector of an expression needs: a window (ticks) before its reach, and at least `rows` rows."""

    selection: Selection
    reach: Reach
    window: int
    rows: int

    def keep_from(self, newest: int) -> int:
        """The oldest tick that is still needed."""
        earliest = self.reach.earliest(newest)
        oldest = earliest - self.window
        if self.rows:
            row = self.selection.rows_back(earliest, self.rows)
            oldest = min(oldest, _EVERYTHING if row is None else row)
        return oldest
