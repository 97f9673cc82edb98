"""Lower bounds of every series' moving median and median absolute deviation, for eight comparisons a step.

With A <= B <= C <= D around the middle of the window: B is at most the median while fewer than half of the values are
below it, C at least the median while fewer than half are above it. The values up to A and from D on lie at least
m = min(B - A, D - C) from the median, and while these are more than half, the median deviation is at least m.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from healthwatch.promql.limits import Limits, below, below_or_at
from healthwatch.promql.moving import Counts, Span, chunks, count_in, count_out, counts_for
from healthwatch.promql.training import MAD_SCALE, RELATIVE_FLOOR
from healthwatch.promql.vector import Indices
from healthwatch.stream.ring import Floats, Mask

_OUTER, _INNER = 0.27, 0.44
"""Where A and B are taken. Further apart they exclude more series, further from the middle they hold longer."""


class Spread:
    """The screen of `robust_zscore`: the centre is at most the median, the divisor at most that of the score."""

    tolerant = False

    def __init__(self) -> None:
        self._limits = Limits()
        self._bounds: Floats = np.empty((4, 0))  # A, B, C, D
        self._counts: Counts = np.zeros((3, 0), np.uint8)  # outside A and D, below B, above C

    def expect(self, bound: float) -> None:
        """Its limits are made alike for every bound."""

    def limit(self, bound: float) -> Floats:
        return self._limits.of(bound)

    def rebuild(self, span: Span) -> None:
        size = len(span.part.columns)
        self._bounds, self._counts = np.empty((4, size)), counts_for(span, 3)
        self._limits.take(np.empty(size), np.empty(size))
        self._fit(span, np.arange(size))

    def move(self, span: Span, leaving: range, entering: range) -> None:
        for row in leaving:
            self._count(span.row(row), count_out)
        for row in entering:
            self._count(span.row(row), count_in)
        most = (span.count - 1) // 2
        outside, below, above = self._counts
        passed = outside < span.count - most
        passed |= below > most
        passed |= above > most
        which = passed.nonzero()[0]
        if len(which):
            self._fit(span, which)

    def improve(self, span: Span, which: Indices, bound: float) -> bool:  # noqa: ARG002 - the same for every bound
        self._fit(span, which)
        return True

    def _count(self, values: Floats, change: Callable[[Counts, Mask], None]) -> None:
        first, second, third, fourth = self._bounds
        outside, below, above = self._counts
        beyond = values <= first
        beyond |= values >= fourth
        change(outside, beyond)
        change(below, values < second)
        change(above, values > third)

    def _fit(self, span: Span, which: Indices) -> None:
        for some in chunks(span, which):
            self._measure(some, span.ordered(some))

    def _measure(self, which: Indices, ordered: Floats) -> None:
        """Take the bounds of some series from their windows, a series a row."""
        count = ordered.shape[1]
        last = count - 1
        outer, inner = int(_OUTER * last), int(_INNER * last)
        first, second, third, fourth = (ordered[:, at] for at in (outer, inner, last - inner, last - outer))
        outside = below_or_at(ordered, outer) + count - below(ordered, last - outer)
        self._bounds[:, which] = first, second, third, fourth
        self._counts[0, which] = outside
        self._counts[1, which] = below(ordered, inner)
        self._counts[2, which] = count - below_or_at(ordered, last - inner)
        apart = MAD_SCALE * np.minimum(second - first, fourth - third)
        apart[outside < count - last // 2] = 0.0  # a short window, where they are too few
        self._limits.renew(which, second, np.maximum(apart, RELATIVE_FLOOR * second))
