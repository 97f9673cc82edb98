"""One URL of a receiver: its line of notices and the daemon thread that empties it."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace

from healthwatch.actions.notify.line import Answer, Line, Pace, Waiting, admit, settle, take, wakes, without
from healthwatch.actions.notify.services import Door
from healthwatch.alerting.model import Notice

PATIENCE = 3  # 429 answers in a row before a receiver counts as failing


@dataclass(frozen=True, slots=True)
class LaneState:
    """What has become of one URL's notices; `failing` says why the last attempt failed, None where it did not."""

    receiver: str
    url: str  # masked
    waiting: int
    accepted: int
    failed: int
    dropped: int
    failing: str | None
    target: int  # which URL of the receiver, from 1
    failures: int  # in a row


class Lane:
    """Its own thread for its own URL: a server that never answers holds up nobody else.

    The thread is a daemon: whatever the server does, the process ends without it.
    """

    def __init__(
        self,
        receiver: str,
        target: int,
        service: Door,
        pace: Pace,
        *,
        on_accepted: Callable[[Notice], None],
        on_failing: Callable[[str], None],
    ) -> None:
        self.receiver, self.target, self.service, self.pace = receiver, target, service, pace
        self._on_accepted, self._on_failing = on_accepted, on_failing
        self._line = Line()
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None
        self._ends: float | None = None  # when the lane is to end, once it is
        self._in_flight = False
        self._failing: str | None = None
        self._accepted = self._failed = self._dropped = self._in_a_row = 0

    def put(self, notice: Notice) -> None:
        """Queue a notice, at once: no attempt is waited for."""
        with self._changed:
            self._line, dropped = admit(self._line, notice, self.pace.backlog)
            self._dropped += dropped is not None
            if self._thread is None:
                self._start()
            self._changed.notify()

    def drop(self, notice_id: str) -> None:
        """A notice need not be sent any more; one that is on the wire is."""
        with self._changed:
            self._line = without(self._line, notice_id)

    def leave(self) -> list[Notice]:
        """End after what is on the wire; returns what else is waiting."""
        with self._changed:
            left = [entry.notice for entry in self._line.waiting]
            self._line, self._ends = replace(self._line, waiting=()), 0.0
            self._changed.notify()
        return left

    def ended(self) -> bool:
        """Whether nothing is sent from here any more."""
        return self._thread is None or not self._thread.is_alive()

    def _start(self) -> None:
        thread = threading.Thread(target=self._work, name="healthwatch-notify", daemon=True)
        with suppress(RuntimeError):  # no more threads: the next notice tries again, and the outbox keeps this one
            thread.start()
            self._thread = thread

    def finish(self, timeout: float) -> None:
        """No notice comes any more: what is left is tried now, up to the first failure or the end of the time.

        A message that is refused is no failure of the service: it is tried shorter, and the others after it.
        """
        with self._changed:
            self._ends = time.monotonic() + timeout
            if self._line.failures and not self._line.busy:
                self._line = replace(self._line, opens=0.0)
            self._changed.notify()

    def join(self, timeout: float) -> None:
        if self._thread is not None:
            self._thread.join(max(timeout, 0.0))

    def state(self) -> LaneState:
        with self._changed:
            waiting = len(self._line.waiting) + self._in_flight
            return LaneState(
                self.receiver,
                self.service.name,
                waiting,
                self._accepted,
                self._failed,
                self._dropped,
                self._failing,
                self.target,
                self._in_a_row,
            )

    def _work(self) -> None:
        while (entry := self._next()) is not None:
            answer = self.service.send(entry.notice, entry.limit, lambda: self._ends is not None)
            self._settle(entry, answer)

    def _next(self) -> Waiting | None:
        """The next notice, once it is due; None when the lane is to end."""
        with self._changed:
            while True:
                now = time.monotonic()
                due = wakes(self._line)
                if self._ends is not None and (due is None or max(due, now) >= self._ends):
                    return None
                entry, self._line = take(self._line, now)
                if entry is not None:
                    self._in_flight = True
                    return entry
                self._changed.wait(None if due is None else max(due - now, 0.0))

    def _settle(self, entry: Waiting, answer: Answer) -> None:
        if answer.accepted:
            self._on_accepted(entry.notice)  # first: who sees it counted finds it told
        with self._changed:
            self._line = settle(self._line, entry, answer, time.monotonic(), random.random(), self.pace)
            self._in_flight = False
            self._accepted += answer.accepted
            self._failed += not answer.accepted
            self._in_a_row = 0 if answer.accepted else self._in_a_row + 1
            if self._ends is not None and not (answer.accepted or answer.content_refused):
                self._ends = 0.0
            news = self._news(answer)
        if news:
            self._on_failing(answer.why)

    def _news(self, answer: Answer) -> bool:
        """Whether this answer begins a failing spell: told once, until something is accepted again."""
        if answer.accepted:
            self._failing = None
            return False
        patient = answer.busy and self._line.failures < PATIENCE and self._ends is None
        known = self._failing is not None
        self._failing = self._failing if patient else answer.why
        return not known and not patient
