"""Limits from sorted windows, of which a step sorts only some: the series take turns.

What is known from some rows holds whatever a few more rows bring, and whichever of the rest leave the window.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from healthwatch.promql.bounds import Bound, Kind
from healthwatch.promql.limits import LimitOf, Limits, limit_of
from healthwatch.promql.moving import NO_SERIES, Span
from healthwatch.promql.vector import Indices
from healthwatch.stream.ring import Floats

_FEWEST, _MOST_TURNS = 1024, 32
"""Fewer series than that are sorted as quickly as one, and with more turns nothing would be won."""

_MOST_VALUES = 1 << 20
"""Are sorted at a time, which does not take much memory."""

_WORTH_SORTING = 200
"""Of fewer doubtful series the function itself is computed as quickly as closer bounds."""

_GROWN, _SHRUNK = 1.5, 1 / 1.5
"""Bounds of a window that fills are bounds of few values: from time to time all are taken anew. In one that holds far
fewer rows than before, as where steps are logged more seldom, turns would be too far apart to know anything.
"""


@dataclass(slots=True)
class Turn:
    """Series that are sorted together. Their bounds are those of rows [start, end) and of `unknown` others."""

    series: slice
    start: int = 0
    end: int = 0
    unknown: int = 0

    def over(self, span: Span) -> bool:
        """Whether the bounds do not hold for the window as it is now."""
        return span.start > self.start or span.count > self.end - self.start + self.unknown


class Turns:
    """The screen of a function whose centre and divisor `bound` bounds."""

    def __init__(self, bound: Bound, part: int, limit: LimitOf = limit_of) -> None:
        """A series has its turn once in this part of a window. Later, and bounds exclude fewer; sooner, and more is
        sorted.
        """
        self._bound, self._part, self._limit_of = bound, part, limit
        self._limits = Limits(limit)
        self._turns: list[Turn] = []
        self._apart = 1  # rows from one turn of a series to its next
        self._rows = 0  # of the window when the turns were dealt

    def limit(self, bound: float) -> Floats:
        return self._limits.of(bound)

    def rebuild(self, span: Span) -> None:
        size, self._rows = len(span.part.columns), span.count
        self._apart = max(span.count // self._part, 1)
        turns = min(self._apart, _MOST_TURNS, max(size // _FEWEST, 1))
        edges = [size * number // turns for number in range(turns + 1)]
        self._turns = [Turn(slice(*pair)) for pair in pairwise(edges)]
        centre, divisor = self._bound((np.zeros((1, size)),), np.float64, NO_SERIES, 0)
        self._limits.take(centre, divisor)
        self._deal(span, self._turns)

    def move(self, span: Span, leaving: range, entering: range) -> None:  # noqa: ARG002 - a turn knows its rows
        if not _SHRUNK * self._rows <= span.count <= _GROWN * self._rows:
            self.rebuild(span)
            return
        self._deal(span, [turn for turn in self._turns if turn.over(span)])

    def closer(self, span: Span, which: Indices, bound: float) -> Floats | None:
        """Limits from all of the window."""
        if len(which) < _WORTH_SORTING:
            return None
        return self._limit_of(*self._bound((span.columns(which),), _kind(span), NO_SERIES, 0), bound)

    def _deal(self, span: Span, turns: Sequence[Turn]) -> None:
        """Take turns that are over at a time, as after a pause, so that the next ones are not."""
        for number, turn in enumerate(turns, start=1):
            self._take(span, turn, -(-self._apart * number // len(turns)))

    def _take(self, span: Span, turn: Turn, rows: int) -> None:
        """Bounds that hold for so many rows to come."""
        turn.start, turn.end, turn.unknown = _staying(span, rows), span.now, rows
        count = turn.end - turn.start
        step = max(_MOST_VALUES // count, 1)
        for begin in range(turn.series.start, turn.series.stop, step):
            series = slice(begin, min(begin + step, turn.series.stop))
            blocks = span.blocks(turn.start, turn.end, series)
            self._limits.renew(series, *self._bound(blocks, _kind(span), _within(span.irregular, series), rows))


def _kind(span: Span) -> Kind:
    return np.float32 if span.part.ring.narrow else np.float64


def _staying(span: Span, rows: int) -> int:
    """The first row that will still be in the window when so many have come, if they come as the last so many did."""
    ring = span.part.ring
    later = span.tick + span.tick - ring.tick(max(span.now - rows, span.start))
    return max(min(ring.find(later - span.window), span.start + rows, span.now - 1), span.start)


def _within(which: Indices, series: slice) -> Indices:
    """Those of some series, in ascending order, that are in the slice, counted from its start."""
    found = which[which.searchsorted(series.start) : which.searchsorted(series.stop)]
    return found - series.start if len(found) else found
