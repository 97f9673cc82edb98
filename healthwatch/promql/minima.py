"""A lower bound of every series' moving median from the least values of a few rows each: one comparison a step.

Where enough blocks of rows hold nothing below a value, more than half of the window is at or above it, and so is the
median. The bound is the greatest such value among the least ones, and holds as long as these blocks are in the window.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from healthwatch.promql.again import Again
from healthwatch.promql.limits import Limits
from healthwatch.promql.moving import Span
from healthwatch.promql.vector import Indices
from healthwatch.stream.ring import Floats

_PARTS, _FEWEST, _MOST = 5.5, 4.5, 7
"""A window makes about so many blocks: three or four whole ones are more than half of it wherever it ends. They are
made anew where it has come to hold fewer or more.
"""

_GROWTH = 16
"""A bound holds for a window that has grown by this part."""


@dataclass(slots=True, eq=False)
class Block:
    """The least finite value of every series in rows [start, end); infinity where there is none."""

    start: int
    end: int
    least: Floats


class Minima:
    """The screen of `spike_ratio` where a breach is many times the median: the divisor is at most the median."""

    tolerant = True

    def __init__(self) -> None:
        self._limits = Limits()
        self._again = Again(0)
        self._rows = 1  # of a block
        self._blocks: list[Block] = []  # the last one may still grow
        self._holds = (0, 0, 0)  # the first row that must be in the window, and the most rows and gaps of it
        self._enough = 0  # rows without a lower value prove a bound

    def expect(self, bound: float) -> None:
        """Its limits are made alike for every bound."""

    def limit(self, bound: float) -> Floats:
        return self._limits.of(bound)

    def rebuild(self, span: Span) -> None:
        self._again = Again(len(span.part.columns))
        self._rows, self._blocks = math.ceil(span.count / _PARTS), []
        self._gather(span, range(span.start, span.now))
        self._measure(span)

    def move(self, span: Span, leaving: range, entering: range) -> None:  # noqa: ARG002 - blocks leave as a whole
        if not _FEWEST <= span.count / self._rows <= _MOST and span.count > _FEWEST:
            self.rebuild(span)
            return
        self._gather(span, entering)
        row, count, gaps = self._holds
        if span.start > row or span.count > count or span.gaps > gaps:
            self._measure(span)

    def improve(self, span: Span, which: Indices, bound: float) -> bool:
        """Series that come again are bounded by what all of their rows say."""
        again = self._again.note(self._limits.near(span, which, bound))
        if again is None:
            return False
        self._bound_closely(span, again)
        return True

    def _gather(self, span: Span, rows: range) -> None:
        for row in rows:
            values = span.row(row)
            if not span.finite(row):
                values = np.where(np.isfinite(values), values, math.inf)
            last = self._blocks[-1] if self._blocks else None
            if last is None or last.end - last.start == self._rows:
                self._blocks.append(Block(row, row + 1, values.copy()))
            else:
                np.minimum(last.least, values, out=last.least)
                last.end = row + 1

    def _measure(self, span: Span) -> None:
        """The bound that holds until the oldest of its blocks begins to leave."""
        self._blocks = [block for block in self._blocks if block.start >= span.start]
        whole = [block for block in self._blocks if block.end - block.start == self._rows]
        held = whole[1:] if whole and whole[0].start == span.start and len(whole) > 1 else whole
        count, gaps = span.count + span.count // _GROWTH, span.gaps + 1
        self._enough = count - (count - gaps - 1) // 2
        spare = len(held) - math.ceil(self._enough / self._rows)
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
