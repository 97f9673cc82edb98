"""How often each monitor measures, and what it costs: a monitor that is too dear measures at fewer steps."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

WIDEST = 64  # steps


@dataclass(frozen=True, slots=True)
class Widened:
    """A monitor that measures at one of `interval` steps from now on, half as often as before."""

    monitor: str
    interval: int


class Pace:
    """The intervals of the monitors of an integration, in steps, and the seconds that they have taken."""

    def __init__(self, monitors: Iterable[str]) -> None:
        self.intervals = dict.fromkeys(monitors, 1)
        self.seconds: dict[str, float] = defaultdict(float)
        self._step = 0

    def due(self, monitor: str) -> bool:
        """Whether it measures at the step under way."""
        return self._step % self.intervals[monitor] == 0

    def next_step(self) -> None:
        self._step += 1

    @contextmanager
    def timed(self, monitor: str) -> Iterator[None]:
        began = time.perf_counter()
        try:
            yield
        finally:
            self.seconds[monitor] += time.perf_counter() - began

    def widen(self, but: Collection[str] = ()) -> Widened | None:
        """Double the interval of the monitor that has cost most, `but` some; None if all are as rare as they may be."""
        left = [name for name, interval in self.intervals.items() if interval < WIDEST and name not in but]
        seconds, name = max(((self.seconds[name], name) for name in left), default=(0.0, ""))
        self.seconds.clear()
        if not seconds:
            return None
        self.intervals[name] *= 2
        return Widened(name, self.intervals[name])

    def undo(self, widened: Widened) -> None:
        self.intervals[widened.monitor] = widened.interval // 2
