"""Subqueries: an expression evaluated at every multiple of a step, as a window."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from healthwatch.promql.merge import Merge
from healthwatch.promql.node import VectorNode
from healthwatch.promql.vector import Derived, Labels, Moment, Vector, nothing
from healthwatch.promql.window import Window
from healthwatch.stream import History
from healthwatch.stream.ring import Mask
from healthwatch.stream.series import LabelSet


@dataclass(slots=True)
class Subquery:
    """Results of earlier ticks are kept as long as the window reaches them and the past has not changed."""

    inner: VectorNode
    window: int
    step: int
    history: History
    end_of: Callable[[Moment], int]
    _kept: dict[int, Vector] = field(default_factory=dict)
    _valid: tuple[int, int] = (-1, -1)
    _distinct: Derived[Merge] = field(default_factory=lambda: Derived(Merge.distinct))

    def __call__(self, moment: Moment) -> Window:
        end = self.end_of(moment)
        start = end - self.window
        ticks = range((start // self.step + 1) * self.step, end + 1, self.step)
        self._forget(start)
        return stacked(ticks, [self._result(tick, moment) for tick in ticks], start, end)

    def _result(self, tick: int, moment: Moment) -> Vector:
        found = self._kept.get(tick)
        if found is None:
            found = self.inner.at(moment._replace(tick=tick))
            found = self._distinct(found.labels)(found)
            newest = self.history.newest
            if self.inner.timeless and newest is not None and tick < newest:
                found = self._kept[tick] = replace(found, values=found.values.copy())
        return found

    def _forget(self, start: int) -> None:
        valid = self.history.changes, self.history.table.version
        if valid != self._valid:
            self._valid = valid
            self._kept.clear()
        for tick in [tick for tick in self._kept if tick <= start]:
            del self._kept[tick]


def stacked(ticks: Sequence[int], vectors: Sequence[Vector], start: int, end: int) -> Window:
    """The kept elements of vectors as samples, and known what was known at any of the ticks."""
    labels = vectors[-1].labels if vectors else Labels(())
    if any(vector.labels is not labels for vector in vectors):
        labels, vectors = _aligned(vectors)
    if not vectors:
        return Window(labels, np.empty(0, np.int64), (np.empty((0, 0)),), None, start, end)
    values = np.array([vector.values for vector in vectors])
    whole = all(vector.complete() for vector in vectors)
    present: Mask | None = None if whole else np.array([vector.kept for vector in vectors])
    known = None if whole else np.logical_or.reduce([vector.known for vector in vectors])
    return Window(labels, np.array(ticks, dtype=np.int64), (values,), present, start, end, known)


def _aligned(vectors: Sequence[Vector]) -> tuple[Labels, list[Vector]]:
    """All vectors on the union of their label sets."""
    places: dict[tuple[LabelSet, bool], int] = {}
    keys = [list(zip(v.labels.sets, v.labels.dropped().tolist(), strict=True)) for v in vectors]
    where = [np.array([places.setdefault(key, len(places)) for key in each], dtype=np.intp) for each in keys]
    labels = Labels([labels for labels, _ in places], np.array([drop for _, drop in places], bool))
    spread = []
    for vector, at in zip(vectors, where, strict=True):
        values = np.full(len(labels), np.nan)
        kept, known = nothing(len(labels)).copy(), nothing(len(labels)).copy()
        values[at], kept[at], known[at] = vector.values, vector.kept, vector.known
        spread.append(Vector(labels, values, kept, known))
    return labels, spread
