"""What config and rules say about telling, as the pure ladder wants it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from healthwatch.alerting.escalation import Ladder, Policy
from healthwatch.alerting.model import Incident, LabelSet
from healthwatch.config import Config
from healthwatch.stream.ticks import Duration

if TYPE_CHECKING:
    from healthwatch.rulefile import Rule


def policy_of(config: Config, rules: Sequence[Rule]) -> Policy:
    """Ladders by a rule's own name for one or by severity; groups by run, rule, severity and rule labels."""
    by_name = {rule.name: rule for rule in rules}

    def ladder(incident: Incident) -> Ladder:
        rule = by_name.get(incident.rule)  # a group may hold an incident whose rule is gone
        return () if rule is None else config.escalation.get(rule.ladder, ())

    def group(incident: Incident) -> LabelSet:
        known = {
            **(by_name[incident.rule].labels if incident.rule in by_name else {}),
            "run": config.run,
            "rule": incident.rule,
            "alertname": incident.rule,
            "severity": incident.severity,
        }
        return tuple((name, known.get(name, "")) for name in config.group_by)

    def group_interval(receiver: str) -> Duration:
        return config.receivers[receiver].group_interval

    return Policy(ladder, group, group_interval)


def _nobody(_: Incident) -> Ladder:
    return ()


def _one(_: Incident) -> LabelSet:
    return ()


def _at_once(_: str) -> Duration:
    return Duration(steps=0)


# Transitions and incidents without anybody being told: what a replay wants.
SILENT = Policy(_nobody, _one, _at_once)
