"""Functions of our own: a sample against the baseline of its own recent past (rule-semantics, section 2).

`now` is a series' sample in the selector's newest row; the baseline is its finite samples before that row.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from healthwatch.promql.sums import add_rows
from healthwatch.promql.vector import nothing
from healthwatch.promql.window import Counts
from healthwatch.stream.ring import Floats, Mask
from healthwatch.stream.ticks import TICKS_PER_STEP

MIN_ROWS = 16
"""A baseline reaches back this many rows where its window holds fewer: sparse logs have one row in `[128]`."""

MAD_SCALE = 1.4826
"""Median absolute deviation times this is the standard deviation of a Gaussian."""

RELATIVE_FLOOR = 1e-3
"""No deviation counts as smaller than this part of the centre."""


@dataclass(eq=False)
class Baseline:
    """One column a series: `now` (NaN: none), and the values before it.

    `tick` is that of `now`, `window` how far back the rule looks; `ticks` are those of the rows of `values`. `gapless`
    says that every value is known to be a finite sample.
    """

    now: Floats
    values: Floats
    row_ticks: Callable[[], NDArray[np.int64]]
    tick: int
    window: int
    gapless: bool = False

    @cached_property
    def ticks(self) -> NDArray[np.int64]:
        return self.row_ticks()

    @cached_property
    def finite(self) -> Mask:
        """Which values are finite samples."""
        return np.isfinite(self.values)

    @cached_property
    def complete(self) -> bool:
        """Whether every value is a finite sample."""
        return self.gapless or bool(self.finite.all())

    @cached_property
    def counts(self) -> Counts:
        if self.complete:
            return np.full(len(self.now), len(self.values))
        return np.asarray(self.finite.sum(axis=0))

    def medians(self, values: Floats) -> Floats:
        """The median of each column's values where the samples are finite, NaN where none is.

        Along the last axis numpy sorts several times as fast.
        """
        held = values if self.complete else np.where(self.finite, values, np.inf)
        ordered = np.sort(np.ascontiguousarray(held.T), axis=1).T
        if self.complete:
            return halfway(ordered[(len(ordered) - 1) // 2], ordered[len(ordered) // 2])
        columns = np.arange(len(self.now))
        low = ordered[np.maximum(self.counts - 1, 0) // 2, columns]
        high = ordered[np.minimum(self.counts // 2, len(ordered) - 1), columns]
        return np.where(self.counts > 0, halfway(low, high), np.nan)


Result: TypeAlias = tuple[Floats, Mask]
Compare: TypeAlias = Callable[[Baseline], Result]


@dataclass(frozen=True, slots=True)
class TrainingFunction:
    """`compare` gives values and where they are defined; `min_samples` is the default of the last argument."""

    name: str
    compare: Compare
    min_samples: int


TRAINING: dict[str, TrainingFunction] = {}


def _training(min_samples: int) -> Callable[[Compare], Compare]:
    def enter(compare: Compare) -> Compare:
        TRAINING[compare.__name__] = TrainingFunction(compare.__name__, compare, min_samples)
        return compare

    return enter


def evaluate(function: TrainingFunction, baseline: Baseline, min_samples: float) -> Result:
    """Values, and where there is a result: enough samples before, a now that is not NaN, a divisor that divides."""
    if not len(baseline.values):
        return np.zeros(len(baseline.now)), nothing(len(baseline.now))
    values, defined = function.compare(baseline)
    if not baseline.complete:
        defined = defined & (baseline.counts >= max(min_samples, 1))
    elif len(baseline.values) < min_samples:
        return values, nothing(len(values))
    return values, defined & (baseline.now == baseline.now)


@_training(3)
def spike_ratio(baseline: Baseline) -> Result:
    """Now over the median of the baseline."""
    centre = baseline.medians(baseline.values)
    return baseline.now / centre, centre > 0


@_training(16)
def robust_zscore(baseline: Baseline) -> Result:
    """Distance from the median in scaled median absolute deviations."""
    centre = baseline.medians(baseline.values)
    spread = MAD_SCALE * baseline.medians(np.abs(baseline.values - centre))
    return _standardised(baseline.now, centre, spread)


@_training(16)
def zscore(baseline: Baseline) -> Result:
    """Distance from the mean in population standard deviations."""
    centre = means(baseline)
    deviation = np.where(baseline.finite, baseline.values - centre, 0.0)
    return _standardised(baseline.now, centre, np.sqrt(add_rows(deviation * deviation) / baseline.counts))


@_training(3)
def ema(baseline: Baseline) -> Result:
    """Exponentially weighted mean of the baseline, with the weight of a span of `window` steps."""
    average = weighted_means(baseline)
    return average, np.isfinite(average)


@_training(3)
def ema_ratio(baseline: Baseline) -> Result:
    """Now over the exponentially weighted mean of the baseline."""
    average = weighted_means(baseline)
    return baseline.now / average, average > 0


@_training(16)
def growth(baseline: Baseline) -> Result:
    """Now over the oldest sample of the baseline, if that one is older than half the window."""
    first = np.argmax(baseline.finite, axis=0)
    oldest = baseline.values[first, np.arange(len(first))]
    old_enough = baseline.tick - baseline.ticks[first] > baseline.window / 2
    return baseline.now / oldest, (oldest > 0) & old_enough


def _standardised(now: Floats, centre: Floats, spread: Floats) -> Result:
    divisor = np.fmax(spread, RELATIVE_FLOOR * np.abs(centre))
    return (now - centre) / divisor, divisor > 0


def halfway(low: Floats, high: Floats) -> Floats:
    """(low + high) / 2, also where the sum overflows."""
    total = low + high
    overflown = np.isinf(total)
    total /= 2
    if overflown.any():
        total[overflown] = low[overflown] / 2 + high[overflown] / 2
    return total


def means(baseline: Baseline) -> Floats:
    return add_rows(np.where(baseline.finite, baseline.values, 0.0)) / baseline.counts


def weighted_means(baseline: Baseline) -> Floats:
    """Weights a(1-a)^age with a = 2/(w+1), age and w in steps, over the finite samples."""
    weights, whole = _weights(baseline.window, (baseline.ticks[-1] - baseline.ticks).tobytes())
    if baseline.complete:
        return add_rows(baseline.values * weights) / whole
    held = np.where(baseline.finite, baseline.values, 0.0) * weights
    return add_rows(held) / add_rows(baseline.finite * weights)


@lru_cache(maxsize=64)
def _weights(window: int, ages: bytes) -> tuple[Floats, Floats]:
    """The weights of rows of these ages (ticks), and their sum; while rows come evenly the ages never change."""
    weights = (1 - alpha(window)) ** (np.frombuffer(ages, np.int64)[:, None] / TICKS_PER_STEP)
    return weights, add_rows(weights)


def alpha(window: int) -> float:
    """The weight of the newest sample for a span of `window` ticks."""
    return min(2 / (window / TICKS_PER_STEP + 1), 1.0)
