"""An incident: the alerts of one rule that fire together, from the first one's firing to the last one's end."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from healthwatch.alerting.model import Alert, Ending, Incident, LabelSet, Now, Sample, Transition


@dataclass(frozen=True, slots=True)
class Subject:
    """What an incident takes from its rule; `worst` tells which values are worst."""

    rule: str
    severity: str
    shadow: bool = False
    worst: Literal["highest", "lowest"] = "highest"


def update(
    incident: Incident | None,
    subject: Subject,
    transitions: Sequence[Transition],
    firing: Mapping[LabelSet, Alert],
    now: Now,
) -> Incident | None:
    """The rule's incident after a step: None where there is none, ended where the last alert has ended."""
    fired = sum(transition.reason == "fired" for transition in transitions)
    if incident is None:
        return _open(subject, firing, now) if firing else None
    if not firing:
        return replace(incident, ended=now, ending=_ending(transitions))
    return replace(incident, firing=samples(firing, subject), joined=incident.joined + fired)


def _open(subject: Subject, firing: Mapping[LabelSet, Alert], now: Now) -> Incident:
    first = min(firing.values(), key=_order)
    assert first.since is not None
    return Incident(
        id=f"{subject.rule}@{now.step}" + (f"#{now.attempt}" if now.attempt > 1 else ""),
        rule=subject.rule,
        severity=subject.severity,
        opened=now,
        since=first.since,
        micro_step=first.micro_step,
        firing=samples(firing, subject),
        joined=len(firing),
        shadow=subject.shadow,
    )


def _order(alert: Alert) -> tuple[int, int]:
    assert alert.since is not None
    return alert.since.step, alert.micro_step or 0


def _ending(transitions: Sequence[Transition]) -> Ending:
    ends = {transition.reason for transition in transitions}
    return "resolved" if "resolved" in ends else "expired"


def samples(firing: Mapping[LabelSet, Alert], subject: Subject) -> tuple[Sample, ...]:
    """The firing alerts, worst value first; NaN is worse than any number."""
    return worst_first([Sample(labels, alert.value) for labels, alert in firing.items()], subject)


def worst_first(found: Sequence[Sample], subject: Subject) -> tuple[Sample, ...]:
    sign = -1.0 if subject.worst == "highest" else 1.0

    def badness(sample: Sample) -> tuple[float, LabelSet]:
        return (-math.inf if math.isnan(sample.value) else sign * sample.value), sample.labels

    return tuple(sorted(found, key=badness))
