"""A lower bound of every series' moving median from the least values of a few rows each.

Where enough blocks of rows hold nothing below a value, more than half of the window is at or above it, and so is the
median. The bound is the greatest such value among the least ones, and holds as long as these blocks are in the window.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from healthwatch.promql.again import Again
from healthwatch.promql.blocks import Blocks
from healthwatch.promql.limits import Limits
from healthwatch.promql.moving import Span
from healthwatch.promql.vector import Indices
from healthwatch.stream.ring import Floats

_GROWTH = 16
"""A bound holds for a window that has grown by this part."""


class Minima:
    """The screen of `spike_ratio` where a breach is many times the median: the divisor is at most the median."""

    def __init__(self, blocks: Blocks) -> None:
        self._blocks = blocks
        self._limits = Limits()
        self._again = Again(0)
        self._holds = (0, 0, 0)  # the first row that must be in the window, and the most rows and gaps of it
        self._enough = 0  # rows without a lower value prove a bound

    def limit(self, bound: float) -> Floats:
        return self._limits.of(bound)

    def rebuild(self, span: Span) -> None:
        self._again = Again(len(span.part.columns))
        self._measure(span)

    def move(self, span: Span, leaving: range, entering: range) -> None:  # noqa: ARG002 - the blocks have moved
        row, count, gaps = self._holds
        if span.start > row or span.count > count or span.gaps > gaps:
            self._measure(span)

    def closer(self, span: Span, which: Indices, bound: float) -> Floats | None:
        """Series that come again are bounded by what all of their rows say."""
        again = self._again.note(self._limits.near(span, which, bound))
        if again is None:
            return None
        self._bound_closely(span, again)
        return self._limits.of(bound)[which]

    def _measure(self, span: Span) -> None:
        """The bound that holds until the oldest of its blocks begins to leave."""
        whole = self._blocks.whole(span.start)
        held = whole[1:] if whole and whole[0].start == span.start and len(whole) > 1 else whole
        count, gaps = span.count + span.count // _GROWTH, span.gaps + 1
        self._enough = count - (count - gaps - 1) // 2
        spare = len(held) - math.ceil(self._enough / self._blocks.rows)
        self._holds = held[0].start if held else span.now, count, gaps
        size = len(span.part.columns)
        self._limits.take(None, _ascending([block.least for block in held], spare) if spare >= 0 else np.zeros(size))
        again = self._again.turn()
        if again is not None:
            self._bound_closely(span, again)

    def _bound_closely(self, span: Span, which: Indices) -> None:
        """Of the rows that will stay as many lie at or above the bound as are enough."""
        held = replace(span, start=min(self._holds[0], span.now - 1))
        if held.count < self._enough:
            return
        values = held.columns(which).T
        ordered = np.sort(np.where(np.isfinite(values), values, math.inf), axis=1)
        low = ordered[:, held.count - self._enough]
        self._limits.renew(which, None, np.fmax(low, self._limits.divisor[which]))


def _ascending(arrays: Sequence[Floats], place: int) -> Floats:
    """What stands at a place (from 0) when the values of each column are put in ascending order."""
    for _ in range(place):
        least, rest = arrays[0], []
        for each in arrays[1:]:
            rest.append(np.maximum(least, each))
            least = np.minimum(least, each)
        arrays = rest
    found = arrays[0].copy()
    for each in arrays[1:]:
        np.minimum(found, each, out=found)
    return found
