"""A lower bound of every series' exponentially weighted moving average, taken anew every few rows.

Of values that are not negative any part of a weighted sum is a bound of the whole. So the window is held in parts of a
few rows each: the bound is made of those that will still be in the window for a while, with the weights that they will
have then, and holds until that time.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from healthwatch.promql.again import Again
from healthwatch.promql.blocks import Blocks
from healthwatch.promql.limits import Limits
from healthwatch.promql.moving import Span
from healthwatch.promql.training import alpha
from healthwatch.promql.vector import Indices
from healthwatch.stream.ring import POSITIVE, Floats
from healthwatch.stream.ticks import TICKS_PER_STEP

_SUMS, _MOST_ROWS = 10, 32
"""In about how many sums a window is held, and the most rows of one."""

_ROUNDING = 1e-12
"""Many times what rounding can do to a sum of so few values, none of them negative."""

AtAge: TypeAlias = Callable[[int], float]
"""The weight of a value that is so many ticks old; that of the newest is 1."""


@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """Some rows from `start` on add at least `factor * values` to the sum, of series with gaps `gapped * values`."""

    start: int
    values: Floats
    factor: float
    gapped: float


class Parts(Protocol):
    """What a bound is made of."""

    def rebuild(self, span: Span) -> None: ...

    def move(self, span: Span) -> None: ...

    def missing(self, span: Span) -> int:
        """How many rows must come for the next part to be whole."""

    def whole(self, span: Span, first: int, until: int) -> Sequence[Part]:
        """Those with all of their rows, none of these before row `first`, as of a tick."""


@dataclass(frozen=True, slots=True, eq=False)
class Sum:
    """The weighted sum of rows [start, end) of every series, as of the tick of the last row; nothing for a gap."""

    start: int
    end: int
    tick: int
    total: Floats


class Sums:
    """Parts of a bound that is close to the average."""

    def __init__(self, at_age: AtAge) -> None:
        self._at_age = at_age
        self._sums: list[Sum] = []

    def rebuild(self, span: Span) -> None:
        self._sums = []
        self.move(span)

    def move(self, span: Span) -> None:
        """Add up the new rows, as far as they fill whole sums."""
        ring, rows = span.part.ring, self._rows(span)
        for start in range(self._end(span), span.now - rows + 1, rows):
            tick = ring.tick(start + rows - 1)
            total, scaled = np.zeros(len(span.part.columns)), np.empty(len(span.part.columns))
            for row in range(start, start + rows):
                total += np.multiply(_finite(span, row), self._at_age(tick - ring.tick(row)), out=scaled)
            self._sums.append(Sum(start, start + rows, tick, total))

    def missing(self, span: Span) -> int:
        return self._rows(span) - (span.now - self._end(span))

    def _end(self, span: Span) -> int:
        """The row with which the next sum begins."""
        return max(self._sums[-1].end, span.start) if self._sums else span.start

    def _rows(self, span: Span) -> int:
        return min(max(span.count // _SUMS, 1), _MOST_ROWS)

    def whole(self, span: Span, first: int, until: int) -> Sequence[Part]:
        self._sums = [each for each in self._sums if each.start >= span.start]
        factors = [(each, self._at_age(until - each.tick)) for each in self._sums if each.start >= first]
        return [Part(each.start, each.total, factor, factor) for each, factor in factors]


class LeastValues:
    """Parts of a bound that is far below the average and costs next to nothing: no value of a block is below its least.

    A series that is not ragged has up to `Span.gaps` gaps, and these may be those rows of a block that weigh most.
    """

    def __init__(self, at_age: AtAge, blocks: Blocks) -> None:
        self._at_age, self._blocks = at_age, blocks

    def rebuild(self, span: Span) -> None:
        """The blocks are those of others, too, and have been made."""

    def move(self, span: Span) -> None:
        """They have moved."""

    def missing(self, span: Span) -> int:  # noqa: ARG002 - the blocks have seen it
        return self._blocks.missing

    def whole(self, span: Span, first: int, until: int) -> Sequence[Part]:
        parts = []
        for block in self._blocks.whole(first):
            weights = [self._at_age(until - tick) for tick in span.part.ring.ticks(block.start, block.end)]
            factor = sum(weights)
            parts.append(Part(block.start, block.least, factor, max(factor - span.gaps * max(weights), 0.0)))
        return parts


class Smoothing:
    """The screen of `ema_ratio`: the divisor is at most the average."""

    def __init__(self, window: int, blocks: Blocks | None = None) -> None:
        """With `blocks` the bound is made of their least values, else of sums."""
        self._decay = 1 - alpha(window)
        self._parts: Parts = Sums(self._at_age) if blocks is None else LeastValues(self._at_age, blocks)
        self._limits = Limits()
        self._negatives: NDArray[np.int32] = np.zeros(0, np.int32)
        self._weight = 0.0  # the sum of the weights of all rows, whether or not they hold a finite sample
        self._holds = (0, 0, 0.0)  # the row that must still be in the window, the last tick, the sum of weights
        self._again = Again(0)

    def limit(self, bound: float) -> Floats:
        return self._limits.of(bound)

    def rebuild(self, span: Span) -> None:
        size = len(span.part.columns)
        self._again = Again(size)
        self._negatives = np.zeros(size, np.int32)
        self._limits.take(None, np.zeros(size))
        self._note_negatives(span, range(0), range(span.start, span.now))
        self._parts.rebuild(span)
        self._measure(span)

    def move(self, span: Span, leaving: range, entering: range) -> None:
        self._note_negatives(span, leaving, entering)
        self._weigh(span, leaving, entering)
        self._parts.move(span)
        row, tick, weight = self._holds
        if span.start > row or span.part.ring.tick(span.now - 1) > tick or self._weight > weight:
            self._measure(span)

    def closer(self, span: Span, which: Indices, bound: float) -> Floats | None:
        """Series that come again are bounded by all of their rows."""
        again = self._again.note(self._limits.near(span, which, bound))
        if again is None:
            return None
        self._bound_closely(span, again)
        return self._limits.of(bound)[which]

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

    def _measure(self, span: Span) -> None:
        """The bound that holds until the row before the next part is whole."""
        ring, newest = span.part.ring, span.part.ring.tick(span.now - 1)
        ahead = min(self._parts.missing(span) - 1, span.count - 1)
        until = newest + newest - ring.tick(span.now - 1 - ahead)
        ages = (newest - span.ticks()) / TICKS_PER_STEP
        self._weight = float((self._decay**ages).sum())
        held = self._parts.whole(span, span.start + ahead, until) or self._parts.whole(span, span.start, until)
        weight = self._weight * (1 + _ROUNDING)
        self._limits.take(None, self._average(span, held, weight / (1 - _ROUNDING)))
        self._holds = held[0].start if held else span.now, until, weight
        again = self._again.turn()
        if again is not None:
            self._bound_closely(span, again)

    def _average(self, span: Span, held: Sequence[Part], weight: float) -> Floats:
        if not held:
            return np.zeros(len(span.part.columns))
        average = held[0].values * (held[0].factor / weight)
        scaled = np.empty(len(average))
        for part in held[1:]:
            average += np.multiply(part.values, part.factor / weight, out=scaled)
        which = span.irregular
        if len(which):
            average[which] = sum(part.values[which] * (part.gapped / weight) for part in held)
        proven = np.isfinite(average)
        if span.part.ring.worst_state(span.start, span.now) != POSITIVE:
            proven &= self._negatives == 0
        if not proven.all():
            average[~proven] = 0.0
        average[span.ragged] = 0.0  # more gaps than the parts allow for, and they may soon be ragged no longer
        return average

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

    def _at_age(self, ticks: int) -> float:
        return math.pow(self._decay, ticks / TICKS_PER_STEP)


def _finite(span: Span, row: int) -> Floats:
    values = span.row(row)
    return values if span.finite(row) else np.where(np.isfinite(values), values, 0.0)
