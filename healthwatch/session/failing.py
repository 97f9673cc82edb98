"""A receiver that takes no messages, told to the others: one incident, whatever happens."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from healthwatch.actions.notify import LaneState
from healthwatch.alerting.message import render
from healthwatch.alerting.model import Incident, Intent, LabelSet, Notice, Now, Reason, Sample

RULE = "ReceiverFailing"
FAILURES = 3  # in a row, before the others hear of it
QUIET = 3600.0  # seconds before a receiver that failed again is told again


@dataclass(frozen=True, slots=True)
class _Text:
    text: str

    def render(self, labels: LabelSet, value: float) -> str:  # noqa: ARG002
        return self.text


@dataclass(frozen=True, slots=True)
class _Rule:
    annotations: Mapping[str, _Text]
    limit: int = 10


@dataclass(slots=True)
class FailingReceivers:
    """A message about a failing receiver goes to those that work, so it can't cause the next one."""

    run: str
    rank: int
    receivers: Sequence[str]
    incident: Incident | None = None
    told: set[str] = field(default_factory=set)  # receivers that know of the incident
    _known: dict[tuple[str, int], float] = field(default_factory=dict)  # when each URL was last reported
    _looks: int = 0  # which news of this step
    _step: tuple[int, int] = (0, 0)

    def look(
        self, lanes: Sequence[LaneState], now: Now, silenced: Callable[[Incident, Now], bool]
    ) -> tuple[list[Incident], list[Notice]]:
        """What has changed since the last look: the incident, and notices about it, unless it is silenced."""
        failing = [lane for lane in lanes if lane.failures >= FAILURES and lane.failing is not None]
        before = self.incident
        if before is not None and not any(lane.failing for lane in lanes if self._reported(lane)):
            return self._end(now)
        fresh = [lane for lane in failing if self._is_news(lane, now)]
        found = self._incident(failing, now) if fresh else before
        if found is None:
            return [], []
        found = replace(found, silenced=silenced(found, now))
        if not fresh and before is not None and found.silenced == before.silenced:
            return [], []
        self._count(now)
        self._known.update({(lane.receiver, lane.target): now.time for lane in fresh})
        self.incident = self._named(found, now) if before is None else found
        if found.silenced:
            return [self.incident], []
        whom = [name for name in self.receivers if not any(lane.receiver == name for lane in lanes if lane.failing)]
        reason: Reason = "joined" if self.told and fresh else "opened"
        whom = whom if fresh else [name for name in whom if name not in self.told]
        self.told.update(whom)
        why = "; ".join(f"{lane.receiver} ({lane.url}): {lane.failing}" for lane in failing)
        return [self.incident], self._notices(self.incident, reason, whom, now, why)

    def _count(self, now: Now) -> None:
        """Between two steps there may be news more than once."""
        here = now.attempt, now.step
        self._looks, self._step = (self._looks + 1 if here == self._step else 1), here

    def _reported(self, lane: LaneState) -> bool:
        return (lane.receiver, lane.target) in self._known

    def _is_news(self, lane: LaneState, now: Now) -> bool:
        last = self._known.get((lane.receiver, lane.target))
        return last is None or (self.incident is None and now.time - last >= QUIET)

    def _incident(self, failing: Sequence[LaneState], now: Now) -> Incident:
        firing = tuple(Sample((("receiver", lane.receiver), ("url", lane.url)), lane.failures) for lane in failing)
        if self.incident is not None:
            return replace(self.incident, firing=firing, count=len(firing), joined=self.incident.joined + 1)
        return Incident("", RULE, "warning", now, now, None, firing, len(firing), len(firing))

    def _named(self, incident: Incident, now: Now) -> Incident:
        turn = f".{self._looks}" if self._looks > 1 else ""  # another one at the same step
        id_ = f"{RULE}@{now.step}" + (f"#{now.attempt}" if now.attempt > 1 or turn else "") + turn
        return replace(incident, id=id_)

    def _end(self, now: Now) -> tuple[list[Incident], list[Notice]]:
        assert self.incident is not None
        self._count(now)
        ended = replace(self.incident, ended=now, ending="resolved")
        notices = self._notices(ended, "resolved", sorted(self.told), now, "they take messages again")
        self.incident = None
        self.told.clear()
        return [ended], notices

    def _notices(self, incident: Incident, reason: Reason, whom: Sequence[str], now: Now, why: str) -> list[Notice]:
        firing = incident.active
        texts = {"summary": _Text(f"messages don't arrive: {why}" if firing else why)}
        if firing:
            texts["action"] = _Text(
                "look at the receiver; what it has not accepted stays in the outbox and is sent later"
            )
        rules = {RULE: _Rule(texts)}
        return [
            render(
                Intent("notify", name, reason, (incident,), now, look=self._looks - 1),
                run=self.run,
                rank=self.rank,
                rules=rules,
            )
            for name in whom
        ]
