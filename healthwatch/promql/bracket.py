"""A lower bound of every series' moving median, for two comparisons a step.

For each series a low order statistic L of its window, and how many values of the window are below it. While these are
fewer than half the median is at least L. Where they are not, L has to be taken anew from the window.
"""

from __future__ import annotations

import numpy as np

from healthwatch.promql.moving import Counts, Span, chunks, count_in, count_out, counts_for
from healthwatch.promql.vector import Indices
from healthwatch.stream.ring import Floats, Mask

_QUANTILE = 0.28
"""Low enough that few bounds are passed in a step, high enough to exclude nearly every series."""


class Bracket:
    """The screen of `spike_ratio`: the divisor is at most the median."""

    eager = False
    tolerant = True
    centre = None

    def __init__(self) -> None:
        self.passed: Mask = np.zeros(0, bool)
        self._low: Floats = np.empty(0)
        self._below: Counts = np.zeros(0, np.uint8)

    def divisor(self, span: Span) -> Floats:  # noqa: ARG002 - other screens need the span
        return self._low

    def rebuild(self, span: Span) -> None:
        size = len(span.part.columns)
        self._low, self._below, self.passed = np.empty(size), counts_for(span, 1)[0], np.zeros(size, bool)
        for which in chunks(span):
            self.fit(span, which)

    def move(self, span: Span, leaving: range, entering: range) -> None:
        for row in leaving:
            count_out(self._below, span.row(row) < self._low)
        for row in entering:
            count_in(self._below, span.row(row) < self._low)
        self.passed = self._below > _most_below(span)

    def fit(self, span: Span, which: Indices) -> None:
        ordered = np.sort(span.columns(which), axis=1)
        low = ordered[:, int(_QUANTILE * (span.count - 1))]
        self._low[which] = low
        below = (ordered < low[:, None]).sum(axis=1)
        self._below[which] = below
        self.passed[which] = below > _most_below(span)


def _most_below(span: Span) -> int:
    """How many values below L leave the median of the finite ones at or above it, whatever the gaps hold."""
    return (span.count - span.gaps - 1) // 2
