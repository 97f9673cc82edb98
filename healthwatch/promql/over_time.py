"""Functions of a range: one result a series from its samples in the window.

Each takes the window and its scalar parameters and gives values and *kept*; it is called only if there is a sample.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from healthwatch.promql import rates
from healthwatch.promql.quantiles import quantile_rows
from healthwatch.promql.sums import mean_rows, sum_rows, variance_rows
from healthwatch.promql.vector import EvaluationError
from healthwatch.promql.window import Window
from healthwatch.stream.ring import POSITIVE, Floats, Mask

Result: TypeAlias = tuple[Floats, Mask]
OverTime: TypeAlias = Callable[..., Result]

OVER_TIME: dict[str, OverTime] = {}
KEEPS_NAME = frozenset(("last_over_time", "first_over_time"))


def over_time(function: OverTime) -> OverTime:
    """Enter a function under its own name."""
    OVER_TIME[function.__name__] = function
    return function


@over_time
def sum_over_time(window: Window) -> Result:
    total = window.whole_sum()
    if total is not None:
        return total.copy(), window.any()
    return sum_rows(window.filled(0.0), positive=window.state == POSITIVE), window.any()


@over_time
def count_over_time(window: Window) -> Result:
    return window.counts().astype(np.float64), window.any()


@over_time
def avg_over_time(window: Window) -> Result:
    total = window.whole_sum()
    if total is not None:
        return total / len(window.ticks), window.any()
    rows = window.blocks if window.present is None else (window.packed().values,)
    counts = window.counts().astype(np.float64)
    return mean_rows(rows, counts, positive=window.state == POSITIVE), window.any()


@over_time
def max_over_time(window: Window) -> Result:
    return _extreme(window, np.fmax), window.any()


@over_time
def min_over_time(window: Window) -> Result:
    return _extreme(window, np.fmin), window.any()


def _extreme(window: Window, choose: np.ufunc) -> Floats:
    """The largest or smallest value; NaN only if there is no other, and then one that was measured, bit for bit."""
    found = [choose.reduce(block, axis=0) for block in window.filled(np.nan)]
    extreme = np.asarray(found[0] if len(found) == 1 else choose(*found))
    nowhere = np.isnan(extreme)
    return np.where(nowhere, last_over_time(window)[0], extreme) if nowhere.any() else extreme


@over_time
def last_over_time(window: Window) -> Result:
    if window.present is None:
        return window.blocks[-1][-1], window.any()
    return window.packed().nth_last(0)[0], window.any()


@over_time
def first_over_time(window: Window) -> Result:
    if window.present is None:
        return window.blocks[0][0], window.any()
    return window.packed().values[0], window.any()


@over_time
def present_over_time(window: Window) -> Result:
    return np.ones(len(window.labels)), window.any()


@over_time
def stdvar_over_time(window: Window) -> Result:
    packed = window.packed()
    return variance_rows(packed.values, packed.counts.astype(np.float64), packed.present), window.any()


@over_time
def stddev_over_time(window: Window) -> Result:
    variance, kept = stdvar_over_time(window)
    return np.sqrt(variance), kept


@over_time
def quantile_over_time(window: Window, quantile: float) -> Result:
    packed = window.packed()
    return quantile_rows(quantile, packed.values, packed.counts), window.any()


@over_time
def mad_over_time(window: Window) -> Result:
    """Median absolute deviation from the median; NaN if any sample is."""
    packed = window.packed()
    median = quantile_rows(0.5, packed.values, packed.counts)
    deviation = quantile_rows(0.5, np.abs(packed.values - median), packed.counts)
    return np.where((np.isnan(packed.values) & packed.present).any(axis=0), np.nan, deviation), window.any()


@over_time
def ts_of_first_over_time(window: Window) -> Result:
    return window.packed().seconds[0], window.any()


@over_time
def ts_of_last_over_time(window: Window) -> Result:
    return window.packed().nth_last(0)[1], window.any()


@over_time
def ts_of_max_over_time(window: Window) -> Result:
    return _time_of(window, _extreme(window, np.fmax)), window.any()


@over_time
def ts_of_min_over_time(window: Window) -> Result:
    return _time_of(window, _extreme(window, np.fmin)), window.any()


def _time_of(window: Window, extreme: Floats) -> Floats:
    """When each series had its extreme for the last time; a series of NaN has it at its last sample."""
    there = (window.values == extreme) | np.isnan(extreme)
    if window.present is not None:
        there &= window.present
    return np.asarray(window.seconds()[len(there) - 1 - np.argmax(there[::-1], axis=0)])


@over_time
def changes(window: Window) -> Result:
    packed = window.packed()
    before, after = packed.values[:-1], packed.values[1:]
    changed = (before != after) & ~(np.isnan(before) & np.isnan(after)) & packed.present[1:]
    return changed.sum(axis=0).astype(np.float64), window.any()


@over_time
def resets(window: Window) -> Result:
    packed = window.packed()
    fell = (packed.values[1:] < packed.values[:-1]) & packed.present[1:]
    return fell.sum(axis=0).astype(np.float64), window.any()


@over_time
def rate(window: Window) -> Result:
    return rates.extrapolated(window, counter=True, per_second=True)


@over_time
def increase(window: Window) -> Result:
    return rates.extrapolated(window, counter=True, per_second=False)


@over_time
def delta(window: Window) -> Result:
    return rates.extrapolated(window, counter=False, per_second=False)


@over_time
def irate(window: Window) -> Result:
    return rates.instant(window, per_second=True)


@over_time
def idelta(window: Window) -> Result:
    return rates.instant(window, per_second=False)


@over_time
def deriv(window: Window) -> Result:
    """Slope a second of the least-squares line."""
    return rates.regression(window).slope, window.counts() >= 2


@over_time
def predict_linear(window: Window, ahead: float, now: float) -> Result:
    """What the least-squares line says `ahead` seconds after `now`, the time of the evaluation."""
    line = rates.regression(window)
    return line.slope * (ahead + now - line.centre) + line.level, window.counts() >= 2


@over_time
def double_exponential_smoothing(window: Window, level: float, trend: float) -> Result:
    """Holt's linear method with a smoothing factor each for the level and the trend."""
    if not 0 < level < 1:
        raise EvaluationError(f"invalid smoothing factor. Expected: 0 < sf < 1, got: {level:f}")
    if not 0 < trend < 1:
        raise EvaluationError(f"invalid trend factor. Expected: 0 < tf < 1, got: {trend:f}")
    packed = window.packed()
    return rates.holt(packed, level, trend), packed.counts >= 2
