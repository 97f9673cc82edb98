"""From the vectors of a step's ticks to one observation a label set.

Breach if any tick breached, else clear if any was clear, else no data.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from healthwatch.alerting.model import LabelSet, Observation, Verdict
from healthwatch.promql import Vector

NO_DATA = Observation(Verdict.NO_DATA)
CLEAR = Observation(Verdict.CLEAR)


@dataclass(slots=True)
class Positions:
    """Where a label set stands in a vector; rebuilt only when the set of series has changed."""

    labels: Sequence[LabelSet] = ()
    index: Mapping[LabelSet, int] = field(default_factory=dict)

    def of(self, vector: Vector) -> Mapping[LabelSet, int]:
        if self.labels is not vector.labels:
            self.labels = vector.labels
            self.index = {labels: position for position, labels in enumerate(vector.labels)}
        return self.index


def observe(
    ticks: Sequence[tuple[int, Vector]],
    live: Collection[LabelSet],
    positions: Positions,
    micro_step: Callable[[int], int | None],
) -> dict[LabelSet, Observation]:
    """The observations of a step that matter: every breach, and whatever is known of the alerts that live.

    `ticks` holds (tick, vector), earliest first; `micro_step` names a tick as people count it, None at a step's end.
    """
    seen: dict[LabelSet, Observation] = {}
    for tick, vector in ticks:
        breaching = np.flatnonzero(vector.kept)
        number = micro_step(tick) if len(breaching) else None
        for position in breaching:
            labels = vector.labels[position]
            if labels not in seen:
                seen[labels] = Observation(Verdict.BREACH, float(vector.values[position]), number)
    for labels in live:
        if labels not in seen:
            seen[labels] = CLEAR if _known(labels, ticks, positions) else NO_DATA
    return seen


def _known(labels: LabelSet, ticks: Sequence[tuple[int, Vector]], positions: Positions) -> bool:
    for _, vector in ticks:
        position = positions.of(vector).get(labels)
        if position is not None and vector.known[position]:
            return True
    return False
