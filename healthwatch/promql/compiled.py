"""Loops that numba compiles: the `fast` extra. They are compiled on import, or taken from numba's cache.

What they compute is exact: no result depends on whether they are there.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, partial
from typing import Any, TypeAlias

import numpy as np
from numba import njit
from numpy.typing import NDArray

from healthwatch.promql.bounds import ROUNDED
from healthwatch.promql.limits import LEAST, MOST
from healthwatch.promql.loop_cache import MADE_OF, drop_older
from healthwatch.promql.training import MAD_SCALE, RELATIVE_FLOOR

Samples: TypeAlias = NDArray[np.floating[Any]]

COLUMNS = 128
"""Are worked on together, so that they stay in the cache."""

_FEW = 32
"""Likewise where there are often only a handful: with fewer the loops would be no vector instructions."""


@njit(cache=True)  # type: ignore[untyped-decorator]
def _made_of() -> int:
    return MADE_OF


drop_older(_made_of)


@lru_cache(maxsize=256)
def pairs(count: int) -> NDArray[np.int64]:
    """The places that are compared, one after the other, to put `count` values in order: Batcher's odd-even merge sort.

    They do not depend on the values, so rows of values can be compared as a whole.
    """
    found: list[tuple[int, int]] = []
    merged = 1
    while merged < count:
        apart = merged
        while apart >= 1:
            for begin in range(apart % merged, count - apart, 2 * apart):
                places = range(begin, min(begin + apart, count - apart))
                found += [(at, at + apart) for at in places if at // (2 * merged) == (at + apart) // (2 * merged)]
            apart //= 2
        merged *= 2
    return np.array(found, np.int64).reshape(-1, 2)


@lru_cache(maxsize=256)
def pairs_to_middle(count: int) -> NDArray[np.int64]:
    """Those of `pairs` without which the middle values would not be in their places; the others then may not be."""
    needed, found = {(count - 1) // 2, count // 2}, []
    for pair in reversed(pairs(count).tolist()):
        if not needed.isdisjoint(pair):
            needed.update(pair)
            found.append(pair)
    return np.array(found[::-1], np.int64).reshape(-1, 2)


inlined = partial(njit, inline="always", error_model="numpy")


@inlined()  # type: ignore[untyped-decorator]
def _lesser(least: Samples, one: Samples, other: Samples) -> None:
    """What `other` is above `one`, where that is less. Written out, for `min` is no vector instruction."""
    for column in range(COLUMNS):
        apart = other[column] - one[column]
        least[column] = apart if apart < least[column] else least[column]  # noqa: FURB136


def _ordering(columns: int) -> Callable[[Samples, NDArray[np.int64]], None]:
    """What puts each of so many columns in ascending order; the number is known when it is compiled."""

    @inlined()  # type: ignore[untyped-decorator]
    def in_order(held: Samples, compared: NDArray[np.int64]) -> None:
        for pair in range(len(compared)):
            lower, upper = held[compared[pair, 0]], held[compared[pair, 1]]
            for column in range(columns):
                one, other = lower[column], upper[column]
                lower[column] = one if one < other else other  # noqa: FURB136
                upper[column] = one if one > other else other  # noqa: FURB136

    found: Callable[[Samples, NDArray[np.int64]], None] = in_order
    return found


in_order, _few_in_order = _ordering(COLUMNS), _ordering(_FEW)


@inlined()  # type: ignore[untyped-decorator]
def _middle(ordered: Samples, median: Samples) -> None:
    """As `training.halfway`."""
    low, high = ordered[(len(ordered) - 1) // 2], ordered[len(ordered) // 2]
    for column in range(_FEW):
        half = (low[column] + high[column]) / 2
        median[column] = low[column] / 2 + high[column] / 2 if np.isinf(half) else half


@inlined()  # type: ignore[untyped-decorator]
def _load(above: Samples, beneath: Samples, begin: int, width: int, held: Samples) -> None:
    """Some columns of two blocks of rows."""
    for row in range(len(above)):
        source, target = above[row, begin : begin + width], held[row]
        for column in range(width):
            target[column] = source[column]
    for row in range(len(beneath)):
        source, target = beneath[row, begin : begin + width], held[len(above) + row]
        for column in range(width):
            target[column] = source[column]


@inlined()  # type: ignore[untyped-decorator]
def _put_off(held: Samples, width: int, gaps: Samples, tolerated: int) -> int:
    """Infinity for what is not finite; the most that one of the columns has, but for those with more than tolerated."""
    gaps[:] = 0
    for row in range(len(held)):
        values = held[row]
        for column in range(COLUMNS):
            finite = values[column] - values[column] == 0
            values[column] = values[column] if finite else np.inf
            gaps[column] += 0 if finite else 1
    most = 0
    for column in range(width):
        if most < gaps[column] <= tolerated:
            most = int(gaps[column])
    return most


@njit(  # type: ignore[untyped-decorator]
    [
        f"void(float64[:, :], float64[:, :], int64[:, ::1], int64[:, ::1], {kind}[:, ::1], float64[::1], float64[::1])"
        for kind in ("float64", "float32")
    ],
    cache=True,
    nogil=True,
    error_model="numpy",
)
def bounds(
    above: NDArray[np.float64],
    beneath: NDArray[np.float64],
    compared: NDArray[np.int64],
    places: NDArray[np.int64],
    held: Samples,
    centre: NDArray[np.float64],
    divisor: NDArray[np.float64],
) -> None:
    """`bounds.of_deviation` of the rows of two blocks with a series a column.

    `places` are low, high, first and end by the most gaps of a series that is not ragged; `held` has room for the
    values of COLUMNS series, in the kind that they are sorted as.
    """
    count, size = len(above) + len(beneath), len(centre)
    held[:] = 0
    gaps, least = np.empty(COLUMNS, held.dtype), np.empty(COLUMNS, held.dtype)
    for begin in range(0, size, COLUMNS):
        width = min(COLUMNS, size - begin)
        _load(above, beneath, begin, width, held)
        most = _put_off(held, width, gaps, len(places) - 1) if len(places) > 1 else 0
        low, high, first, end = places[most]
        if low < 0:
            centre[begin : begin + width] = 0.0
            divisor[begin : begin + width] = 0.0
            continue
        in_order(held, compared)
        least[:] = np.inf
        for start in range(first, end):
            _lesser(least, held[start], held[start + low])
        for column in range(COLUMNS):
            least[column] /= 2
        if first > 0:
            _lesser(least, held[first - 1], held[low])
        if end + low < count:
            _lesser(least, held[high], held[end + low])
        for column in range(width):
            middle, apart = np.float64(held[low, column]), np.float64(least[column])
            known = apart * (MAD_SCALE * ROUNDED) if apart - apart == 0 else 0.0
            floor = RELATIVE_FLOOR * middle
            centre[begin + column] = middle
            divisor[begin + column] = known if known > floor else floor  # noqa: FURB136


@njit(  # type: ignore[untyped-decorator]
    "void(float64[::1], float64[::1], float64, float64[::1])", cache=True, nogil=True, error_model="numpy"
)
def limits(centre: NDArray[np.float64], divisor: NDArray[np.float64], bound: float, found: NDArray[np.float64]) -> None:
    """`limits.limit_of`."""
    for column in range(len(found)):
        apart = divisor[column] * bound
        limit = centre[column] + apart
        proven = divisor[column] > LEAST and apart < MOST and limit == limit
        found[column] = limit if proven else -np.inf


@njit(  # type: ignore[untyped-decorator]
    "void(float64[:, ::1], int64, int64, int64[::1], int64[:, ::1], float64[::1])",
    cache=True,
    nogil=True,
    error_model="numpy",
)
def robust_zscores(
    data: NDArray[np.float64],
    start: int,
    now: int,
    columns: NDArray[np.int64],
    compared: NDArray[np.int64],
    found: NDArray[np.float64],
) -> None:
    """`training.robust_zscore` of row `now` and the rows from `start` on before it, all finite; NaN where it has none.

    Row by row of a ring, each at its number modulo how many there are; `compared` are `pairs_to_middle`.
    """
    count, size = now - start, len(columns)
    held, centre, spread = np.zeros((count, _FEW)), np.empty(_FEW), np.empty(_FEW)
    for begin in range(0, size, _FEW):
        width = min(_FEW, size - begin)
        for row in range(count):
            source, target = data[(start + row) % len(data)], held[row]
            for column in range(width):
                target[column] = source[columns[begin + column]]
        _few_in_order(held, compared)
        _middle(held, centre)
        for row in range(count):
            target = held[row]
            for column in range(_FEW):
                target[column] = abs(target[column] - centre[column])
        _few_in_order(held, compared)
        _middle(held, spread)
        source = data[now % len(data)]
        for column in range(width):
            scaled, floor = MAD_SCALE * spread[column], RELATIVE_FLOOR * abs(centre[column])
            divisor = scaled if scaled > floor else floor  # noqa: FURB136
            score = (source[columns[begin + column]] - centre[column]) / divisor
            found[begin + column] = score if divisor > 0 else np.nan
