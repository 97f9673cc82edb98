"""What a training of the tests left behind, and when its faults were planted."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from healthwatch.alerting.model import Transition
from healthwatch.session import Session
from healthwatch.stream import Frame

# Dense: healthy, then the logits of one layer grow, then the learning rate is far too high, then a parameter is NaN.
DENSE_STEPS, LOGITS, CALM, DIVERGE, NAN = 66, 40, 46, 54, 62
# MoE: healthy, then layer 2 sends every token to the same two experts, then healthwatch itself is broken.
MOE_STEPS, COLLAPSE, BROKEN = 67, 61, 66
EXPERTS, TOP_K, TOKENS = 4, 2, 32  # tokens a micro-batch


@dataclass
class Training:
    """What a training left behind. `routed` is what the routers counted, pass by pass; `measured`, by micro-batch, the
    sums of squares that healthwatch computed itself at step 3; `ended_at` the step behind which the trainer told its
    callbacks the end.
    """

    session: Session
    frames: list[Frame]
    transitions: list[Transition]
    captures: list[dict[str, Any]]
    log: str
    steps_done: int
    folder: Path
    routed: list[np.ndarray] = field(default_factory=list)
    measured: list[dict[str, float]] = field(default_factory=list)
    ended_at: int = 0

    def fired_in(self, steps: range) -> set[str]:
        return {each.rule for each in self.transitions if each.reason == "fired" and each.now.step in steps}

    def fired(self) -> dict[str, int]:
        """Rules, with the step at which each fired first."""
        found: dict[str, int] = {}
        for each in self.transitions:
            if each.reason == "fired":
                found.setdefault(each.rule, each.now.step)
        return found

    def values(self, step: int, metric: str, micro_step: int | None = None) -> dict[str, float]:
        """By the labels' values joined with commas."""
        return {
            ",".join(value for _, value in labels): value
            for column in self.frames[step - 1].columns
            if column.series.metric == metric and column.micro_step == micro_step
            for labels, value in zip(column.series.labels, column.values.tolist(), strict=True)
        }
