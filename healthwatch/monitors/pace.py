"""How often each monitor measures, and what it costs: a monitor that is too dear measures at fewer steps."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

WIDEST = 64  # steps


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

    def widen(self) -> tuple[str, int] | None:
        """Double the interval of the monitor that has cost most; None if all of them are as rare as they may be."""
        left = [(self.seconds[name], name) for name, interval in self.intervals.items() if interval < WIDEST]
        if not left or max(left)[0] == 0:
            return None
        dearest = max(left)[1]
        self.intervals[dearest] *= 2
        self.seconds.clear()
        return dearest, self.intervals[dearest]
