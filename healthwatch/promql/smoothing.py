"""A lower bound of every series' exponentially weighted moving average, taken anew every few rows.

Of values that are not negative any part of a weighted sum is a bound of the whole. So the window is held as sums of a
few rows each, weighted towards the last of them: the bound is made of those sums that will still be in the window for
a while, with the weights that they will have then, and holds until that time.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from healthwatch.promql.again import Again
from healthwatch.promql.limits import Limits
from healthwatch.promql.moving import Span
from healthwatch.promql.training import alpha
from healthwatch.promql.vector import Indices
from healthwatch.stream.ring import POSITIVE, Floats
from healthwatch.stream.ticks import TICKS_PER_STEP

CLOSELY, LOOSELY = 10, 6
"""In about how many sums a window is held: with more of them the bound is closer, with fewer it costs less."""

_MOST_ROWS = 32
"""Of a sum."""

_ROUNDING = 1e-12
"""Many times what rounding can do to a sum of so few values, none of them negative."""


@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """The weighted sum of rows [start, end) of every series, as of the tick of the last row."""

    start: int
    end: int
    tick: int
    total: Floats


class Smoothing:
    """The screen of `ema_ratio`: the divisor is at most the average."""

    tolerant = True  # what is left out of the sum only makes the sum of the weights too large

    def __init__(self, window: int, sums: int) -> None:
        self._decay, self._sums = 1 - alpha(window), sums
        self._limits = Limits()
        self._parts: list[Part] = []
        self._negatives: NDArray[np.int32] = np.zeros(0, np.int32)
        self._weight = 0.0  # the sum of the weights of all rows, whether or not they hold a finite sample
        self._holds = (0, 0, 0.0)  # the row that must still be in the window, the last tick, the sum of weights
        self._again = Again(0)

    def expect(self, bound: float) -> None:
        """Its limits are made alike for every bound."""

    def limit(self, bound: float) -> Floats:
        return self._limits.of(bound)

    def rebuild(self, span: Span) -> None:
        size = len(span.part.columns)
        self._again = Again(size)
        self._parts, self._negatives = [], np.zeros(size, np.int32)
        self._limits.take(None, np.zeros(size))
        self._note_negatives(span, range(0), range(span.start, span.now))
        self._gather(span, span.start)
        self._measure(span)

    def move(self, span: Span, leaving: range, entering: range) -> None:
        self._note_negatives(span, leaving, entering)
        self._weigh(span, leaving, entering)
        self._gather(span, self._parts[-1].end if self._parts else span.start)
        row, tick, weight = self._holds
        if span.start > row or span.part.ring.tick(span.now - 1) > tick or self._weight > weight:
            self._measure(span)

    def improve(self, span: Span, which: Indices, bound: float) -> bool:
        """Series that come again are bounded by all of their rows."""
        again = self._again.note(self._limits.near(span, which, bound))
        if again is None:
            return False
        self._bound_closely(span, again)
        return True

    def _note_negatives(self, span: Span, leaving: range, entering: range) -> None:
        """Keep count of the negative values; a series that has one has no bound from now on."""
        for rows, sign in ((leaving, -1), (entering, 1)):
            for row in rows:
                if span.part.ring.state(row) != POSITIVE:
                    negative = (span.row(row) < 0).nonzero()[0]
                    self._negatives[negative] += sign
                    if sign > 0 and len(negative):
                        self._limits.renew(negative, None, np.zeros(len(negative)))

    def _weigh(self, span: Span, leaving: range, entering: range) -> None:
        ring = span.part.ring
        newest = ring.tick(span.now - 1)
        for row in entering:
            self._weight = self._weight * self._at_age(ring.tick(row) - ring.tick(row - 1)) + 1.0
        for row in leaving:
            self._weight -= self._at_age(newest - ring.tick(row))

    def _gather(self, span: Span, begin: int) -> None:
        """Add up the rows from `begin` on, as far as they fill whole parts."""
        ring, rows = span.part.ring, self._rows(span)
        for start in range(begin, span.now - rows + 1, rows):
            tick = ring.tick(start + rows - 1)
            total, scaled = np.zeros(len(span.part.columns)), np.empty(len(span.part.columns))
            for row in range(start, start + rows):
                total += np.multiply(_finite(span, row), self._at_age(tick - ring.tick(row)), out=scaled)
            self._parts.append(Part(start, start + rows, tick, total))

    def _measure(self, span: Span) -> None:
        """The bound that holds until the next part is whole."""
        ring, newest = span.part.ring, span.part.ring.tick(span.now - 1)
        ahead = min(self._rows(span), span.count - 1)
        until = newest + newest - ring.tick(span.now - 1 - ahead)
        ages = (newest - span.ticks()) / TICKS_PER_STEP
        self._weight = float((self._decay**ages).sum())
        self._parts = [part for part in self._parts if part.start >= span.start]
        held = [part for part in self._parts if part.start >= span.start + ahead] or self._parts
        weight, scaled = self._weight * (1 + _ROUNDING), np.empty(len(span.part.columns))
        average = np.zeros(len(scaled))
        for part in held:
            average += np.multiply(part.total, self._at_age(until - part.tick) / weight, out=scaled)
        average[(self._negatives > 0) | ~np.isfinite(average)] = 0.0
        average *= 1 - _ROUNDING
        self._limits.take(None, average)
        self._holds = held[0].start if held else span.now, until, weight
        again = self._again.turn()
        if again is not None:
            self._bound_closely(span, again)

    def _bound_closely(self, span: Span, which: Indices) -> None:
        """The same bound from all rows of some series, the newest ones too."""
        row, until, weight = self._holds
        held = replace(span, start=min(row, span.now - 1))
        values = held.columns(which)
        ages = (until - held.ticks()) / TICKS_PER_STEP
        values *= (self._decay**ages / (weight * (1 + _ROUNDING)))[:, None]
        average = np.nansum(values, axis=0) * (1 - _ROUNDING)
        average[(self._negatives[which] > 0) | ~np.isfinite(average)] = 0.0
        self._limits.renew(which, None, np.fmax(average, self._limits.divisor[which]))

    def _rows(self, span: Span) -> int:
        """How many rows make a part."""
        return min(max(span.count // self._sums, 1), _MOST_ROWS)

    def _at_age(self, ticks: int) -> float:
        return math.pow(self._decay, ticks / TICKS_PER_STEP)


def _finite(span: Span, row: int) -> Floats:
    values = span.row(row)
    return values if span.finite(row) else np.where(np.isfinite(values), values, 0.0)
