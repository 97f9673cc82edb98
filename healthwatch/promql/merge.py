"""Elements with the same labels are one: at most one of them may be kept at a tick."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from healthwatch.promql.groups import numbered
from healthwatch.promql.relabel import Clash
from healthwatch.promql.vector import Indices, Labels, Vector


@dataclass(frozen=True, slots=True)
class Merge:
    """`place` is where each element goes; None where they stay as they are, but for their `labels` (None: wholly)."""

    labels: Labels | None
    place: Indices | None

    @classmethod
    def shown(cls, labels: Labels) -> Merge:
        """As a result has them: names that were to be dropped are gone; always the same object."""
        return labels.once("shown", cls._shown)

    @classmethod
    def _shown(cls, labels: Labels) -> Merge:
        sets = labels.shown()
        member, keys = numbered(sets)
        if len(keys) == len(sets):
            return cls(None if labels.drop is None else Labels(sets), None)
        return cls(Labels(keys), member)

    @classmethod
    def distinct(cls, labels: Labels) -> Merge:
        """Within an expression: a name that is to be dropped still counts."""
        member, keys = numbered(zip(labels.sets, labels.dropped().tolist(), strict=True))
        if len(keys) == len(labels):
            return cls(None, None)
        return cls(Labels([each for each, _ in keys], np.array([drop for _, drop in keys], bool)), member)

    def __call__(self, vector: Vector) -> Vector:
        """Raises EvaluationError where two elements are kept that are one."""
        if self.labels is None:
            return vector
        if self.place is None:
            shown = Vector(self.labels, vector.values, vector.kept, vector.known, vector.order, vector.grade)
            shown.places = vector.places
            return shown
        Clash(self.place).check(vector.kept)
        size = len(self.labels)
        values, kept, known = np.full(size, np.nan), np.zeros(size, bool), np.zeros(size, bool)
        known[self.place[vector.known]] = True
        kept[self.place[vector.kept]] = True
        values[self.place[vector.kept]] = vector.values[vector.kept]
        order = None if vector.order is None else self.place[vector.order]
        return Vector(self.labels, values, kept, known, order)
