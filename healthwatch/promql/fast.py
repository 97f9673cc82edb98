"""What the `fast` extra brings: compiled loops in place of plain functions that say the same.

Without the extra the plain ones are used, which numpy does. The first import of the loops compiles them, which takes
some seconds; later ones take half a second, so nobody imports them who has no use for them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache, lru_cache, partial
from types import ModuleType
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.typing import NDArray

from healthwatch.promql import limits
from healthwatch.promql.bounds import Bound, Bounds, Kind, of_deviation, places, tolerated
from healthwatch.promql.limits import LimitOf
from healthwatch.promql.moving import Span
from healthwatch.promql.training import TrainingFunction
from healthwatch.promql.vector import Indices
from healthwatch.stream.ring import Floats

if TYPE_CHECKING:
    from healthwatch.promql.ahead import Lookahead

Scores: TypeAlias = Callable[[Span, Indices], "Floats | None"]
"""Of some series of a window, NaN where there is no value; None where only the plain way will do."""

_MOST_ROWS = 128
"""Longer windows are sorted more quickly by numpy."""


@cache
def loops() -> ModuleType | None:
    """`compiled`, None without the extra."""
    try:
        from healthwatch.promql import compiled
    except (ImportError, RuntimeError):  # numba raises the latter where it can keep nothing of what it compiles
        return None
    return compiled


def deviation() -> Bound:
    """`of_deviation`."""
    compiled = loops()
    return of_deviation if compiled is None else partial(_deviation, compiled)


def limit_of() -> LimitOf:
    """`limits.limit_of` where there is a centre."""
    compiled = loops()
    return limits.limit_of if compiled is None else partial(_limit_of, compiled)


def scores(function: TrainingFunction) -> Scores | None:
    """A function of our own where no sample is missing; None where it has no loop."""
    compiled = loops() if function.name == "robust_zscore" else None
    return None if compiled is None else partial(_robust_zscores, compiled)


def lookahead() -> type[Lookahead] | None:
    """What looks ahead in a replay; None without the extra, for the plain way is to look at each row."""
    if loops() is None:
        return None
    try:
        from healthwatch.promql.ahead import Lookahead
    except RuntimeError:  # as in `loops`
        return None
    return Lookahead


def _deviation(compiled: ModuleType, blocks: Sequence[Floats], kind: Kind, irregular: Indices, unknown: int) -> Bounds:
    count, size = sum(map(len, blocks)), blocks[0].shape[1]
    if count > _MOST_ROWS:
        return of_deviation(blocks, kind, irregular, unknown)
    where = _by_gaps(count, tolerated(count, unknown) if len(irregular) else 0, unknown)
    centre, divisor = np.empty(size), np.empty(size)
    above, beneath, held = blocks[0], blocks[-1][: count - len(blocks[0])], np.empty((count, compiled.COLUMNS), kind)
    compiled.bounds(above, beneath, compiled.pairs(count), where, held, centre, divisor)
    return centre, divisor


@lru_cache(maxsize=64)
def _by_gaps(count: int, most: int, unknown: int) -> NDArray[np.int64]:
    """`places` for every number of gaps, as rows."""
    found = [places(count, gaps, unknown) for gaps in range(most + 1)]
    return np.array([(at.low, at.high, at.first, at.end) for at in found], np.int64)


def _limit_of(compiled: ModuleType, centre: Floats | None, divisor: Floats, bound: float) -> Floats:
    if centre is None:
        return limits.limit_of(centre, divisor, bound)
    found = np.empty(len(divisor))
    compiled.limits(centre, divisor, bound, found)
    return found


def _robust_zscores(compiled: ModuleType, span: Span, which: Indices) -> Floats | None:
    if span.count > _MOST_ROWS:
        return None
    found = np.empty(len(which))
    columns, compared = span.ring_columns(which), compiled.pairs_to_middle(span.count)
    compiled.robust_zscores(span.part.ring.data, span.start, span.now, columns, compared, found)
    return found
