"""What a screen says of every series: up to which value of now no breach is possible."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from healthwatch.promql.moving import Span
from healthwatch.promql.vector import Indices
from healthwatch.stream.ring import Floats

LEAST, MOST = 2.0**-120, 2.0**1020
"""Below, bounds are rounded by more than the slack for it: float32 has few digits left there; above, what the function
computes may overflow.
"""

_NEAR = 3
"""No closer bound is that many times as high, as a rule."""


LimitOf: TypeAlias = Callable[["Floats | None", Floats, float], Floats]


class Limits:
    """`centre + bound * divisor` of every series, by bound; -inf where the divisor is not positive (or extreme).

    Both are bounds from below. What changed is put in again, not computed for all.
    """

    def __init__(self, by: LimitOf | None = None) -> None:
        """Computed by `limit_of`, or by what says the same faster."""
        self._limit_of = limit_of if by is None else by
        self.centre: Floats | None = None
        self.divisor: Floats = np.empty(0)
        self._held: dict[float, Floats] = {}

    def of(self, bound: float) -> Floats:
        found = self._held.get(bound)
        if found is None:
            found = self._held[bound] = self._limit_of(self.centre, self.divisor, bound)
        return found

    def near(self, span: Span, which: Indices, bound: float) -> Indices:
        """Those of some series whose now a closer limit may still reach."""
        return which[span.row(span.now)[which] <= _NEAR * self.of(bound)[which]]

    def take(self, centre: Floats | None, divisor: Floats) -> None:
        """New bounds of all series."""
        self.centre, self.divisor = centre, divisor
        self._held.clear()

    def renew(self, which: Indices | slice, centre: Floats | None, divisor: Floats) -> None:
        """New bounds of some series."""
        self.divisor[which] = divisor
        if self.centre is not None:
            self.centre[which] = centre
        for bound, held in self._held.items():
            held[which] = self._limit_of(centre, divisor, bound)


def limit_of(centre: Floats | None, divisor: Floats, bound: float) -> Floats:
    """`Limits` of some series."""
    limit: Floats = divisor * bound
    proven = (divisor > LEAST) & (limit < MOST)
    if not proven.all():
        limit[~proven] = -math.inf
    if centre is not None:
        limit += centre
        np.fmax(limit, -math.inf, out=limit)  # a centre that is NaN proves nothing either
    return limit
