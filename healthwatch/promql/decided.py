"""What became of the series that a screen could not decide."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from healthwatch.promql.moving import NO_SERIES
from healthwatch.promql.vector import Indices, Labels, Vector, everything, nothing, zeros
from healthwatch.stream.ring import Floats, Mask

if TYPE_CHECKING:
    from healthwatch.promql.screens import Pattern

NO_FLOATS = np.empty(0)


@dataclass(slots=True, eq=False)
class Decided:
    """What was computed of the series that could not be decided otherwise; all others are not kept."""

    labels: Labels
    which: Indices
    found: Floats
    unkept: Vector  # what is known, where none of it breaches
    most: float = -math.inf  # of what was found, NaN aside
    values: Floats | None = None  # with what was found in its place, once somebody asks
    by_count: dict[int, Vector] = field(default_factory=dict)  # of breaches: who breaches a bound breaches lower ones

    @classmethod
    def of(cls, labels: Labels, which: Indices, found: Floats, defined: Mask) -> Decided:
        """With the values of some series, as far as they are defined."""
        size, unkept = len(labels), labels.clear()
        if np.count_nonzero(defined) < len(defined):  # a third of what `all` takes
            known = everything(size).copy()
            known[which] = defined
            which, found = which[defined], found[defined]
            unkept = Vector(labels, zeros(size), nothing(size), known)
        return cls(labels, which, found, unkept, float(np.fmax.reduce(found, initial=-math.inf)))

    @classmethod
    def of_none(cls, labels: Labels) -> Decided:
        """Where everything was decided otherwise."""
        return cls(labels, NO_SERIES, NO_FLOATS, labels.clear())

    def compared(self, pattern: Pattern) -> Vector:
        """Where the most of what was found breaches."""
        one = len(self.found) == 1
        count = 1 if one else int(np.count_nonzero(pattern.compare(self.found)))
        vector = self.by_count.get(count)
        if vector is None:
            places = self.which if one else self.which[pattern.compare(self.found)]
            vector = self.by_count[count] = self._keeping(places)
        return vector

    def _keeping(self, places: Indices) -> Vector:
        size = len(self.labels)
        if self.values is None:
            self.values = np.empty(size)  # it takes as long to set them to 0 as all the rest
            self.values[self.which] = self.found
        kept = nothing(size).copy()
        kept[places] = True
        vector = Vector(self.labels, self.values, kept, self.unkept.known)
        vector.places = places
        return vector
