"""Windows in ascending order: numpy's sort, or with the `fast` extra a loop that takes half the time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from healthwatch.stream.ring import Floats

Samples: TypeAlias = NDArray[np.floating[Any]]

Kind: TypeAlias = type[np.float32] | type[np.float64]

Sort: TypeAlias = Callable[[Sequence[Floats], Kind], Samples]
"""One or two blocks of rows with a series a column, as rows in ascending order; a column with a NaN is in any order.

float32 must hold every value exactly where that is the kind.
"""

_MOST_COMPILED: Final = 128
"""The compiled loop passes over the rows of a longer window so many times that numpy is faster."""


def by_numpy(blocks: Sequence[Floats], kind: Kind) -> Samples:
    """Along the last axis numpy sorts several times as fast."""
    ordered: Samples = np.empty((blocks[0].shape[1], sum(map(len, blocks))), kind)
    begin = 0
    for block in blocks:
        ordered[:, begin : begin + len(block)] = block.T
        begin += len(block)
    ordered.sort(axis=1)
    return ordered.T


def sorting() -> Sort:
    """The compiled loop where the `fast` extra is installed; it takes half a second to import."""
    try:
        from healthwatch.promql import compiled
    except ImportError:
        return by_numpy

    def by_loop(blocks: Sequence[Floats], kind: Kind) -> Samples:
        count = sum(map(len, blocks))
        if count > _MOST_COMPILED:
            return by_numpy(blocks, kind)
        ordered: Samples = np.empty((count, blocks[0].shape[1]), kind)
        compiled.sort(blocks[0], blocks[1] if len(blocks) > 1 else blocks[0][:0], compiled.pairs(count), ordered)
        return ordered

    return by_loop
