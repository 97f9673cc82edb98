"""Series that a screen can't decide again and again, such as those that rise: these get a bound of their own."""

from __future__ import annotations

import numpy as np

from healthwatch.promql.vector import Indices

_KEPT = 16
"""For so many bounds to come."""

_MOST = 1 / 64
"""Where these are more of all series, it costs less to compute what they are doubted for."""


class Again:
    """Who was doubted since the last bound or since the one before, and who is therefore bounded closely."""

    def __init__(self, series: int) -> None:
        self._most = max(int(_MOST * series), 8)
        self._recent: set[int] = set()
        self._before: set[int] = set()
        self._close: dict[int, int] = {}  # how many times yet

    def note(self, which: Indices) -> Indices | None:
        """Of series that are doubted now those that were before; None for nobody."""
        doubted = which.tolist()
        again = [each for each in doubted if each in self._recent or each in self._before]
        self._recent.update(doubted)
        self._close.update(dict.fromkeys(again, _KEPT))
        if len(self._close) > self._most:
            self._close.clear()
            return None
        return np.array(again) if again else None

    def turn(self) -> Indices | None:
        """A new bound of all series is made: whose own it does not replace; None for nobody."""
        self._recent, self._before = set(), self._recent
        if not self._close:
            return None
        self._close = {series: times - 1 for series, times in self._close.items() if times}
        return np.array(list(self._close), np.intp)
