"""Which messages a receiver must get of the incidents of a run, by the rules of grouping."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from naive import Incident

GROUP_INTERVAL = 50  # steps
LONGEST_WAIT = 60.0  # seconds, after which a wait of so many steps is over as well


@dataclass(frozen=True)
class Message:
    """What a receiver must be told, and at which step."""

    step: int
    reason: str
    rules: tuple[str, ...]  # of every incident of the group so far, by name


def messages(incidents: Iterable[Incident], times: Mapping[int, float]) -> list[Message]:
    """One when a group opens, per rise in severity, per interval with joins or a doubled count, and at its end.

    `times` has the unix time of every step.
    """
    expected: list[Message] = []
    group: list[Incident] = []
    told: list[Incident] = []
    told_alerts, told_at = 0, 0
    for step in sorted(times):
        group += [incident for incident in incidents if incident.opened == step]
        active = [incident for incident in group if incident.ended is None or incident.ended > step]
        joins = [incident for incident in active if incident not in told]
        alerts = sum(at <= step for incident in active for at, _ in incident.fired)
        waited = step - told_at >= GROUP_INTERVAL or times[step] - times.get(told_at, 0.0) >= LONGEST_WAIT
        if not group:
            continue
        if not active:
            reason = "resolved"
        elif not told:
            reason = "opened"
        elif is_critical(joins) and not is_critical(told):
            reason = "severity"
        elif waited and (joins or alerts >= 2 * told_alerts):
            reason = "joined"
        else:
            continue
        expected.append(Message(step, reason, tuple(sorted(incident.rule for incident in group))))
        told, told_alerts, told_at = list(group), alerts, step
        if reason == "resolved":
            group, told = [], []
    return expected


def is_critical(incidents: Iterable[Incident]) -> bool:
    return any(incident.severity == "critical" for incident in incidents)
