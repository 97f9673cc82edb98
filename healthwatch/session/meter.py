"""What healthwatch itself costs: seconds by part, and a budget of the step time."""

from __future__ import annotations

import threading
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence

from healthwatch.monitors.pace import Pace, Widened

PARTS = ("monitor", "engine", "record", "actions")
WINDOW = 50  # steps between two looks at the budget, at least
SETTLING = 10  # first steps that are no measure
GAIN = 0.9  # of the share before: a wider interval that does not bring it below this was in vain

_ACTIONS = ("profile", "log", "notify", "message", "command", "stop", "control", "reload")
_PART_OF: Mapping[str, str] = {"engine": "engine", "recording": "record"} | dict.fromkeys(_ACTIONS, "actions")

_ADVICE: Mapping[str, str] = {
    "monitor": "what is left of monitors is needed at every step: give them a larger budget",
    "engine": "most of it are rules: fewer of them, or fewer series, or a larger budget",
    "record": "most of it is the recording: a faster disk, fewer series, or a larger budget",
    "actions": "most of it are actions: fewer messages and captures, or a larger budget",
}


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
    """Lets the dearest monitor measure more rarely while healthwatch takes more than a share of the step time.

    All parts count, for fewer samples spare the rules and the recording, too. Two windows in a row must be over the
    budget before anything is done, so that a capture or a burst of messages changes nothing. A monitor whose interval
    was widened in vain has it back, and is then left alone: intervals never go to and fro.
    """

    def __init__(self, share: float) -> None:
        self.share = share
        self._settling = SETTLING
        self._over = 0  # windows in a row
        self._widened: Widened | None = None  # last of all, and
        self._before = 0.0  # the share of the step time until then
        self._in_vain: set[str] = set()
        self._at_its_end = False
        self._begin()

    def _begin(self) -> None:
        self._steps, self._time, self._parts = 0, 0.0, [0.0] * len(PARTS)

    def account(self, taken: Sequence[float], step_time: float, pace: Pace) -> str | None:
        """A step is over, of which healthwatch took `taken` seconds by part; returns what is to be said of it."""
        pace.next_step()
        if self._settling:  # plans are made in the first steps
            self._settling -= 1
            pace.seconds.clear()
            return None
        self._steps += 1
        self._time += step_time
        self._parts = [before + now for before, now in zip(self._parts, taken, strict=True)]
        if self._steps < max(WINDOW, 2 * max(pace.intervals.values(), default=1)):
            return None
        shares = [part / self._time if self._time > 0 else 0.0 for part in self._parts]
        self._begin()
        return self._look(shares, pace)

    def _look(self, shares: Sequence[float], pace: Pace) -> str | None:
        total = sum(shares)
        self._over = self._over + 1 if total > self.share else 0
        widened, self._widened = self._widened, None
        in_vain = ""
        if self._over and widened is not None and total > GAIN * self._before:
            pace.undo(widened)
            self._in_vain.add(widened.monitor)
            in_vain = f"measuring {widened.monitor} more rarely has spared next to nothing and is undone; "
        if self._over < 2:
            pace.seconds.clear()
            return None
        self._widened, self._before = pace.widen(self._in_vain), total
        if self._widened is not None:
            often = _often(self._widened.interval)
            return f"{self._said(shares)}: {in_vain}{self._widened.monitor} are measured at {often} from now on"
        if self._at_its_end:
            return None
        self._at_its_end = True
        dearest = max(zip(shares, PARTS, strict=True))[1]
        return f"{self._said(shares)}: {in_vain}no monitor is left to measure more rarely; {_ADVICE[dearest]}"

    def _said(self, shares: Sequence[float]) -> str:
        dearest = sorted(zip(shares, PARTS, strict=True), reverse=True)
        parts = ", ".join(f"{part} {share:.1%}" for share, part in dearest)
        budget = f"{100 * self.share:.3g}%"
        return f"healthwatch takes {sum(shares):.1%} of the step time ({parts}), over the budget of {budget}"


def _often(interval: int) -> str:
    return "every other step" if interval == 2 else f"one of {interval} steps"
