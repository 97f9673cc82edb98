"""An incident: the alerts of one rule that fire together, from the first one's firing to the last one's end."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from healthwatch.alerting.causal import first_of
from healthwatch.alerting.ledger import Ledger, Rows
from healthwatch.alerting.model import Ending, Incident, Now, Sample, Transitions


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
    firing = ledger.firing()
    if incident is None:
        return _open(subject, ledger, firing, now, turn) if len(firing) else None
    if not len(firing):
        return replace(incident, ended=now, ending=_ending(transitions))
    fired = sum(len(found) for found in transitions if found.reason == "fired")
    return replace(
        incident,
        firing=worst_alerts(ledger, firing, subject),
        count=len(firing),
        joined=incident.joined + fired,
        last_verdict=ledger.last_verdict(firing),
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
        badness = np.where(np.isnan(values), np.inf, values if subject.worst == "highest" else -values)
        chosen = np.argpartition(-badness, subject.limit - 1)[: subject.limit]
        firing, values = firing[chosen], values[chosen]
    found = [Sample(ledger.labels[row], float(value)) for row, value in zip(firing, values, strict=True)]
    return worst_first(found, subject)


def worst_first(found: Sequence[Sample], subject: Subject) -> tuple[Sample, ...]:
    """Sorted from the worst value on; NaN is worse than any number."""
    sign = -1.0 if subject.worst == "highest" else 1.0

    def badness(sample: Sample) -> tuple[float, object]:
        return (-math.inf if math.isnan(sample.value) else sign * sample.value), sample.labels

    return tuple(sorted(found, key=badness))
