"""Loops that numba compiles: the `fast` extra. They are compiled on import, or taken from numba's cache.

What they compute is exact: no result depends on whether they are there.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numba import njit
from numpy.typing import NDArray

Pairs = NDArray[np.int64]

_COLUMNS = 256
"""Are worked on together, so that they stay in the cache."""


@lru_cache(maxsize=64)
def pairs(count: int) -> Pairs:
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


@njit(  # type: ignore[untyped-decorator]
    [f"void(float64[:, :], float64[:, :], int64[:, ::1], {kind}[:, ::1])" for kind in ("float64", "float32")],
    cache=True,
    nogil=True,
    error_model="numpy",
)
def sort(
    first: NDArray[np.float64],
    second: NDArray[np.float64],
    compared: Pairs,
    ordered: NDArray[np.float64] | NDArray[np.float32],
) -> None:
    """The rows of two blocks, a series a column, in ascending order; a column with a NaN ends in any order.

    Both comparisons are written out: of `min` and `max`, or of one comparison, numba makes no vector instructions.
    """
    count, size, above = ordered.shape[0], ordered.shape[1], len(first)
    held = np.zeros((count, _COLUMNS), ordered.dtype)
    for begin in range(0, size, _COLUMNS):
        width = min(_COLUMNS, size - begin)
        for row in range(count):
            source = first[row] if row < above else second[row - above]
            for column in range(width):
                held[row, column] = source[begin + column]
        for pair in range(len(compared)):
            lower, upper = held[compared[pair, 0]], held[compared[pair, 1]]
            for column in range(_COLUMNS):
                one, other = lower[column], upper[column]
                lower[column] = one if one < other else other  # noqa: FURB136
                upper[column] = one if one > other else other  # noqa: FURB136
        for row in range(count):
            for column in range(width):
                ordered[row, begin + column] = held[row, column]
