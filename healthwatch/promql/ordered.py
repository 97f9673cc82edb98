"""Every series' window in ascending order, kept so by exchanging values: for `robust_zscore` with the `fast` extra."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from healthwatch.promql.limits import Limits
from healthwatch.promql.moving import Span
from healthwatch.promql.training import MAD_SCALE, RELATIVE_FLOOR
from healthwatch.promql.vector import Indices
from healthwatch.stream.ring import Floats

Exchange = Callable[["NDArray[Any]", "NDArray[Any]", "NDArray[Any]"], None]


class Ordered:
    """The centre is at most the median, the divisor at most that of the score.

    The values at a quarter and at three quarters are that far from the median, or less, for half of the window.
    """

    tolerant = False

    def __init__(self, exchange: Exchange) -> None:
        self._limits = Limits()
        self._values: NDArray[np.floating[Any]] = np.empty((0, 0))
        self._exchange = exchange
        self._type: type[np.floating[Any]] = np.float64
        self._measured = False

    def limit(self, bound: float) -> Floats:
        if not self._measured:
            self._measure()
        return self._limits.of(bound)

    def rebuild(self, span: Span) -> None:
        # float32 is twice as fast; it is taken only where it holds the values exactly.
        self._type = np.float32 if span.part.ring.narrow else np.float64
        rows = np.array([self._row(span, row) for row in range(span.start, span.now)])
        self._values = np.ascontiguousarray(np.sort(rows.T, axis=1).T)
        self._measured = False

    def move(self, span: Span, leaving: range, entering: range) -> None:
        if len(leaving) != len(entering) or (self._type == np.float32 and not span.part.ring.narrow):
            self.rebuild(span)
            return
        for old, new in zip(leaving, entering, strict=True):
            self._exchange(self._values, self._row(span, old), self._row(span, new))
        self._measured = False

    def improve(self, span: Span, which: Indices) -> bool:  # noqa: ARG002 - the bounds are as good as they get
        return False

    def _row(self, span: Span, row: int) -> NDArray[np.floating[Any]]:
        """The row with 0 for what is not finite: a NaN would never be found again."""
        values = span.row(row)
        if not span.finite(row):
            values = np.where(np.isfinite(values), values, 0.0)
        return values.astype(self._type, copy=False)

    def _measure(self) -> None:
        count = len(self._values)
        outer = (count - (count - 1) // 2 + 1) // 2 - 1
        low, high = self._order((count - 1) // 2), self._order(count // 2)
        divisor = np.minimum(low - self._order(outer), self._order(count - 1 - outer) - high)
        divisor *= MAD_SCALE
        np.maximum(divisor, RELATIVE_FLOOR * low, out=divisor)
        self._limits.take(low, divisor)
        self._measured = True

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
