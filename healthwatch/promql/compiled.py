"""Loops that numba compiles: the `fast` extra. They are compiled on import, or taken from numba's cache.

What they compute is exact: no result depends on whether they are there.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

_COLUMNS = 256
"""Are worked on together, so that they stay in the cache."""


@njit(  # type: ignore[untyped-decorator]
    [f"void({kind}[:, ::1])" for kind in ("float64", "float32")], cache=True, nogil=True, error_model="numpy"
)
def sort(rows: NDArray[np.float64] | NDArray[np.float32]) -> None:
    """Put each column in ascending order, in place; one with a NaN ends in any order.

    Batcher's odd-even merge sort compares the same places whatever the values are, so every comparison is one of whole
    rows, in vector instructions.
    """
    count, size = rows.shape
    lower = np.empty(_COLUMNS, rows.dtype)
    for begin in range(0, size, _COLUMNS):
        end = min(begin + _COLUMNS, size)
        merged = 1
        while merged < count:
            apart = merged
            while apart >= 1:
                for block in range(apart % merged, count - apart, 2 * apart):
                    for place in range(block, min(block + apart, count - apart)):
                        if place // (2 * merged) == (place + apart) // (2 * merged):
                            first, second = rows[place, begin:end], rows[place + apart, begin:end]
                            for column in range(end - begin):
                                lower[column] = first[column] if first[column] < second[column] else second[column]  # noqa: FURB136
                            for column in range(end - begin):
                                second[column] = second[column] if first[column] < second[column] else first[column]  # noqa: FURB136
                            for column in range(end - begin):
                                first[column] = lower[column]
                apart //= 2
            merged *= 2
