"""Hands notices to receivers in the background, and says what became of them."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Iterable, Mapping
from functools import partial
from typing import TypeVar

from healthwatch.actions.notify.lane import Lane, LaneState
from healthwatch.actions.notify.line import Pace
from healthwatch.actions.notify.services import Door, doors_of
from healthwatch.alerting.model import Acceptance, Notice, Untold
from healthwatch.config import Receiver
from healthwatch.diagnostics import Diagnostic

MOST_SEEN = 10_000  # notices that are known not to be sent again; far more than may wait

T = TypeVar("T")


class Delivery:
    """One lane for every URL of every receiver. No method raises or waits, but `close`, for at most its timeout.

    A notice is accepted as a whole once every URL of its receiver has accepted it; until then it stays in the
    outbox, with the URLs that need not be told again.
    """

    def __init__(self, receivers: Mapping[str, Receiver], *, pace: Pace | None = None) -> None:
        self._receivers = receivers
        self._pace = pace or Pace()
        self._lanes: dict[str, tuple[Lane, ...]] = {}
        self._missing: dict[str, set[int]] = {}  # notice id -> URLs that have not accepted it yet
        self._seen: dict[str, None] = {}  # ids, oldest first
        self._accepted: deque[Acceptance] = deque()
        self._problems: deque[Diagnostic] = deque()
        self._leaving: list[Lane] = []  # of receivers that have changed, with something on the wire
        self._lock = threading.Lock()
        self._closed = False

    def send(self, notices: Iterable[Notice]) -> None:
        """Queue notices; one whose id was seen before is told already, or waits already."""
        self.resume(Untold(notice) for notice in notices)

    def resume(self, untold: Iterable[Untold]) -> None:
        """Queue notices for the URLs that have not taken them."""
        for each in untold:
            notice = each.notice
            if self._closed or notice.id in self._seen:
                continue
            self._seen[notice.id] = None
            if len(self._seen) > MOST_SEEN:
                del self._seen[next(iter(self._seen))]
            lanes = self._lanes_of(notice.receiver)
            left = [lane for lane in lanes if lane.target not in each.done]
            with self._lock:
                self._missing[notice.id] = {lane.target for lane in left}
            if lanes and not left:
                self._accepted.append(Acceptance(notice.id, lanes[0].target, time.time(), whole=True))
            for lane in left:
                lane.put(notice)

    def told_elsewhere(self, acceptances: Iterable[Acceptance]) -> None:
        """Somebody else (`healthwatch deliver`) has delivered these: they are not sent from here any more."""
        for each in acceptances:
            for lane in self._all_lanes():
                if each.whole or lane.target == each.target:
                    lane.drop(each.notice)
            with self._lock:
                self._missing.get(each.notice, set()).discard(each.target)
            self._accepted.append(each)

    def renew(self, receivers: Mapping[str, Receiver]) -> None:
        """Other receivers from now on: what waits for one that has changed goes to where it is now.

        Receivers that are as before go on, failures and pauses included.
        """
        changed = [name for name in self._lanes if receivers.get(name) != self._receivers.get(name)]
        self._receivers = dict(receivers)
        for name in changed:
            lanes = self._lanes.pop(name)
            self._send_again(notice for lane in lanes for notice in lane.leave())
            self._leaving += lanes

    def _send_again(self, notices: Iterable[Notice]) -> None:
        """Queue notices that wait for a receiver as it was, once each."""
        waiting = {notice.id: notice for notice in notices}
        with self._lock:
            for each in waiting:
                self._missing.pop(each, None)
        for each in waiting:
            self._seen.pop(each, None)
        self.send(notice for notice in waiting.values() if notice.receiver in self._receivers)

    def _follow(self) -> None:
        """What was on the wire when its receiver changed, and was not accepted there, goes to where it is now."""
        gone = [lane for lane in self._leaving if lane.ended()]
        self._leaving = [lane for lane in self._leaving if lane not in gone]
        self._send_again(notice for lane in gone for notice in lane.leave())

    def drain(self) -> list[Acceptance]:
        """What was accepted since the last call."""
        if self._leaving:
            self._follow()
        return _emptied(self._accepted)

    def problems(self) -> list[Diagnostic]:
        """Receivers that began to fail since the last call; each is told once until it works again."""
        return _emptied(self._problems)

    def state(self) -> tuple[LaneState, ...]:
        return tuple(lane.state() for lane in self._all_lanes())

    def close(self, timeout: float = 5.0) -> None:
        """Try what is left for at most `timeout` seconds; what is left then stays in the outbox."""
        if self._closed:
            return
        end = time.monotonic() + timeout
        for lane in self._leaving:
            lane.join(end - time.monotonic())
        self._follow()
        self._closed = True
        lanes = self._all_lanes()
        for lane in lanes:
            lane.finish(timeout)
        for lane in lanes:
            lane.join(end - time.monotonic())
        for state in self.state():
            if state.waiting + state.dropped:
                gave_way = f", {state.dropped} of them gave way to others" if state.dropped else ""
                left = f"{state.waiting + state.dropped} notices are not delivered and stay in the outbox{gave_way}"
                self._report(state.receiver, state.url, left)

    def _all_lanes(self) -> list[Lane]:
        return [lane for lanes in self._lanes.values() for lane in lanes]

    def _lanes_of(self, name: str) -> tuple[Lane, ...]:
        """The lanes of a receiver, made when it is first written to."""
        if name not in self._lanes:
            receiver = self._receivers.get(name)
            if receiver is None:
                self._problems.append(Diagnostic("HW602", "warning", f"there is no receiver {name!r}"))
            doors = doors_of(receiver, self._pace) if receiver is not None else ()
            self._lanes[name] = tuple(self._lane(name, target, door) for target, door in enumerate(doors, start=1))
        return self._lanes[name]

    def _lane(self, receiver: str, target: int, service: Door) -> Lane:
        return Lane(
            receiver,
            target,
            service,
            self._pace,
            on_accepted=partial(self._accept, target),
            on_failing=partial(self._report_failing, receiver, service.name),
        )

    def _accept(self, target: int, notice: Notice) -> None:
        with self._lock:
            missing = self._missing.get(notice.id)
            if missing is None:
                return  # it waits for a receiver that has changed meanwhile
            missing.discard(target)
            if not missing:
                del self._missing[notice.id]
        self._accepted.append(Acceptance(notice.id, target, time.time(), whole=not missing))

    def _report_failing(self, receiver: str, url: str, why: str) -> None:
        self._report(receiver, url, f"{why}; it is tried again, and what is not accepted stays in the outbox")

    def _report(self, receiver: str, url: str, what: str) -> None:
        self._problems.append(Diagnostic("HW603", "warning", f"receiver {receiver!r} ({url}): {what}"))


def validate(receivers: Mapping[str, Receiver]) -> list[Diagnostic]:
    """The URLs that can't be used, each named by its receiver and its masked form, at its place in the config."""
    found = []
    for receiver in receivers.values():
        for address, door in zip(receiver.addresses, doors_of(receiver, Pace()), strict=True):
            problem = door.open()
            if problem is not None:
                message, label = f"receiver {receiver.name!r}: {door.name}: {problem}", f'receiver "{receiver.name}"'
                found.append(
                    Diagnostic("HW601", "error", message, address.span, label, help=_URL_HELP, source=address.source)
                )
    return found


_URL_HELP = "every service and the form of its URL: https://appriseit.com/services/"


def _emptied(queue: deque[T]) -> list[T]:
    taken = []
    while queue:
        taken.append(queue.popleft())
    return taken
