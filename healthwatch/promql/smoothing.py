"""A lower bound of every series' exponentially weighted moving average, kept up to date by a few array operations."""

from __future__ import annotations

import numpy as np

from healthwatch.promql.moving import Span
from healthwatch.promql.training import alpha
from healthwatch.promql.vector import Indices
from healthwatch.stream.ring import FINITE, POSITIVE, Floats
from healthwatch.stream.ticks import TICKS_PER_STEP

_REBUILD_AFTER = 100_000
_ROUNDING = 1e-10
"""More than `_REBUILD_AFTER` steps can lose, as a part of the magnitudes that were ever added."""


class Smoothing:
    """The screen of `ema_ratio`: the divisor is at most the average.

    `total` is the weighted sum of the window, `magnitude` the same of absolute values, nothing ever taken away.

    A step rounds `total` by a few parts in 1e16 of `magnitude`, which decays as slowly: so the error after n steps
    is at most some n parts in 1e16 of `magnitude`.
    """

    eager = False
    tolerant = True  # what is left out of the sum only makes the weights' sum too large
    centre = None
    passed = None

    def __init__(self, window: int) -> None:
        self._decay = 1 - alpha(window)
        self._steps = 0
        self._newest = 0
        self._total: Floats = np.empty(0)
        self._magnitude: Floats = np.empty(0)
        self._buffer: Floats = np.empty(0)

    def rebuild(self, span: Span) -> None:
        size = len(span.part.columns)
        self._total, self._magnitude, self._buffer = np.zeros(size), np.zeros(size), np.empty(size)
        self._newest = span.part.ring.tick(span.start)
        self._steps = 0
        self._add(span, range(span.start, span.now))

    def move(self, span: Span, leaving: range, entering: range) -> None:
        self._steps += len(leaving) + len(entering)
        if self._steps > _REBUILD_AFTER:
            self.rebuild(span)
            return
        self._add(span, entering)
        for row in leaving:
            weight = self._weight(self._newest - span.part.ring.tick(row))
            np.multiply(_finite(span, row), weight, out=self._buffer)
            self._total -= self._buffer

    def _add(self, span: Span, rows: range) -> None:
        for row in rows:
            tick = span.part.ring.tick(row)
            decay = self._weight(tick - self._newest)
            self._newest = tick
            values = _finite(span, row)
            self._total *= decay
            self._total += values
            self._magnitude *= decay
            if span.part.ring.state(row) == POSITIVE:
                self._magnitude += values
            else:
                np.abs(values, out=self._buffer)
                self._magnitude += self._buffer

    def _weight(self, ticks: int) -> float:
        return float(self._decay ** (ticks / TICKS_PER_STEP))

    def divisor(self, span: Span) -> Floats:
        """A lower bound of the averages, in a buffer that the next call overwrites."""
        weights = self._decay ** ((self._newest - span.ticks()) / TICKS_PER_STEP)
        np.multiply(self._magnitude, _ROUNDING, out=self._buffer)
        np.subtract(self._total, self._buffer, out=self._buffer)
        self._buffer /= weights.sum() * (1 + _ROUNDING)
        return self._buffer

    def fit(self, span: Span, which: Indices) -> None:
        """One that held something huge has lost its digits."""
        values = span.columns(which)
        finite = np.isfinite(values)
        weights = self._decay ** ((self._newest - span.ticks()) / TICKS_PER_STEP)
        held = np.where(finite, values, 0.0) * weights
        self._total[which] = held.sum(axis=1)
        self._magnitude[which] = np.abs(held).sum(axis=1)


def _finite(span: Span, row: int) -> Floats:
    values = span.row(row)
    return values if span.part.ring.state(row) <= FINITE else np.where(np.isfinite(values), values, 0.0)
