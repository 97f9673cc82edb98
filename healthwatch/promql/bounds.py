"""Bounds of the median and the median absolute deviation of a window of which only a part is known.

Of N finite values n are known, b[0] <= b[1] <= ..., and N - n are not. The lower median is number (N - 1) // 2 of all
(from 0), so at least (N - 1) // 2 + 1 - (N - n) of the known ones do not exceed it: the more of them the fewer are
unknown, and the more are known. So what is proven here for the most unknown and the fewest known holds for all between.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from healthwatch.promql.moving import TOLERATED
from healthwatch.promql.training import MAD_SCALE, RELATIVE_FLOOR
from healthwatch.promql.vector import Indices
from healthwatch.stream.ring import Floats

Samples: TypeAlias = NDArray[np.floating[Any]]

Kind: TypeAlias = type[np.float32] | type[np.float64]
"""What values are sorted as: float32 where that holds each of them exactly, which takes half the time."""

Bounds: TypeAlias = tuple[Floats | None, Floats]
"""Of the centre (None: it is 0) and of the divisor, from below, by series; they mean nothing for ragged series."""

Bound: TypeAlias = Callable[[Sequence[Floats], Kind, Indices, int], Bounds]
"""Of one or two blocks of known rows with a series a column; of the columns with a value that is not finite; and of how
many values of the window are unknown at the most.
"""

ROUNDED: Final = 1 - 2.0**-22
"""The difference of two float32 is rounded by less."""

_TOGETHER = 2
"""So many runs are bounded by what all of them hold, which is half as much to do."""


@dataclass(frozen=True, slots=True)
class Places:
    """Where in `count` values in order the bounds stand: `low` is not above the median, `high` not below.

    Runs of `low + 1` neighbours begin at `first` up to `end` where the median may be in the middle of them. `low` is
    negative where nothing is proven.
    """

    low: int
    high: int
    first: int
    end: int


@lru_cache(maxsize=256)
def places(count: int, gaps: int, unknown: int) -> Places:
    """Up to `gaps` infinities at the end stand for no value, and up to `unknown` values are not there."""
    low, high = (count - gaps - unknown - 1) // 2, (count + unknown) // 2
    return Places(low, high, low // 2, min(high - low + low // 2 + 1, count - low))


def of_median(blocks: Sequence[Floats], kind: Kind, irregular: Indices, unknown: int) -> Bounds:
    """The divisor is at most the median."""
    ordered, gaps = in_order(blocks, kind, irregular, unknown)
    low = places(len(ordered), gaps, unknown).low
    return None, np.zeros(ordered.shape[1]) if low < 0 else ordered[low].astype(np.float64)


def of_deviation(
    blocks: Sequence[Floats], kind: Kind, irregular: Indices, unknown: int, together: int = _TOGETHER
) -> Bounds:
    """The centre is at most the median, the divisor at most that of `robust_zscore`.

    As many known values as do not exceed the median differ from it by the median deviation at most, too, and so does
    a run of so many neighbours, b[i] to b[i + low]. The deviation is no less than half of what these two are apart,
    nor less than what one of them is beyond the bounds of the median.
    """
    ordered, gaps = in_order(blocks, kind, irregular, unknown)
    count, at = len(ordered), places(len(ordered), gaps, unknown)
    if at.low < 0:
        return np.zeros(ordered.shape[1]), np.zeros(ordered.shape[1])
    halves: Samples = np.full(ordered.shape[1], np.inf, kind)
    for begin in range(at.first, at.end, together):
        np.fmin(halves, ordered[begin + at.low] - ordered[min(begin + together, at.end) - 1], out=halves)
    apart: Samples = halves / 2
    if at.first > 0:
        np.fmin(apart, ordered[at.low] - ordered[at.first - 1], out=apart)
    if at.end + at.low < count:
        np.fmin(apart, ordered[at.end + at.low] - ordered[at.high], out=apart)
    return divided(ordered[at.low], apart)


def divided(low: Samples, apart: Samples) -> Bounds:
    """The bounds of a score, from those of the median and of the median deviation (infinite where it has none)."""
    centre = low.astype(np.float64)
    known = np.where(np.isfinite(apart), apart, 0.0)  # in float32 the product may overflow
    deviation = np.multiply(known, MAD_SCALE * ROUNDED, dtype=np.float64)
    return centre, np.maximum(deviation, RELATIVE_FLOOR * centre)


def in_order(blocks: Sequence[Floats], kind: Kind, irregular: Indices, unknown: int) -> tuple[Samples, int]:
    """Every column in ascending order, what is not finite as infinity at its end; and the most gaps of one.

    Along the last axis numpy sorts several times as fast.
    """
    rows: Samples = np.empty((blocks[0].shape[1], sum(map(len, blocks))), kind)
    begin = 0
    for block in blocks:
        rows[:, begin : begin + len(block)] = block.T
        begin += len(block)
    gaps = 0
    if len(irregular):
        values = rows[irregular]
        missing = ~np.isfinite(values)
        values[missing] = np.inf
        rows[irregular] = values
        counts = missing.sum(axis=1)
        gaps = int(counts.max(initial=0, where=counts <= tolerated(begin, unknown)))
    rows.sort(axis=1)
    return rows.T, gaps


def tolerated(count: int, unknown: int) -> int:
    """A series with more gaps than this is ragged for as long as the bounds hold."""
    return (count + unknown) // TOLERATED
