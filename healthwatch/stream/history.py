"""The recent samples of every metric, as far back as the compiled rules look."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numpy.typing import NDArray

from healthwatch.stream.frame import Frame
from healthwatch.stream.ring import ABSENT, STALE, Ring
from healthwatch.stream.series import Series, SeriesTable
from healthwatch.stream.ticks import tick_of

__all__ = ["ABSENT", "STALE", "History", "Keep"]

Keep = Callable[[int], int]
"""Given the newest tick, the oldest tick of a metric's rows that are still needed."""

_EVERYTHING = -(1 << 62)


class History:
    """One ring a metric. Until `retain` is called it keeps every row.

    `changes` counts what alters the past (rewinds, late rows): whoever caches across ticks compares it;
    `writes` counts everything.
    """

    def __init__(self, table: SeriesTable) -> None:
        self.table = table
        self.newest: int | None = None
        self._rings: dict[str, Ring] = {}
        self._keep: Callable[[str], Keep | None] | None = None
        self.changes = 0
        self.writes = 0

    def append(self, tick: int, series: Series, values: NDArray[Any], looked_at: int | None = None) -> None:
        """Write one value a series at a tick; STALE marks the end of a series, ABSENT is no sample.

        Ticks should ascend within a metric: an earlier one is put in its place at the cost of a move. What is needed
        at `looked_at` stays, where that is earlier.
        """
        ring = self.ring(series.metric)
        now = tick if looked_at is None else looked_at
        keep_from = self._keep_from(series.metric, now) if ring.full() else _EVERYTHING
        before = ring.changes
        ring.put(tick, series.place, values, keep_from)
        late = self.newest is not None and tick < self.newest
        self.changes += ring.changes - before + late
        self.writes += 1
        if self.newest is None or tick > self.newest:
            self.newest = tick

    def extend(self, *frames: Frame) -> None:
        """Write frames of ascending steps; what is needed at the first of them stays."""
        looked_at = tick_of(frames[0].step - 1) if len(frames) > 1 else None
        for frame in frames:
            for column in frame.columns:
                self.append(column.tick, column.series, column.values, looked_at)

    def rewind(self, tick: int) -> None:
        """Drop every row later than `tick`."""
        for ring in self._rings.values():
            ring.drop_after(tick)
        self.changes += 1
        self.writes += 1
        if self.newest is not None and self.newest > tick:
            self.newest = tick

    def retain(self, keep: Callable[[str], Keep | None]) -> None:
        """From now on a full ring drops what is older than `keep(metric)(newest)`; None keeps the newest row."""
        self._keep = keep

    def trim(self) -> None:
        """Drop what a ring still holds although nobody needs it: how much that is depends on how it was filled."""
        for metric, ring in list(self._rings.items()):  # what a selector finds may be another ring
            if ring.end > ring.first and self.newest is not None:
                own = ring.tick(ring.end - 1)
                ring.drop_before(min(own, self._keep_from(metric, self.newest)))

    def ring(self, metric: str) -> Ring:
        """The rows of a metric, as wide as its series are now."""
        width = self.table.width(metric)
        ring = self._rings.get(metric)
        if ring is None:
            ring = self._rings[metric] = Ring(width)
        elif ring.width < width:
            ring.widen(width)
        return ring

    def nbytes(self) -> int:
        return sum(ring.nbytes for ring in self._rings.values())

    def _keep_from(self, metric: str, tick: int) -> int:
        if self._keep is None:
            return _EVERYTHING
        keep = self._keep(metric)
        return tick if keep is None else keep(tick)
