"""The rate family, linear regression and Holt's smoothing, on packed samples."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from healthwatch.promql.sums import SMALL, add_rows
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


@dataclass(frozen=True, slots=True, eq=False)
class Line:
    """The least-squares line of each series: `level` is its value at the time `centre`."""

    slope: Floats
    centre: Floats
    level: Floats


def regression(window: Window) -> Line:
    """A constant series has slope 0 exactly; values that are not finite have no line (NaN).

    Values are taken relative to the first and times to their mean, so that no digits cancel. Whether other series have
    gaps changes nothing, to the last bit: both ways add and multiply the same numbers in the same order.
    """
    if window.present is None:
        return _common_line(window)
    packed = window.packed()
    there, count = packed.present, np.maximum(packed.counts, 1)
    first = packed.values[0]
    begun = packed.seconds[0]
    mean = add_rows(np.where(there, packed.seconds - begun, 0.0)) / count
    x = np.where(there, packed.seconds - begun - mean, 0.0)
    y = np.where(there, packed.values - first, 0.0)
    slope = add_rows(y * (x / add_rows(x * x)))
    return _line(slope, begun + mean, first, add_rows(y) / count)


def _common_line(window: Window) -> Line:
    """Where all series have their samples at the same times."""
    seconds = window.seconds()
    x = seconds - seconds[0]
    mean = _sum(x) / len(x)
    x -= mean
    weights = x / _sum(x * x)
    first = window.blocks[0][0]
    total, slope = _moments(window, first, weights)
    return _line(slope, np.full(len(first), seconds[0] + mean), first, total / len(seconds))


def _sum(values: Floats) -> float:
    """One value after the other, as `add_rows`."""
    return float(np.add.accumulate(values)[-1])


def _moments(window: Window, first: Floats, weights: Floats) -> tuple[Floats, Floats]:
    """The sum of the changes since the first row, and their sum with weights; row by row where they are many."""
    if sum(block.size for block in window.blocks) <= SMALL:
        changes = window.values - first
        return add_rows(changes), add_rows(changes * weights[:, None])
    total, slope = np.zeros(len(first)), np.zeros(len(first))
    rows = (values for block in window.blocks for values in block)
    for values, weight in zip(rows, weights, strict=True):
        change = values - first
        total += change
        change *= weight
        slope += change
    return total, slope


def _line(slope: Floats, centre: Floats, first: Floats, above: Floats) -> Line:
    lost = ~np.isfinite(slope) | ~np.isfinite(above) | ~np.isfinite(first)
    return Line(np.where(lost, np.nan, slope), centre, np.where(lost, np.nan, first + above))


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
