"""Sums over time of whole numbers, kept up by what comes and goes: every order of adding such numbers is exact."""

from __future__ import annotations

from healthwatch.promql.select import Part
from healthwatch.promql.vector import Labels
from healthwatch.stream import History
from healthwatch.stream.ring import Floats

_MOST_ROWS = 100_000


class Running:
    """The sum of the rows of one range; for anything but whole numbers it has no answer.

    Beyond 2**53 float64 no longer holds every whole number, so the rows' numbers are bounded far below that.
    """

    def __init__(self, history: History) -> None:
        self._history = history
        self._of: tuple[Labels | None, Part | None, int] = (None, None, -1)
        self._rows = range(0)
        self._total: Floats | None = None

    def total(self, labels: Labels, part: Part, rows: range) -> Floats | None:
        """The sum of these rows; the same array until the next call."""
        ring, before = part.ring, self._rows
        of = labels, part, self._history.changes
        moved = rows.stop - before.stop + rows.start - before.start
        goes_on = (
            self._total is not None
            and all(now is then or now == then for now, then in zip(of, self._of, strict=True))
            and before.start <= rows.start <= before.stop <= rows.stop
            and before.start >= ring.first
            and moved < len(rows)
        )
        coming = range(before.stop, rows.stop) if goes_on else rows
        self._of, self._rows = of, rows
        if not 0 < len(rows) <= _MOST_ROWS or not all(ring.counts(row) for row in reversed(coming)):
            self._total = None
            return None
        if goes_on and self._total is not None:
            for row in coming:
                self._total += ring.row(row)[part.place]
            for row in range(before.start, rows.start):
                self._total -= ring.row(row)[part.place]
        else:
            self._total = ring.row(rows.start)[part.place].copy()
            for row in rows[1:]:
                self._total += ring.row(row)[part.place]
        return self._total
