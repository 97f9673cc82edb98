"""Loops that numba compiles: the `fast` extra. They are compiled on import, or taken from numba's cache.

What they compute is exact: no result depends on whether they are there.
"""

from __future__ import annotations

from functools import partial

import numpy as np
from numba import njit
from numpy.typing import NDArray

Samples = NDArray[np.float64] | NDArray[np.float32]

_KINDS = ("float64", "float32")

_BLOCK = 512
"""Columns that are worked on together, so that their rows stay in the cache."""


_njit = partial(njit, cache=True, nogil=True, error_model="numpy")


_inline = partial(njit, inline="always", error_model="numpy")


@_inline()  # type: ignore[untyped-decorator]
def _exchanged(ordered: Samples, begin: int, end: int, leaves: Samples, enters: Samples, last: Samples) -> None:
    """What is left without the old value closes up; then every place takes the middle of its lower neighbour, the new
    value and itself. Written so that every inner loop becomes vector instructions.
    """
    rows = len(ordered)
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


@_inline()  # type: ignore[untyped-decorator]
def _limited(
    ordered: Samples,
    begin: int,
    end: int,
    places: tuple[NDArray[np.int64], int, int],
    factors: tuple[float, float, float],
    found: NDArray[np.float64],
) -> None:
    """See `limits`. Python's `float` of a float32 would stay one here."""
    pairs, low, high = places
    scale, floor, bound = factors
    limit, lower, upper = found[begin:end], ordered[low, begin:end], ordered[high, begin:end]
    limit[:] = -np.inf
    for pair in range(len(pairs)):
        first, second = ordered[pairs[pair, 0], begin:end], ordered[pairs[pair, 1], begin:end]
        for column in range(end - begin):
            below = np.float64(lower[column]) - np.float64(first[column])
            above = np.float64(second[column]) - np.float64(upper[column])
            lesser = below if below < above else above  # noqa: FURB136
            limit[column] = lesser if lesser > limit[column] else limit[column]  # noqa: FURB136
    for column in range(end - begin):
        centre = np.float64(lower[column])
        deviation, least = scale * limit[column], floor * centre
        divisor = deviation if deviation > least else least  # noqa: FURB136
        limit[column] = centre + bound * divisor if divisor > 0 else -np.inf


_PLACES = "Tuple((int64[:, ::1], int64, int64)), UniTuple(float64, 3), float64[::1]"


@_njit([f"void({kind}[:, ::1], {kind}[::1], {kind}[::1], {_PLACES})" for kind in _KINDS])  # type: ignore[untyped-decorator]
def exchange(
    ordered: Samples,
    old: Samples,
    new: Samples,
    places: tuple[NDArray[np.int64], int, int],
    factors: tuple[float, float, float],
    found: NDArray[np.float64],
) -> None:
    """In each ascending column replace one value equal to `old` by `new`, in place; then `limits`, while the rows are
    still in the cache.
    """
    size = ordered.shape[1]
    last = np.empty(_BLOCK, ordered.dtype)
    for begin in range(0, size, _BLOCK):
        end = min(begin + _BLOCK, size)
        _exchanged(ordered, begin, end, old[begin:end], new[begin:end], last)
        _limited(ordered, begin, end, places, factors, found)


@_njit([f"void({kind}[:, ::1], {_PLACES})" for kind in _KINDS])  # type: ignore[untyped-decorator]
def limits(
    ordered: Samples,
    places: tuple[NDArray[np.int64], int, int],
    factors: tuple[float, float, float],
    found: NDArray[np.float64],
) -> None:
    """For each ascending column: its value at `low`, plus `bound` times the larger of two bounds of its deviation.

    `places` are pairs, low and high, `factors` scale, floor and bound. One bound is `scale` times the greatest, over
    the pairs of places, of the lesser distance of the two from the values at `low` and `high`; the other is `floor`
    times the value at `low`. -inf where neither is positive.
    """
    _limited(ordered, 0, ordered.shape[1], places, factors, found)


@_njit([f"void({kind}[:, ::1], int64[::1], UniTuple(float64, 3), float64[::1])" for kind in _KINDS])  # type: ignore[untyped-decorator]
def sharper(
    ordered: Samples,
    which: NDArray[np.int64],
    factors: tuple[float, float, float],
    found: NDArray[np.float64],
) -> None:
    """For some ascending columns: the median plus `bound` times the larger of two deviations.

    One is `scale` times the median absolute deviation, the other `floor` times the magnitude of the median. -inf where
    neither is positive.
    """
    scale, floor, bound = factors
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
