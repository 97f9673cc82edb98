"""Bounds of the median and the median absolute deviation of a window of which only a part is known.

Of N finite values n are known, b[0] <= b[1] <= ..., and N - n are not. The lower median is number (N - 1) // 2 of all
(from 0), so at least (N - 1) // 2 + 1 - (N - n) of the known ones do not exceed it: the more of them the fewer are
unknown, and the more are known. So what is proven here for the most unknown and the fewest known holds for all between.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np

from healthwatch.promql.ascending import Samples
from healthwatch.promql.training import MAD_SCALE, RELATIVE_FLOOR
from healthwatch.stream.ring import Floats

Bounds: TypeAlias = tuple[Floats | None, Floats]
"""Of the centre (None: it is 0) and of the divisor, from below, by series."""

_TOGETHER = 2
"""So many runs are bounded by what all of them hold."""

_ROUNDED = 1 - 2.0**-22
"""More is not lost where float32 are subtracted."""


def of_median(ordered: Samples, gaps: int, unknown: int) -> Bounds:
    """The divisor is at most the median.

    `ordered` has a series a column; up to `gaps` infinities at its end stand for no value, and up to `unknown` values
    are not in it.
    """
    low = _middle(ordered, gaps, unknown)
    return None, np.zeros(ordered.shape[1]) if low < 0 else ordered[low].astype(np.float64)


def of_deviation(ordered: Samples, gaps: int, unknown: int) -> Bounds:
    """The centre is at most the median, the divisor at most that of `robust_zscore`.

    As many known values as do not exceed the median differ from it by the median deviation at most, too, and so does
    a run of so many neighbours, b[i] to b[i + low]. The deviation is no less than half of what these two are apart,
    nor less than what one of them is beyond the bounds of the median.
    """
    low = _middle(ordered, gaps, unknown)
    if low < 0:
        return np.zeros(ordered.shape[1]), np.zeros(ordered.shape[1])
    high = (len(ordered) + unknown) // 2
    runs = len(ordered) - low
    first, end = low // 2, min(high - low + low // 2 + 1, runs)  # of the runs that may have the median in their middle
    halves = ordered[min(first + low, len(ordered) - 1)] - ordered[min(first + _TOGETHER, end) - 1]
    for begin in range(first + _TOGETHER, end, _TOGETHER):
        np.fmin(halves, ordered[begin + low] - ordered[min(begin + _TOGETHER, end) - 1], out=halves)
    apart = halves / 2
    if first > 0:
        np.fmin(apart, ordered[low] - ordered[first - 1], out=apart)
    if end < runs:
        np.fmin(apart, ordered[end + low] - ordered[high], out=apart)
    centre = ordered[low].astype(np.float64)
    deviation = np.where(np.isfinite(apart), apart, 0.0) * (MAD_SCALE * _ROUNDED)
    return centre, np.maximum(deviation, RELATIVE_FLOOR * centre)


def _middle(ordered: Samples, gaps: int, unknown: int) -> int:
    """The place of a value that does not exceed the lower median, negative if that may be unknown."""
    return (len(ordered) - gaps - unknown - 1) // 2
