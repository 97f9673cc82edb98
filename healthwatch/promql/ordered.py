"""Every series' window in ascending order, kept so by exchanging values: for `robust_zscore` with the `fast` extra."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from healthwatch.promql.moving import Span
from healthwatch.promql.training import MAD_SCALE, RELATIVE_FLOOR, halfway
from healthwatch.promql.vector import Indices
from healthwatch.stream.ring import FINITE, Floats

Exchange = Callable[["NDArray[Any]", "NDArray[Any]", "NDArray[Any]"], None]


class Ordered:
    """The centre is the median, the divisor at most that of the score.

    The values at a quarter and at three quarters are that far from the median, or less, for half of the window.
    """

    eager = False
    tolerant = False
    passed = None

    def __init__(self, exchange: Exchange) -> None:
        self.centre: Floats = np.empty(0)
        self._values: NDArray[np.floating[Any]] = np.empty((0, 0))
        self._exchange = exchange
        self._divisor: Floats = np.empty(0)
        self._type: type[np.floating[Any]] = np.float64

    def divisor(self, span: Span) -> Floats:  # noqa: ARG002 - other screens need the span
        return self._divisor

    def rebuild(self, span: Span) -> None:
        # float32 is twice as fast; it is taken only where it holds the values exactly.
        self._type = np.float32 if span.part.ring.narrow else np.float64
        rows = np.array([self._row(span, row) for row in range(span.start, span.now)])
        self._values = np.ascontiguousarray(np.sort(rows.T, axis=1).T)
        self._measure()

    def move(self, span: Span, leaving: range, entering: range) -> None:
        if len(leaving) != len(entering) or (self._type == np.float32 and not span.part.ring.narrow):
            self.rebuild(span)
            return
        for old, new in zip(leaving, entering, strict=True):
            self._exchange(self._values, self._row(span, old), self._row(span, new))
        self._measure()

    def fit(self, span: Span, which: Indices) -> None:
        """The bounds are always as good as they get."""

    def _row(self, span: Span, row: int) -> NDArray[np.floating[Any]]:
        """The row with 0 for what is not finite: a NaN would never be found again."""
        values = span.row(row)
        if span.part.ring.state(row) > FINITE:
            values = np.where(np.isfinite(values), values, 0.0)
        return values.astype(self._type, copy=False)

    def _measure(self) -> None:
        count = len(self._values)
        outer = (count - (count - 1) // 2 + 1) // 2 - 1
        self.centre = halfway(self._order(count // 2), self._order((count - 1) // 2))
        below, above = self.centre - self._order(outer), self._order(count - 1 - outer) - self.centre
        np.minimum(below, above, out=below)
        below *= MAD_SCALE
        np.multiply(self.centre, RELATIVE_FLOOR, out=above)
        self._divisor = np.maximum(below, above, out=below)

    def _order(self, place: int) -> Floats:
        return np.asarray(self._values[place], dtype=np.float64)


def exchange() -> Exchange | None:
    """The compiled loop where the `fast` extra is installed; it takes half a second to import."""
    try:
        from healthwatch.promql.compiled import exchange as compiled
    except ImportError:
        return None
    found: Exchange = compiled
    return found
