"""Windows that move with the history: what a step adds and takes away, so that nothing is computed twice.

Everything here is a shortcut. It never decides what the plain functions of `training` would not.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from healthwatch.promql.select import Part, Selection
from healthwatch.promql.training import MIN_ROWS, Baseline
from healthwatch.promql.vector import Indices, Labels, Moment
from healthwatch.stream import History
from healthwatch.stream.ring import DENSE, FINITE, Floats, Mask

_MOST_ROWS = 60_000
"""The gaps of a longer window do not fit into their counts."""

NO_SERIES: Indices = np.zeros(0, np.intp)

TOLERATED = 8
"""A series whose gaps are more than this part of the window is told apart: bounds that hold for it exclude nobody."""

_MOST_IRREGULAR = 1 / 8
"""From this share of series with gaps on, the plain way is the faster one."""


@dataclass(slots=True, eq=False)
class Span:
    """Rows [start, now) of one metric before the row `now`.

    `irregular` are the series with a value in it that is not finite, `ragged` those with many of them, `gaps` is the
    most that any other has. Followers may hold anything for the ragged ones.
    """

    part: Part
    start: int
    now: int
    tick: int
    window: int
    irregular: Indices = field(default_factory=lambda: NO_SERIES)
    ragged: Indices = field(default_factory=lambda: NO_SERIES)
    gaps: int = 0

    @property
    def count(self) -> int:
        return self.now - self.start

    def row(self, row: int) -> Floats:
        return self.part.ring.row(row)[self.part.place]

    def ticks(self) -> NDArray[np.int64]:
        return np.array(self.part.ring.ticks(self.start, self.now), dtype=np.int64)

    def finite(self, row: int) -> bool:
        """Whether every value of a row is finite; if not all are plain, some may be finite all the same."""
        return self.part.ring.state(row) <= FINITE

    def columns(self, which: Indices) -> Floats:
        """The window of some series, a series a column."""
        return self.part.ring.columns(self.start, self.now, self.ring_columns(which))

    def blocks(self, start: int, end: int, series: slice) -> tuple[Floats, ...]:
        """Rows [start, end) of series that are neighbours, as one or two views if that is how they stand in memory."""
        place = self.part.place
        columns = place[series] if not isinstance(place, slice) else _within(place, series)
        return tuple(block[:, columns] for block in self.part.ring.blocks(start, end))

    def baseline(self, which: Indices, *, gapless: bool = False) -> Baseline:
        """What the plain functions need for some of the series."""
        now = self.row(self.now)[which]
        return Baseline(now, self.columns(which), self.ticks, self.tick, self.window, gapless)

    def ring_columns(self, which: Indices) -> Indices:
        """Where some of the series stand in the ring."""
        place = self.part.place
        return which + place.start if isinstance(place, slice) else place[which]


def _within(place: slice, series: slice) -> slice:
    return slice(place.start + series.start, place.start + series.stop)


class Follower(Protocol):
    """Something that is kept up to date with a window."""

    def rebuild(self, span: Span) -> None: ...

    def move(self, span: Span, leaving: range, entering: range) -> None: ...


@dataclass(slots=True)
class Moving:
    """The baseline of a selector: `window` ticks before its newest row, or `MIN_ROWS` rows if that is more."""

    selection: Selection
    window: int
    when: Callable[[Moment], int]
    history: History
    followers: list[Follower] = field(default_factory=list)
    span: Span | None = None
    _gaps: NDArray[np.uint16] = field(default_factory=lambda: np.zeros(0, np.uint16))
    _baseline: tuple[Span, bytes, Baseline] | None = None
    _of: tuple[Labels | None, int] = (None, -1)
    _at: tuple[int, int] = (-1, -1)

    def follow(self, follower: Follower) -> None:
        self.followers.append(follower)
        self.span = None
        self._at = (-1, -1)

    def at(self, moment: Moment) -> Span | None:
        """The span at a moment with everything up to date; None where only the plain way will do."""
        if self._at != (moment.epoch, moment.tick):
            self._at = moment.epoch, moment.tick
            self._advance(self.when(moment))
        return self.span

    def baseline(self, which: Indices) -> Baseline:
        """What the plain functions need for some of the series; several functions of a window often doubt the same."""
        key = which.tobytes()
        if self._baseline is None or self._baseline[0] is not self.span or self._baseline[1] != key:
            assert self.span is not None
            gapless = self.gapless(which) is None
            self._baseline = self.span, key, self.span.baseline(which, gapless=gapless)
        return self._baseline[2]

    def gapless(self, which: Indices) -> Mask | None:
        """Which of some series have no gap; None for all of them."""
        if self.span is None or not len(self.span.irregular):
            return None
        found = self._gaps[which] == 0
        return None if np.count_nonzero(found) == len(found) else found

    def _advance(self, tick: int) -> None:
        before, of = self.span, (self.selection.labels, self.history.changes)
        same = self._of[0] is of[0] and self._of[1] == of[1]
        self._of = of
        self.span = span = self.span_at(tick)
        if span is None:
            return
        if before is not None and same and _follows(before, span):
            leaving, entering = range(before.start, span.start), range(before.now, span.now)
            span.irregular, span.ragged, span.gaps = before.irregular, before.ragged, before.gaps
            self._mark(span, leaving, entering)
        else:
            before, leaving, entering = None, range(0), range(span.start, span.now)
            self._gaps = np.zeros(len(span.part.columns), np.uint16)
            self._mark(span, leaving, entering)
        if len(span.irregular) > _MOST_IRREGULAR * len(self._gaps):
            self.span = None  # the followers are rebuilt once there are fewer
            return
        for follower in self.followers:
            if before is None:
                follower.rebuild(span)
            else:
                follower.move(span, leaving, entering)

    def span_at(self, tick: int) -> Span | None:
        """The baseline before the newest row at a tick, gaps left out; None where only the plain way will do."""
        parts = self.selection.parts
        if len(parts) != 1:
            return None
        part = parts[0]
        now = part.newest(tick)
        if now is None:
            return None
        ring = part.ring
        start = max(min(ring.find(tick - self.window), now - MIN_ROWS), ring.first)
        if start == now or now - start > _MOST_ROWS or not (part.whole or ring.worst_state(start, now + 1) <= DENSE):
            return None
        return Span(part, start, now, ring.tick(now), self.window)

    def _mark(self, span: Span, leaving: range, entering: range) -> None:
        """Note in the span which series have gaps now that these rows went and came."""
        out, come = _unusual(span, leaving), _unusual(span, entering)
        if out or come:
            for columns in out:
                self._gaps[columns] -= 1
            for columns in come:
                self._gaps[columns] += 1
            span.irregular = (self._gaps != 0).nonzero()[0]  # far quicker than that of numbers
        elif len(leaving) == len(entering):
            return
        gaps, few = self._gaps[span.irregular], span.count // TOLERATED
        span.ragged = span.irregular[gaps > few]
        span.gaps = int(gaps[gaps <= few].max(initial=0))


def _unusual(span: Span, rows: range) -> list[Indices]:
    """Of each row that has any, the series whose value is not finite."""
    part = span.part
    unusual = [row for row in rows if part.ring.state(row) > FINITE]
    if not unusual:
        return []
    if part.whole:
        return [part.ring.unusual(row) for row in unusual]
    return [(~np.isfinite(span.row(row))).nonzero()[0] for row in unusual]


def _follows(before: Span, span: Span) -> bool:
    """Whether one span can be made from the other by rows that are still here."""
    forward = before.start <= span.start and before.now <= span.now and before.start >= span.part.ring.first
    moved = span.now - before.now + span.start - before.start
    return forward and moved <= max(before.count // 2, 4)
