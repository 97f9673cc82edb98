"""Every series' window in ascending order, kept so by exchanging values: for `robust_zscore` with the `fast` extra."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from typing import Any, Protocol, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

from healthwatch.promql.moving import Span
from healthwatch.promql.training import MAD_SCALE, RELATIVE_FLOOR
from healthwatch.promql.vector import Indices
from healthwatch.stream.ring import Floats

Samples: TypeAlias = NDArray[np.floating[Any]]
Places: TypeAlias = tuple[NDArray[np.int64], int, int]
Factors: TypeAlias = tuple[float, float, float]

_PAIRS = 1
"""How many pairs of places on either side of the one in which both are as far from their ends."""


class Loops(Protocol):
    """The compiled loops, see `compiled`."""

    exchange: Callable[[Samples, Samples, Samples, Places, Factors, Floats], None]
    limits: Callable[[Samples, Places, Factors, Floats], None]
    sharper: Callable[[Samples, Indices, Factors, Floats], None]


class Ordered:
    """The centre is at most the median, the divisor at most that of the score.

    Where the values up to one place and those from another on are half of the window, one of the two lies no further
    from the median than the median deviation. Which pair of such places says most differs from window to window. In a
    window with g gaps, for which it holds other values, a place may be off by as many: so each is taken g further in.
    """

    tolerant = True

    def __init__(self, loops: Loops) -> None:
        self._loops = loops
        self._values: Samples = np.empty((0, 0))
        self._type: type[np.floating[Any]] = np.float64
        self._limits: dict[float, Floats] = {}  # by bound, of this step
        self._gaps = 0
        self._least = math.inf  # of the bounds: its limits are made along with every exchange

    def expect(self, bound: float) -> None:
        self._least = min(self._least, bound)

    def limit(self, bound: float) -> Floats:
        found = self._limits.get(bound)
        if found is None:
            found = self._limits[bound] = np.empty(self._values.shape[1])
            self._loops.limits(self._values, places(len(self._values), self._gaps), _factors(bound), found)
        return found

    def rebuild(self, span: Span) -> None:
        self._gaps = span.gaps
        # float32 is twice as fast; it is taken only where it holds the values exactly.
        self._type = np.float32 if span.part.ring.narrow else np.float64
        rows = np.array([self._row(span, row) for row in range(span.start, span.now)])
        self._values = np.ascontiguousarray(np.sort(rows.T, axis=1).T)
        self._limits.clear()

    def move(self, span: Span, leaving: range, entering: range) -> None:
        if len(leaving) != len(entering) or (self._type == np.float32 and not span.part.ring.narrow):
            self.rebuild(span)
            return
        self._limits.clear()
        self._gaps = span.gaps
        if not len(entering):
            return
        found = self._limits[self._least] = np.empty(self._values.shape[1])
        where, factors = places(span.count, span.gaps), _factors(self._least)
        for old, new in zip(leaving, entering, strict=True):
            self._loops.exchange(self._values, self._row(span, old), self._row(span, new), where, factors, found)

    def improve(self, span: Span, which: Indices, bound: float) -> bool:  # noqa: ARG002 - the windows are here
        """The score itself instead of its bound."""
        for each, found in self._limits.items():
            self._loops.sharper(self._values, which, _factors(each), found)
        return True

    def _row(self, span: Span, row: int) -> Samples:
        """The row with 0 for what is not finite: a NaN would never be found again."""
        values = span.row(row)
        if not span.finite(row):
            values = np.where(np.isfinite(values), values, 0.0)
        return np.ascontiguousarray(values, dtype=self._type)


def _factors(bound: float) -> Factors:
    return MAD_SCALE, RELATIVE_FLOOR, bound


@lru_cache(maxsize=256)
def places(count: int, gaps: int) -> Places:
    """Pairs of places in an ascending window, and bounds of where its median stands.

    As many values as are not among the lesser half of the deviations lie at or below the first of a pair, or at or
    above the second.
    """
    outside = count - (count - 1) // 2
    apart = max(round(math.sqrt(outside) / 2), 1)
    even = (outside + 1) // 2 - 1
    firsts = sorted({min(max(even + apart * step, 0), outside - 2) for step in range(-_PAIRS, _PAIRS + 1)})
    pairs = [(at + gaps, count - outside + at + 1 - gaps) for at in firsts if at >= 0]
    return np.array(pairs, np.int64).reshape(-1, 2), (count - gaps - 1) // 2, min(count // 2 + gaps, count - 1)


def loops() -> Loops | None:
    """The compiled loops where the `fast` extra is installed; they take half a second to import."""
    try:
        from healthwatch.promql import compiled
    except ImportError:
        return None
    return cast("Loops", compiled)
