"""The line of notices before one URL, and when the next attempt is due. Pure: a state and an event in, a state out."""

from __future__ import annotations

from dataclasses import dataclass, replace
from http import HTTPStatus

from healthwatch.alerting.model import Notice, severity_rank

SHORTEST = 500  # characters to which a message is shortened that a service refuses
LONGEST_RETRY_AFTER = 3600.0


@dataclass(frozen=True, slots=True)
class Pace:
    """How fast one URL is written to, in seconds; `backlog` is how many notices may wait for it."""

    interval: float = 1.0  # between two messages
    first: float = 2.0  # the back-off after one failure, doubled by every further one
    longest: float = 300.0
    after_429: float = 5.0  # at least
    connect: float = 5.0  # socket timeouts, where the URL sets none
    read: float = 15.0
    backlog: int = 256


def unhurried() -> bool:
    return False


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back from a service; `why` never holds a credential."""

    accepted: bool
    status: int | None = None  # of HTTP, where apprise tells
    why: str = ""
    retry_after: float = 0.0
    seconds: float = 0.0  # from the request to the answer

    @property
    def busy(self) -> bool:
        return self.status == HTTPStatus.TOO_MANY_REQUESTS

    @property
    def content_refused(self) -> bool:
        """The service is well, but does not like this message: it may be too long."""
        return self.status in (HTTPStatus.BAD_REQUEST, HTTPStatus.REQUEST_ENTITY_TOO_LARGE, 422)


@dataclass(frozen=True, slots=True)
class Waiting:
    """A notice in line; `limit` bounds its body once it was refused."""

    notice: Notice
    refusals: int = 0
    due: float = 0.0
    limit: int | None = None


@dataclass(frozen=True, slots=True)
class Line:
    """The notices that wait for one URL, oldest first; nothing is sent before `opens`."""

    waiting: tuple[Waiting, ...] = ()
    failures: int = 0  # in a row
    opens: float = 0.0
    busy: bool = False  # the last answer was 429


def admit(line: Line, notice: Notice, backlog: int) -> tuple[Line, Notice | None]:
    """The line with one more notice, and the one that had to go: repeats, then joins, then what is least severe."""
    waiting = (*line.waiting, Waiting(notice))
    if len(waiting) <= backlog:
        return replace(line, waiting=waiting), None
    least = min(range(len(waiting)), key=lambda place: (_worth(waiting[place].notice), place))
    return replace(line, waiting=waiting[:least] + waiting[least + 1 :]), waiting[least].notice


def _worth(notice: Notice) -> int:
    return {"repeat": 0, "joined": 1}.get(notice.reason, 2 + severity_rank(notice.severity))


def without(line: Line, notice_id: str) -> Line:
    return replace(line, waiting=tuple(entry for entry in line.waiting if entry.notice.id != notice_id))


def wakes(line: Line) -> float | None:
    """When the next attempt is due; None for an empty line."""
    if not line.waiting:
        return None
    return max(line.opens, min(entry.due for entry in line.waiting))


def take(line: Line, now: float) -> tuple[Waiting | None, Line]:
    """The first notice that is due, and the line without it."""
    if line.opens > now:
        return None, line
    for place, entry in enumerate(line.waiting):
        if entry.due <= now:
            return entry, replace(line, waiting=line.waiting[:place] + line.waiting[place + 1 :])
    return None, line


def settle(line: Line, entry: Waiting, answer: Answer, now: float, draw: float, pace: Pace) -> Line:
    """The line after an attempt with a notice taken from it; `draw` in [0, 1) is the jitter."""
    if answer.accepted:
        return replace(line, failures=0, opens=now + pace.interval, busy=False)
    if answer.content_refused:
        again = _shortened(entry, now, draw, pace)
        return replace(line, waiting=(again, *line.waiting), opens=now + pace.interval, busy=False)
    failures = line.failures + 1
    opens = now + back_off(failures, answer, draw, pace)
    return Line((entry, *line.waiting), failures, opens, answer.busy)


def _shortened(entry: Waiting, now: float, draw: float, pace: Pace) -> Waiting:
    """Refused once, a message is told shorter; refused when short, it lets others pass."""
    before = entry.limit or len(entry.notice.body)
    refusals = entry.refusals + 1
    wait = pace.interval if before > SHORTEST else back_off(refusals, Answer(accepted=False), draw, pace)
    return Waiting(entry.notice, refusals, now + wait, max(min(before // 2, 4 * SHORTEST), SHORTEST))


def back_off(failures: int, answer: Answer, draw: float, pace: Pace) -> float:
    """Seconds until the next attempt: exponential, half of it jitter, and what the service asks for."""
    full = pace.longest if failures > 60 else min(pace.longest, pace.first * 2.0 ** (failures - 1))
    wait = full * (0.5 + 0.5 * draw)
    if answer.busy:
        wait = max(wait, pace.after_429)
    return max(wait, min(answer.retry_after, LONGEST_RETRY_AFTER))
