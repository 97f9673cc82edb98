"""From the vectors of a step's ticks to one verdict a label set.

Breach if any tick breached, else clear if any was clear, else no data.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from healthwatch.alerting.model import SAYS_BREACH, SAYS_CLEAR, SAYS_NO_DATA, LabelSet, Observation
from healthwatch.promql import Labels, Vector

MicroStep = Callable[[int], int | None]

_CLEAR, _NO_DATA = Observation(SAYS_CLEAR), Observation(SAYS_NO_DATA)


@dataclass(slots=True)
class Seen:
    """A rule's verdicts on all its label sets at one step: `breach` and `known` by position."""

    labels: Sequence[LabelSet]
    breach: NDArray[np.bool_]
    known: NDArray[np.bool_]
    ticks: tuple[tuple[int, Vector], ...]  # earliest first, all with the same labels
    micro_step: MicroStep  # names a tick as people count it; None at a step's end
    kept_up: tuple[int, ...] = ()  # positions whose firing alert the rule's `until` keeps up though they are clear
    places: NDArray[np.intp] | None = None  # of the breaches, where they are known

    def values(self, positions: NDArray[np.intp]) -> NDArray[np.float64]:
        """The values at the first tick that breached, for positions that breach."""
        if len(self.ticks) == 1:
            return self.ticks[0][1].values[positions]
        found = np.empty(len(positions))
        for _, vector in reversed(self.ticks):
            kept = vector.kept[positions]
            found[kept] = vector.values[positions[kept]]
        return found

    def micro_steps(self, positions: NDArray[np.intp]) -> NDArray[np.int32]:
        """The micro-step (from 1) of the first tick that breached, for positions that breach; -1 at a step's end."""
        found = np.full(len(positions), -1, np.int32)
        for tick, vector in reversed(self.ticks):
            micro_step = self.micro_step(tick)
            found[vector.kept[positions]] = -1 if micro_step is None else micro_step
        return found

    def observation(self, position: int) -> Observation:
        """The verdict on one label set; without a place in the result (-1) nothing is known of it."""
        if position < 0:
            return _NO_DATA
        if not self.breach[position]:
            return _CLEAR if self.known[position] else _NO_DATA
        ticks = self.ticks
        tick, vector = ticks[0] if len(ticks) == 1 else next(each for each in ticks if each[1].kept[position])
        return Observation(SAYS_BREACH, float(vector.values[position]), self.micro_step(tick))


def fold(ticks: Sequence[tuple[int, Vector]], labels: Sequence[LabelSet], micro_step: MicroStep) -> Seen:
    """The verdicts of a step. Without a tick at which the rule was due, nothing is known of `labels`."""
    if not ticks:
        nothing = np.zeros(len(labels), bool)
        return Seen(labels, nothing, nothing, (), micro_step)
    if len(ticks) == 1:
        vector = ticks[0][1]
        return Seen(vector.labels, vector.kept, vector.known, tuple(ticks), micro_step, places=vector.places)
    vectors = _alike([vector for _, vector in ticks])
    return Seen(
        vectors[0].labels,
        np.logical_or.reduce([vector.kept for vector in vectors]),
        np.logical_or.reduce([vector.known for vector in vectors]),
        tuple((tick, vector) for (tick, _), vector in zip(ticks, vectors, strict=True)),
        micro_step,
    )


def _alike(vectors: Sequence[Vector]) -> Sequence[Vector]:
    """The vectors of a step on one list of label sets; it differs between ticks only when a series is new."""
    first = vectors[0].labels
    if all(vector.labels is first for vector in vectors):
        return vectors
    labels = Labels(dict.fromkeys(each for vector in reversed(vectors) for each in vector.labels))
    return [_spread(vector, labels) for vector in vectors]


def _spread(vector: Vector, labels: Labels) -> Vector:
    places = {each: place for place, each in enumerate(labels)}
    target = np.array([places[each] for each in vector.labels], dtype=np.intp)
    values = np.full(len(labels), np.nan)
    kept, known = np.zeros(len(labels), bool), np.zeros(len(labels), bool)
    values[target], kept[target], known[target] = vector.values, vector.kept, vector.known
    return Vector(labels, values, kept, known)
