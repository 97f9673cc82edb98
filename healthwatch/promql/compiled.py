"""Loops that numba compiles: the `fast` extra. They are compiled on import, or taken from numba's cache.

What they compute is exact: no result depends on whether they are there.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

Samples = NDArray[np.float64] | NDArray[np.float32]


_BLOCK = 512
"""Columns that are worked on together, so that their rows stay in the cache."""


_SIGNATURES = ["void(float64[:, ::1], float64[::1], float64[::1])", "void(float32[:, ::1], float32[::1], float32[::1])"]


@njit(_SIGNATURES, cache=True, nogil=True, error_model="numpy")  # type: ignore[untyped-decorator]
def exchange(ordered: Samples, old: Samples, new: Samples) -> None:
    """In each ascending column replace one value equal to `old` by `new`, in place.

    What is left without `old` closes up; then every place takes the middle of its lower neighbour, `new` and itself.
    Written so that every inner loop becomes vector instructions.
    """
    rows, size = ordered.shape
    last = np.empty(_BLOCK, ordered.dtype)
    for begin in range(0, size, _BLOCK):
        end = min(begin + _BLOCK, size)
        leaves, enters = old[begin:end], new[begin:end]
        last[:] = -np.inf
        for row in range(rows - 1):
            here, following = ordered[row, begin:end], ordered[row + 1, begin:end]
            for column in range(end - begin):
                value = here[column]
                closed = value if value < leaves[column] else following[column]
                least = last[column] if last[column] > enters[column] else enters[column]  # noqa: FURB136
                here[column] = least if least < closed else closed  # noqa: FURB136 - min() has a branch for NaN
                last[column] = closed
        final = ordered[rows - 1, begin:end]
        for column in range(end - begin):
            final[column] = last[column] if last[column] > enters[column] else enters[column]  # noqa: FURB136


_LIMITS = [
    f"void({kind}[:, ::1], int64[:, ::1], UniTuple(int64, 2), float64, float64, float64, float64[::1])"
    for kind in ("float64", "float32")
]


@njit(_LIMITS, cache=True, nogil=True, error_model="numpy")  # type: ignore[untyped-decorator]
def limits(
    ordered: Samples,
    pairs: NDArray[np.int64],
    middle: tuple[int, int],
    scale: float,
    floor: float,
    bound: float,
    found: NDArray[np.float64],
) -> None:
    """For each ascending column: its value at `middle[0]`, plus `bound` times the larger bound of its deviation.

    One is `scale` times the greatest, over `pairs` of places, of the lesser distance of the two from the values in the
    `middle`; the other is `floor` times the value at `middle[0]`. -inf where neither is positive. Python's `float` of
    a float32 would stay one here.
    """
    low, high = middle
    found[:] = -np.inf
    for pair in range(len(pairs)):
        first, last = pairs[pair, 0], pairs[pair, 1]
        for column in range(ordered.shape[1]):
            below = np.float64(ordered[low, column]) - np.float64(ordered[first, column])
            above = np.float64(ordered[last, column]) - np.float64(ordered[high, column])
            lesser = below if below < above else above  # noqa: FURB136
            found[column] = lesser if lesser > found[column] else found[column]  # noqa: FURB136
    for column in range(ordered.shape[1]):
        centre = np.float64(ordered[low, column])
        deviation, least = scale * found[column], floor * centre
        divisor = deviation if deviation > least else least  # noqa: FURB136
        found[column] = centre + bound * divisor if divisor > 0 else -np.inf


_SHARPER = [
    f"void({kind}[:, ::1], int64[::1], float64, float64, float64, float64[::1])" for kind in ("float64", "float32")
]


@njit(_SHARPER, cache=True, nogil=True, error_model="numpy")  # type: ignore[untyped-decorator]
def sharper(
    ordered: Samples,
    which: NDArray[np.int64],
    scale: float,
    floor: float,
    bound: float,
    found: NDArray[np.float64],
) -> None:
    """For some ascending columns: the median plus `bound` times the larger of two deviations.

    One is `scale` times the median absolute deviation, the other `floor` times the magnitude of the median. -inf where
    neither is positive.
    """
    count = ordered.shape[0]
    for column in which:
        low, high = np.float64(ordered[(count - 1) // 2, column]), np.float64(ordered[count // 2, column])
        centre = low / 2 + high / 2
        below, above = (count - 1) // 2, (count - 1) // 2 + 1
        near = last = np.float64(0.0)
        for _ in range(count // 2 + 1):  # the nearest values, one after the other
            left = centre - np.float64(ordered[below, column]) if below >= 0 else np.float64(np.inf)
            right = np.float64(ordered[above, column]) - centre if above < count else np.float64(np.inf)
            last = near
            if left < right:
                near, below = left, below - 1
            else:
                near, above = right, above + 1
        deviation = scale * (near if count % 2 else last / 2 + near / 2)
        least = floor * abs(centre)
        divisor = deviation if deviation > least else least  # noqa: FURB136
        found[column] = centre + bound * divisor if divisor > 0 else -np.inf
