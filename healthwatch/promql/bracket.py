"""A lower bound of every series' moving median, for two comparisons a step.

For each series a low order statistic L of its window, and how many values of the window are below it. While these are
fewer than half the median is at least L. Where they are not, L is taken anew from the window.
"""

from __future__ import annotations

import numpy as np

from healthwatch.promql.limits import Limits, below
from healthwatch.promql.moving import Counts, Span, chunks, count_in, count_out, counts_for
from healthwatch.promql.vector import Indices
from healthwatch.stream.ring import Floats

_QUANTILE = 0.28
"""Low enough that few bounds are passed in a step, high enough to exclude nearly every series."""

_APART = 3
"""Which bounds have been passed is asked once in so many rows, of what could be passed until then: many series are
fitted together as quickly as a few.
"""

_GROWN = 1.5
"""Bounds of a window that fills are bounds of few values: from time to time all are taken anew."""


class Bracket:
    """The screen of `spike_ratio` where a breach is close to the median: the divisor is at most the median."""

    tolerant = True

    def __init__(self) -> None:
        self._limits = Limits()
        self._doubted: set[int] = set()  # at the step before
        self._rows = 0  # of the window when all bounds were taken
        self._most, self._left = -1, 0  # how many values may be below, and how many rows until that is asked again
        self._low: Floats = np.empty(0)
        self._below: Counts = np.zeros(0, np.uint8)

    def expect(self, bound: float) -> None:
        """Its limits are made alike for every bound."""

    def limit(self, bound: float) -> Floats:
        return self._limits.of(bound)

    def rebuild(self, span: Span) -> None:
        size, self._rows = len(span.part.columns), span.count
        self._low, self._below = np.empty(size), counts_for(span, 1)[0]
        self._limits.take(None, np.empty(size))
        self._ask(span)
        self._fit(span, np.arange(size))

    def move(self, span: Span, leaving: range, entering: range) -> None:
        if span.count > _GROWN * self._rows:
            self.rebuild(span)
            return
        for row in leaving:
            count_out(self._below, span.row(row) < self._low)
        for row in entering:
            count_in(self._below, span.row(row) < self._low)
        self._left -= len(entering)
        if self._left < 0 or self._most != _most_below(span):
            self._ask(span)
            passed = (self._below > self._most - self._left).nonzero()[0]
            if len(passed):
                self._fit(span, passed)

    def improve(self, span: Span, which: Indices, bound: float) -> bool:  # noqa: ARG002 - the same for every bound
        """A series whose values have risen has a bound that holds for ever and excludes little: it comes again."""
        doubted, self._doubted = self._doubted, set(which.tolist())
        again = doubted & self._doubted
        low = [each for each in again if self._below[each] < self._place(span) / 2]
        if low:
            self._fit(span, np.array(low))
        return bool(low)

    def _ask(self, span: Span) -> None:
        self._most = _most_below(span)
        self._left = min(_APART, max(self._most, 0) // 4)

    def _fit(self, span: Span, which: Indices) -> None:
        for some in chunks(span, which):
            ordered, place = span.ordered(some), self._place(span)
            low, count = ordered[:, place], below(ordered, place)
            self._low[some], self._below[some] = low, count
            self._limits.renew(some, None, np.where(count <= self._most - self._left, low, 0.0))

    def _place(self, span: Span) -> int:
        """Where L stands in the ascending window."""
        return int(_QUANTILE * (span.count - 1))


def _most_below(span: Span) -> int:
    """How many values below L leave the median of the finite ones at or above it, whatever the gaps hold."""
    return (span.count - span.gaps - 1) // 2
