"""What the `fast` extra brings: compiled loops in place of plain functions that say the same.

Without the extra the plain ones are used, which numpy does. The first import of the loops compiles them, which takes
some seconds; later ones take half a second, so nobody imports them who has no use for them.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache, lru_cache, partial
from types import ModuleType
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from healthwatch.promql.bounds import Bound, Bounds, Kind, of_deviation, places, tolerated
from healthwatch.promql.training import Baseline, Result, TrainingFunction
from healthwatch.promql.vector import Indices
from healthwatch.stream.ring import Floats

if TYPE_CHECKING:
    from healthwatch.promql.ahead import Lookahead

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


def training_function(plain: TrainingFunction) -> TrainingFunction:
    """A function of our own, for baselines without gaps."""
    compiled = loops() if plain.name == "robust_zscore" else None
    if compiled is None:
        return plain
    return TrainingFunction(plain.name, partial(_robust_zscore, compiled, plain), plain.min_samples)


def lookahead() -> type[Lookahead] | None:
    """What looks ahead in a replay; None without the extra, for the plain way is to look at each row."""
    if loops() is None:
        return None
    from healthwatch.promql.ahead import Lookahead

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


def _robust_zscore(compiled: ModuleType, plain: TrainingFunction, baseline: Baseline) -> Result:
    values = baseline.values
    if len(values) > _MOST_ROWS:
        return plain.compare(baseline)
    found, divisor = np.empty(len(baseline.now)), np.empty(len(baseline.now))
    compiled.robust_zscores(baseline.now, values, compiled.pairs(len(values)), found, divisor)
    return found, divisor > 0
