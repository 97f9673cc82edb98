"""The rate family, linear regression and Holt's smoothing, on packed samples."""

from __future__ import annotations

import numpy as np

from healthwatch.promql.sums import sum_rows
from healthwatch.promql.window import Packed, Window
from healthwatch.stream.ring import Floats, Mask
from healthwatch.stream.ticks import TICKS_PER_STEP


def extrapolated(window: Window, *, counter: bool, per_second: bool) -> tuple[Floats, Mask]:
    """Change over the window, carried on to its borders as Prometheus' `extrapolatedRate` does."""
    packed = window.packed()
    first, begun = packed.first()
    last, ended = packed.nth_last(0)
    result = last - first
    if counter:
        result = result + _lost_to_resets(packed)
    between = ended - begun
    average = between / np.maximum(packed.counts - 1, 1)
    to_start = begun - window.start / TICKS_PER_STEP
    to_end = window.end / TICKS_PER_STEP - ended
    to_start = np.where(to_start >= average * 1.1, average / 2, to_start)
    if counter:
        to_zero = between * (first / result)
        to_start = np.where((result > 0) & (first >= 0) & (to_zero < to_start), to_zero, to_start)
    to_end = np.where(to_end >= average * 1.1, average / 2, to_end)
    factor = (between + to_start + to_end) / between
    if per_second:
        factor = factor / ((window.end - window.start) / TICKS_PER_STEP)
    return result * factor, packed.counts >= 2


def _lost_to_resets(packed: Packed) -> Floats:
    before, after = packed.values[:-1], packed.values[1:]
    fell = (after < before) & packed.present[1:]
    return np.asarray(np.where(fell, before, 0.0).sum(axis=0))


def instant(window: Window, *, per_second: bool) -> tuple[Floats, Mask]:
    """Difference of the last two samples; as a rate, a counter's reset counts from 0."""
    packed = window.packed()
    last, ended = packed.nth_last(0)
    before, begun = packed.nth_last(1)
    change = last - before
    if per_second:
        change = np.where(last < before, last, change) / (ended - begun)
    return change, packed.counts >= 2


def regression(packed: Packed, origin: Floats) -> tuple[Floats, Floats]:
    """Slope and value at `origin` (seconds, one a series) of the least-squares line.

    A constant series has slope 0 exactly; one with an infinite constant has no line (NaN).
    """
    there = packed.present
    count = packed.counts.astype(np.float64)
    x = np.where(there, packed.seconds - origin, 0.0)
    y = packed.values
    sum_x, sum_y, sum_xy, sum_xx = (sum_rows(rows) for rows in (x, y, x * y, x * x))
    covariance = sum_xy - sum_x * sum_y / count
    variance = sum_xx - sum_x * sum_x / count
    slope = covariance / variance
    intercept = sum_y / count - slope * sum_x / count
    first = y[0]
    constant = np.where(there, y == first, True).all(axis=0)
    infinite = np.isinf(first)
    level = np.where(infinite, np.nan, first)
    return (
        np.where(constant, np.where(infinite, np.nan, 0.0), slope),
        np.where(constant, level, intercept),
    )


def holt(packed: Packed, level_factor: float, trend_factor: float) -> Floats:
    """The smoothed value at the last sample; starts from the first sample and the first difference."""
    values, counts = packed.values, packed.counts
    if len(values) < 2:
        return np.zeros(values.shape[1])
    level, trend = values[0], values[1] - values[0]
    previous = level
    for index in range(1, len(values)):
        inside = counts > index
        if index > 1:
            trend = np.where(inside, trend_factor * (level - previous) + (1 - trend_factor) * trend, trend)
        smoothed = level_factor * values[index] + (1 - level_factor) * (level + trend)
        previous, level = np.where(inside, level, previous), np.where(inside, smoothed, level)
    return np.asarray(level)
