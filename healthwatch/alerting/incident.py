"""An incident: the alerts of one rule that fire together, from the first one's firing to the last one's end."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from healthwatch.alerting.causal import first_of
from healthwatch.alerting.ledger import Ledger, Rows
from healthwatch.alerting.model import IS_FIRING, Ending, Incident, LabelSet, Now, Sample, Transitions

Floats: TypeAlias = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Subject:
    """What an incident takes from its rule: `worst` tells which values are worst, `limit` how many series it lists."""

    rule: str
    severity: str
    shadow: bool = False
    worst: Literal["highest", "lowest"] = "highest"
    limit: int = 10


def update(
    incident: Incident | None, subject: Subject, transitions: Sequence[Transitions], ledger: Ledger, now: Now, turn: int
) -> Incident | None:
    """The rule's incident after a step: None where there is none, ended where the last alert has ended.

    `turn` is 1 until an attempt goes back, 2 until it goes back again, and so on.
    """
    if not any(found.before is IS_FIRING or found.after is IS_FIRING for found in transitions):
        return incident
    firing = ledger.firing()
    if incident is None:
        return _open(subject, ledger, firing, now, turn) if len(firing) else None
    if not len(firing):
        return _end(incident, subject, transitions, ledger, now)
    fired = sum(len(found) for found in transitions if found.reason == "fired")
    return replace(
        incident,
        firing=worst_alerts(ledger, firing, subject),
        last_verdict=ledger.last_verdict(firing),
        count=len(firing),
        joined=incident.joined + fired,
    )


def brought_up(incident: Incident, subject: Subject, ledger: Ledger) -> Incident:
    """An open incident with the values of this step, which it does not follow while no alert begins or ends."""
    firing = ledger.firing()
    if not len(firing):
        return incident
    return replace(incident, firing=worst_alerts(ledger, firing, subject), last_verdict=ledger.last_verdict(firing))


def _end(
    incident: Incident, subject: Subject, transitions: Sequence[Transitions], ledger: Ledger, now: Now
) -> Incident:
    """Ended, with the alerts that fired up to now."""
    ending = _ending(transitions)
    fired = [found for found in transitions if found.before is IS_FIRING]
    labels = [each for found in fired for each in found.labels]
    values = np.array([value for found in fired for value in found.values])
    return replace(
        incident,
        firing=_worst_of(labels, values, subject) or incident.firing,
        ended=now,
        ending=ending,
        last_verdict=now if ending == "resolved" else ledger.last_end,
    )


def _open(subject: Subject, ledger: Ledger, firing: Rows, now: Now, turn: int) -> Incident:
    row = first_of(ledger, firing)
    first = ledger.alert(row)
    assert first.since is not None
    return Incident(
        id=_name(subject.rule, now, turn),
        rule=subject.rule,
        severity=subject.severity,
        opened=now,
        since=first.since,
        micro_step=first.micro_step,
        firing=worst_alerts(ledger, firing, subject),
        count=len(firing),
        joined=len(firing),
        shadow=subject.shadow,
        first=ledger.labels[row],
        last_verdict=ledger.last_verdict(firing),
    )


def _name(rule: str, now: Now, turn: int) -> str:
    """A step that comes again may open an incident again, which is another one."""
    which = f"#{now.attempt}" if now.attempt > 1 or turn > 1 else ""
    return f"{rule}@{now.step}{which}" + (f".{turn}" if turn > 1 else "")


def _ending(transitions: Sequence[Transitions]) -> Ending:
    ends = {found.reason for found in transitions}
    return "resolved" if "resolved" in ends else "expired"


def worst_alerts(ledger: Ledger, firing: Rows, subject: Subject) -> tuple[Sample, ...]:
    """The firing alerts with the worst values, as many as the rule lists."""
    values = ledger.values(firing)
    if len(firing) > subject.limit:
        chosen = _worst_places(values, subject)
        firing, values = firing[chosen], values[chosen]
    return _worst_of([ledger.labels[row] for row in firing.tolist()], values, subject)


def _worst_of(labels: Sequence[LabelSet], values: Floats, subject: Subject) -> tuple[Sample, ...]:
    places = range(len(labels)) if len(labels) <= subject.limit else _worst_places(values, subject).tolist()
    return worst_first([Sample(labels[place], float(values[place])) for place in places], subject)


def _worst_places(values: Floats, subject: Subject) -> Rows:
    """As many as a message lists, in no order."""
    badness = np.where(np.isnan(values), np.inf, values if subject.worst == "highest" else -values)
    chosen: Rows = np.argpartition(-badness, subject.limit - 1)[: subject.limit]
    return chosen


def worst_first(found: Sequence[Sample], subject: Subject) -> tuple[Sample, ...]:
    """Sorted from the worst value on; NaN is worse than any number."""
    sign = -1.0 if subject.worst == "highest" else 1.0

    def badness(sample: Sample) -> tuple[float, object]:
        return (-math.inf if math.isnan(sample.value) else sign * sample.value), sample.labels

    return tuple(sorted(found, key=badness))
