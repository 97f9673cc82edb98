"""What healthwatch itself costs: seconds by part, and a budget of the step time."""

from __future__ import annotations

import threading
import time
from collections import defaultdict
from collections.abc import Mapping

from healthwatch.monitors.pace import Pace

PARTS = ("monitor", "engine", "record", "actions")
WINDOW = 50  # steps between two looks at the budget

_ACTIONS = ("profile", "log", "notify", "message", "command", "stop", "control", "reload")
_PART_OF: Mapping[str, str] = {"engine": "engine", "recording": "record"} | dict.fromkeys(_ACTIONS, "actions")


class Meter:
    """A stopwatch for the blocks of a guard: what begins inside another block stops that one's clock.

    Only the thread that made it is measured, which is the one of the training loop.
    """

    def __init__(self) -> None:
        self._seconds: dict[str, float] = defaultdict(float)
        self._running: list[str] = []
        self._since = 0.0
        self._thread = threading.get_ident()

    def enter(self, block: str) -> bool:
        if threading.get_ident() != self._thread:
            return False
        self._pass()
        self._running.append(block)
        return True

    def leave(self) -> None:
        self._pass()
        self._running.pop()

    def _pass(self) -> None:
        now = time.perf_counter()
        if self._running:
            self._seconds[self._running[-1]] += now - self._since
        self._since = now

    def take(self) -> list[float]:
        """Seconds since the last call, in the order of `PARTS`: what runs now goes on."""
        self._pass()
        seconds, self._seconds = self._seconds, defaultdict(float)
        parts = dict.fromkeys(PARTS, 0.0)
        for block, taken in seconds.items():
            parts[_PART_OF.get(block, "monitor")] += taken
        return list(parts.values())


class Budget:
    """Lets the dearest monitor measure more rarely while the monitors take more than a share of the step time."""

    def __init__(self, share: float) -> None:
        self.share = share
        self._begin()

    def _begin(self) -> None:
        self._steps, self._taken, self._time = 0, 0.0, 0.0

    def account(self, monitors: float, step_time: float, pace: Pace) -> str | None:
        """A step is over, in which the monitors took `monitors` seconds; says so where it makes one of them rarer."""
        pace.next_step()
        self._steps += 1
        self._taken += monitors
        self._time += step_time
        if self._steps < WINDOW:
            return None
        share = self._taken / self._time if self._time > 0 else 0.0
        self._begin()
        widened = pace.widen() if share > self.share else None
        if widened is None:
            return None
        name, interval = widened
        often = "every other step" if interval == 2 else f"one of {interval} steps"
        over = f"monitors take {share:.1%} of the step time, over the budget of {100 * self.share:.3g}%"
        return f"{over}: {name} are measured at {often} from now on"
