"""Lower bounds of every series' moving median and median absolute deviation, for eight comparisons a step.

With A <= B <= C <= D around the middle of the window: B is at most the median while fewer than half of the values are
below it, C at least the median while fewer than half are above it. The values up to A and from D on lie at least
m = min(B - A, D - C) from the median, and while these are more than half, the median deviation is at least m.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from healthwatch.promql.moving import Counts, Span, chunks, count_in, count_out, counts_for
from healthwatch.promql.training import MAD_SCALE, RELATIVE_FLOOR
from healthwatch.promql.vector import Indices
from healthwatch.stream.ring import Floats, Mask

_OUTER, _INNER = 0.27, 0.43
"""Where A and B are taken. Further apart they exclude more series, further from the middle they hold longer."""


class Spread:
    """The screen of `robust_zscore`: the centre is at most the median, the divisor at most that of the score."""

    eager = True
    tolerant = False

    def __init__(self) -> None:
        self.centre: Floats = np.empty(0)
        self.passed: Mask | None = None
        self._divisor: Floats = np.empty(0)
        self._bounds: Floats = np.empty((4, 0))  # A, B, C, D
        self._counts: Counts = np.zeros((3, 0), np.uint8)  # outside A and D, below B, above C

    def divisor(self, span: Span) -> Floats:  # noqa: ARG002 - other screens need the span
        return self._divisor

    def rebuild(self, span: Span) -> None:
        size = len(span.part.columns)
        self.centre, self._divisor, self.passed = np.empty(size), np.empty(size), None
        self._bounds, self._counts = np.empty((4, size)), counts_for(span, 3)
        for which in chunks(span):
            self.fit(span, which)

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
        self.passed = passed

    def _count(self, values: Floats, change: Callable[[Counts, Mask], None]) -> None:
        first, second, third, fourth = self._bounds
        outside, below, above = self._counts
        beyond = values <= first
        beyond |= values >= fourth
        change(outside, beyond)
        change(below, values < second)
        change(above, values > third)

    def fit(self, span: Span, which: Indices) -> None:
        ordered = np.sort(span.columns(which), axis=1)
        last = span.count - 1
        outer, inner = int(_OUTER * last), int(_INNER * last)
        first, second, third, fourth = (ordered[:, at] for at in (outer, inner, last - inner, last - outer))
        self._bounds[:, which] = first, second, third, fourth
        beyond = (ordered <= first[:, None]) | (ordered >= fourth[:, None])
        self._counts[0, which] = beyond.sum(axis=1)
        self._counts[1, which] = (ordered < second[:, None]).sum(axis=1)
        self._counts[2, which] = (ordered > third[:, None]).sum(axis=1)
        self.centre[which] = second
        apart = MAD_SCALE * np.minimum(second - first, fourth - third)
        apart[self._counts[0, which] < span.count - last // 2] = 0.0  # a short window, where they are too few
        self._divisor[which] = np.maximum(apart, RELATIVE_FLOOR * second)
        if self.passed is not None:
            self.passed[which] = False
