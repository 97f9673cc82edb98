"""The run's own time: which step of which attempt it is, and the seconds that stand still between attempts."""

from __future__ import annotations

from dataclasses import replace

from healthwatch.alerting.model import Now
from healthwatch.stream import Frame


class Clock:
    """Turns frames into `Now`, from recorded times only, so that a replay has the same clock."""

    def __init__(self) -> None:
        self._last: Now | None = None
        self._first = Now(0, 0.0)

    def at(self, frame: Frame) -> Now:
        last = self._last
        if last is None or frame.attempt != last.attempt:
            spent = 0.0 if last is None else last.clock
            self._first = Now(frame.step, frame.time, frame.attempt, spent)
        clock = self._first.clock + frame.time - self._first.time
        now = Now(frame.step, frame.time, frame.attempt, max(clock, 0.0 if last is None else last.clock))
        self._last = now
        return now

    def back(self, step: int) -> Now:
        """The moment at which a run that goes back stands before `step`, the first one to come again."""
        last = self._last or self._first
        self._first = Now(step, last.time, last.attempt, last.clock)
        self._last = Now(step, last.time, last.attempt, last.clock)
        return self._last

    def standing_at(self, time: float) -> Now:
        """The moment between two steps: the last step, with the wall clock gone on."""
        last = self._last or self._first
        return replace(last, time=time, clock=max(last.clock + time - last.time, last.clock))

    def still(self, time: float) -> float | None:
        """Wall seconds since the last step ended; None before the first one."""
        return None if self._last is None else max(time - self._last.time, 0.0)

    @property
    def moments(self) -> tuple[Now | None, Now]:
        """The last step, and the first one of the attempt."""
        return self._last, self._first

    def revive(self, last: Now | None, first: Now) -> None:
        self._last, self._first = last, first

    @property
    def attempt_step(self) -> int:
        """Steps since this attempt began, counted from 1."""
        return 1 if self._last is None else self._last.step - self._first.step + 1
