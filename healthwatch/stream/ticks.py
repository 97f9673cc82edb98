"""The step axis: integer ticks, and durations in steps or in wall-clock seconds."""

from __future__ import annotations

import operator
import re
from dataclasses import dataclass
from typing import SupportsIndex

TICKS_PER_STEP = 1_000_000
LAST_STEP = 1 << 40  # its ticks fit into 64 bits many times over

_WALL = re.compile(r"(?P<number>\d+(?:\.\d+)?)(?P<unit>ms|s|m|h|d)")
_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}


def tick_of(step: int, micro_step: int | None = None, micro_steps: int = 1) -> int:
    """The tick of micro-step `micro_step` (from 0) of `micro_steps`, or of the step's end."""
    if micro_step is None:
        return step * TICKS_PER_STEP
    return (step - 1) * TICKS_PER_STEP + round(TICKS_PER_STEP * (micro_step + 1) / micro_steps)


def step_of(tick: int) -> int:
    """The step in which a tick lies: (step-1, step]."""
    return -(-tick // TICKS_PER_STEP)


def counted(what: str, value: SupportsIndex, last: int) -> int:
    """A number of a step or micro-step as an int of Python, whichever library's integer it is.

    Raises TypeError for what is no integer, ValueError for one that is not in 0..last.
    """
    number = int(operator.index(value))
    if not 0 <= number <= last:
        raise ValueError(f"{what}: {number} is not in 0..{last}")
    return number


@dataclass(frozen=True, slots=True)
class Duration:
    """A number of steps, or wall-clock seconds: exactly one of them is set."""

    steps: int | None = None
    seconds: float | None = None

    def elapsed(self, steps: int, seconds: float) -> bool:
        """Whether at least this duration has passed."""
        if self.steps is not None:
            return steps >= self.steps
        return self.seconds is not None and seconds >= self.seconds

    def __str__(self) -> str:
        return f"{self.steps} steps" if self.steps is not None else f"{self.seconds:g}s"


def parse_duration(value: object) -> Duration | None:
    """`20` is steps, `"10m"` or `"1h30m"` wall clock; anything else is None."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return Duration(steps=value) if value >= 0 else None
    if not isinstance(value, str) or not re.fullmatch(
        rf"(?:{_WALL.pattern.replace('?P<number>', '').replace('?P<unit>', '')})+", value
    ):
        return None
    return Duration(seconds=sum(float(found["number"]) * _SECONDS[found["unit"]] for found in _WALL.finditer(value)))
