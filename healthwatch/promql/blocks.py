"""The least values of a few rows each: what several screens of a moving window need, for one comparison a step."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from healthwatch.promql.moving import Span
from healthwatch.stream.ring import Floats

_PARTS, _FEWEST, _MOST = 5.5, 4.5, 6
"""A window makes about so many blocks: three or four whole ones are more than half of it wherever it ends. They are
made anew where it has come to hold fewer or more.
"""

_MOST_FILLING = 7
"""Of a window that grows: it will soon hold more rows, whatever a block has."""


@dataclass(slots=True, eq=False)
class Block:
    """The least finite value of every series in rows [start, end); infinity where there is none."""

    start: int
    end: int
    least: Floats


class Blocks:
    """The blocks of a window, oldest first; what is made of them holds on when they are made anew."""

    def __init__(self) -> None:
        self.rows = 1  # of a block
        self._blocks: list[Block] = []  # the last one may still grow

    def rebuild(self, span: Span) -> None:
        self.rows, self._blocks = math.ceil(span.count / _PARTS), []
        self._gather(span, range(span.start, span.now))

    def move(self, span: Span, leaving: range, entering: range) -> None:
        most = _MOST if leaving else _MOST_FILLING
        if not _FEWEST <= span.count / self.rows <= most and span.count > _FEWEST:
            self.rebuild(span)
            return
        self._gather(span, entering)

    @property
    def missing(self) -> int:
        """How many rows must come for the next block to be whole."""
        last = self._blocks[-1]
        return self.rows - (last.end - last.start) % self.rows

    def whole(self, first: int) -> list[Block]:
        """The blocks that have all of their rows, none of them before row `first`."""
        return [block for block in self._blocks if block.start >= first and block.end - block.start == self.rows]

    def _gather(self, span: Span, rows: range) -> None:
        for row in rows:
            values = span.row(row)
            if not span.finite(row):
                values = np.where(np.isfinite(values), values, math.inf)
            last = self._blocks[-1] if self._blocks else None
            if last is None or last.end - last.start == self.rows:
                self._blocks = [block for block in self._blocks if block.start >= span.start]
                self._blocks.append(Block(row, row + 1, values.copy()))
            else:
                np.minimum(last.least, values, out=last.least)
                last.end = row + 1
