"""Loops over rows that are there already, for `ahead`: compiled by numba, as those of `compiled`."""

from __future__ import annotations

from typing import Any, Final, TypeAlias

import numpy as np
from numba import njit
from numpy.typing import NDArray

from healthwatch.promql.compiled import COLUMNS, in_order, inlined
from healthwatch.promql.limits import LEAST, MOST
from healthwatch.promql.loop_cache import MADE_OF, drop_older
from healthwatch.promql.moving import TOLERATED
from healthwatch.promql.training import MAD_SCALE, RELATIVE_FLOOR

Samples: TypeAlias = NDArray[np.floating[Any]]
Rows: TypeAlias = NDArray[np.float64]
Numbers: TypeAlias = NDArray[np.int64]
Counts: TypeAlias = NDArray[np.int32]
Mask: TypeAlias = NDArray[np.bool_]

RATIO: Final = 0
SCORE: Final = 1
AVERAGE: Final = 2

LEFT_OUT: Final = TOLERATED
"""One value of so many, the least ones, may have the greatest weights of an average; as many gaps may have had them."""

_RUNS = 1
"""The deviation is bounded by so many runs of neighbours on either side of the middle one."""


@njit(cache=True)  # type: ignore[untyped-decorator]
def _made_of() -> int:
    return MADE_OF


drop_older(_made_of)


@inlined()  # type: ignore[untyped-decorator]
def _take(data: Rows, row: int, which: Numbers, begin: int, width: int, target: Samples) -> None:
    """Some columns of a row: those of `which`, or neighbours where that is empty."""
    source = data[row % len(data)]
    if len(which):
        for column in range(width):
            target[column] = source[which[begin + column]]
    else:
        values = source[begin : begin + width]
        for column in range(width):
            target[column] = values[column]


@inlined()  # type: ignore[untyped-decorator]
def _put_off(values: Samples, gaps: Counts, sign: int) -> None:
    """Infinity for what is not finite, which is counted."""
    for column in range(COLUMNS):
        finite = values[column] - values[column] == 0
        values[column] = values[column] if finite else np.inf
        gaps[column] += 0 if finite else sign


@inlined()  # type: ignore[untyped-decorator]
def _exchange(ordered: Samples, count: int, leaving: Samples, entering: Samples, carried: Samples) -> None:
    """One value leaves `count` that are in order, one comes. `ordered` are rows of columns one after the other.

    Flat, and with places that have no sign, for only so do the loops become vector instructions; and four rows at a
    time, which takes half as long.
    """
    for column in range(COLUMNS):
        carried[column] = entering[column]
    fours = (count - 1) // 4
    for four in range(fours):
        at = np.uint64(4 * four * COLUMNS)
        for column in range(np.uint64(COLUMNS)):
            one, two = ordered[at + column], ordered[at + column + COLUMNS]
            three, four_ = ordered[at + column + 2 * COLUMNS], ordered[at + column + 3 * COLUMNS]
            five, gone, come = ordered[at + column + 4 * COLUMNS], leaving[column], carried[column]
            one = one if one < gone else two
            two = two if two < gone else three
            three = three if three < gone else four_
            four_ = four_ if four_ < gone else five
            ordered[at + column] = one if one < come else come  # noqa: FURB136 - as in `compiled`
            come = one if one > come else come  # noqa: FURB136
            ordered[at + column + COLUMNS] = two if two < come else come  # noqa: FURB136
            come = two if two > come else come  # noqa: FURB136
            ordered[at + column + 2 * COLUMNS] = three if three < come else come  # noqa: FURB136
            come = three if three > come else come  # noqa: FURB136
            ordered[at + column + 3 * COLUMNS] = four_ if four_ < come else come  # noqa: FURB136
            carried[column] = four_ if four_ > come else come  # noqa: FURB136
    for row in range(4 * fours, count - 1):
        at = np.uint64(row * COLUMNS)
        for column in range(np.uint64(COLUMNS)):
            one, two, come = ordered[at + column], ordered[at + column + COLUMNS], carried[column]
            one = one if one < leaving[column] else two
            ordered[at + column] = one if one < come else come  # noqa: FURB136
            carried[column] = one if one > come else come  # noqa: FURB136
    at = np.uint64((count - 1) * COLUMNS)
    for column in range(np.uint64(COLUMNS)):
        ordered[at + column] = carried[column]


@inlined()  # type: ignore[untyped-decorator]
def _most_gaps(gaps: Counts, tolerated: int) -> int:
    """Of the columns that are not ragged."""
    most = 0
    for column in range(COLUMNS):
        few = gaps[column] if gaps[column] <= tolerated else 0
        most = most if most > few else few  # noqa: FURB136
    return most


@inlined()  # type: ignore[untyped-decorator]
def _centre(held: Samples, count: int, gaps: int, near: Rows, far: Rows) -> None:
    """The medians of `count` values without up to `gaps` infinities at their end: at least `near`, at most `far`."""
    low, high = held[(count - gaps - 1) // 2], held[count // 2]
    for column in range(COLUMNS):
        near[column] = low[column]
        far[column] = high[column]
    if gaps == 0:
        for column in range(COLUMNS):
            near[column] = (near[column] + far[column]) / 2
            far[column] = near[column]


@inlined()  # type: ignore[untyped-decorator]
def _ratio_limits(near: Rows, bound: float, limit: Rows) -> None:
    """Up to which value of now it is at most `bound` medians; NaN where that is not known."""
    for column in range(COLUMNS):
        reach = near[column] * bound
        reach = reach if reach < MOST else np.nan
        limit[column] = reach if near[column] > LEAST else np.nan


@inlined()  # type: ignore[untyped-decorator]
def _score_limits(held: Samples, count: int, gaps: int, near: Rows, far: Rows, bound: float, limit: Rows) -> None:
    """Up to which value of now the score is at most `bound`; NaN where that is not known.

    Between two values that are as many places apart as half of them, fewer than half lie. So the other half differ from
    the median by what the nearer of the two does, or more, and so does the median deviation.
    """
    for column in range(COLUMNS):
        limit[column] = 0.0
    apart = (count - gaps - 1) // 2 + 1
    middle = (count - apart - 1) // 2
    for place in range(max(middle - _RUNS, 0), min(middle + _RUNS + 1, count - apart)):
        lower, upper = held[place], held[place + apart]
        for column in range(COLUMNS):
            one, other = near[column] - lower[column], upper[column] - far[column]
            one = one if one < other else other  # noqa: FURB136
            limit[column] = one if one > limit[column] else limit[column]  # noqa: FURB136
    for column in range(COLUMNS):
        spread, floor = MAD_SCALE * limit[column], RELATIVE_FLOOR * near[column]
        spread = spread if spread > floor else floor  # noqa: FURB136
        reach = near[column] + bound * spread
        reach = reach if spread > LEAST else np.nan
        limit[column] = reach if bound * spread < MOST else np.nan


@inlined()  # type: ignore[untyped-decorator]
def _any_doubt(now: Rows, limit: Rows, gaps: Counts) -> bool:
    """Whether a column is above its limit, is not finite, or has gaps."""
    some = 0
    for column in range(COLUMNS):
        some += 0 if (now[column] <= limit[column]) & (now[column] > -np.inf) else 1
    for column in range(COLUMNS):
        some += gaps[column]
    return some > 0


@inlined()  # type: ignore[untyped-decorator]
def _move(
    data: Rows,
    which: Numbers,
    begin: int,
    width: int,
    starts: Numbers,
    ends: Numbers,
    number: int,
    flat: Samples,
    gaps: Counts,
    leaving: Samples,
    entering: Samples,
    carried: Samples,
) -> None:
    """From one window to the next."""
    gone, come = starts[number - 1], ends[number - 1]
    while gone < starts[number] or come < ends[number]:
        leaves, comes = gone < starts[number], come < ends[number]
        count = come - gone if leaves else come - gone + 1
        leaving[:] = 0.0 if leaves else np.inf
        entering[:] = 0.0 if comes else np.inf
        if leaves:
            _take(data, gone, which, begin, width, leaving)
            _put_off(leaving, gaps, -1)
            gone += 1
        if comes:
            _take(data, come, which, begin, width, entering)
            _put_off(entering, gaps, 1)
            come += 1
        _exchange(flat, count, leaving, entering, carried)


@inlined()  # type: ignore[untyped-decorator]
def _note(
    now: Rows,
    limit: Rows,
    gaps: Counts,
    tolerated: int,
    few: bool,
    width: int,
    what: int,
    number: int,
    begin: int,
    doubtful: Counts,
    found: int,
) -> int:
    """Write down the columns that are in doubt, and those with gaps for which a limit says nothing; how many there are
    now, one more than fit if they do not.
    """
    for column in range(width):
        unsure = gaps[column] > tolerated or (few and gaps[column] > 0)
        if unsure or not -np.inf < now[column] <= limit[column]:
            if found >= len(doubtful):
                return len(doubtful) + 1
            doubtful[found, 0], doubtful[found, 1], doubtful[found, 2] = what, number, begin + column
            found += 1
    return found


@inlined()  # type: ignore[untyped-decorator]
def _average_limits(held: Samples, place: int, share: float, bound: float, limit: Rows) -> None:
    """Up to which value of now it is at most `bound` averages; NaN where that is not known.

    Where no value is negative, those from `place` on have at least a `share` of all weights: they may be the oldest.
    """
    least, value = held[0], held[place]
    for column in range(COLUMNS):
        low = value[column] * share
        reach = low * bound
        reach = reach if reach < MOST else np.nan
        reach = reach if low > LEAST else np.nan
        limit[column] = reach if least[column] >= 0 else np.nan


_compiled = njit(cache=True, nogil=True, error_model="numpy")


@_compiled  # type: ignore[untyped-decorator]
def arrange(
    data: Rows,
    which: Numbers,
    offset: int,
    size: int,
    start: int,
    end: int,
    compared: Numbers,
    held: Samples,
    gaps: Counts,
) -> None:
    """Put the values of `size` columns in rows [start, end) in order, what is not finite as infinity at their end.

    `held` is blocks of columns x rows x columns of a block, `gaps` how many are not finite.
    """
    gaps[:] = 0
    for block in range(len(held)):
        begin, ordered = block * COLUMNS, held[block]
        ordered[:] = 0.0
        for row in range(start, end):
            _take(data, row, which, offset + begin, min(COLUMNS, size - begin), ordered[row - start])
            _put_off(ordered[row - start], gaps[block], 1)
        ordered[end - start :] = np.inf
        in_order(ordered, compared)


@_compiled  # type: ignore[untyped-decorator]
def medians(
    data: Rows,
    which: Numbers,
    offset: int,
    size: int,
    starts: Numbers,
    ends: Numbers,
    shares: Rows,
    gapped: Rows,
    bounds: Rows,
    least: float,
    first: int,
    held: Samples,
    gaps: Counts,
    doubtful: Counts,
) -> int:
    """Let windows that are in order go on from one [start, end) of rows to the next, and from number `first` on note
    where row `end` may be above a bound, or may not be known with `least` samples before.

    `bounds` are those of RATIO (to the median), SCORE (robust) and AVERAGE (ratio to the weighted one), 0 where nobody
    asks. `shares` are the parts of all weights that the values of each window have at least without the least ones, of
    which LEFT_OUT says how many these are; `gapped` those where as many others may be missing.

    Gives how many of what, number and column are in `doubtful`; more than fit if they do not.
    """
    found, kind = 0, held.dtype
    carried, leaving, entering = np.zeros(COLUMNS, kind), np.zeros(COLUMNS, kind), np.zeros(COLUMNS, kind)
    now, limit, near, far = np.zeros(COLUMNS), np.zeros(COLUMNS), np.zeros(COLUMNS), np.zeros(COLUMNS)
    for block in range(len(held)):
        begin, ordered, missing = block * COLUMNS, held[block], gaps[block]
        width, flat = min(COLUMNS, size - begin), ordered.reshape(ordered.size)
        for number in range(len(ends)):
            if number:
                _move(
                    data, which, offset + begin, width, starts, ends, number, flat, missing, leaving, entering, carried
                )
            if number < first:
                continue
            count = ends[number] - starts[number]
            tolerated = count // TOLERATED
            _take(data, ends[number], which, offset + begin, width, now)
            most = _most_gaps(missing, tolerated)
            few = count - most < least
            _centre(ordered, count, most, near, far)
            for what in range(len(bounds)):
                bound = bounds[what]
                if not bound > 0:
                    continue
                if what == RATIO:
                    _ratio_limits(near, bound, limit)
                elif what == SCORE:
                    _score_limits(ordered, count, most, near, far, bound, limit)
                else:
                    share = shares[number] if most == 0 else gapped[number]
                    _average_limits(ordered, count // LEFT_OUT, share, bound, limit)
                if _any_doubt(now, limit, missing):
                    found = _note(now, limit, missing, tolerated, few, width, what, number, begin, doubtful, found)
    return found
