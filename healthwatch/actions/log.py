"""The log action: one line per incident, to the logger `healthwatch`."""

from __future__ import annotations

import logging
from collections.abc import Mapping

from healthwatch.alerting.block import RuleText
from healthwatch.alerting.model import Incident, Intent
from healthwatch.alerting.text import place_text, reading_text

LOGGER = logging.getLogger("healthwatch")
LEVELS = {
    "debug": logging.DEBUG,
    "info": logging.INFO,
    "warning": logging.WARNING,
    "error": logging.ERROR,
    "critical": logging.CRITICAL,
}


Rules = Mapping[str, RuleText]


def write(intent: Intent, rules: Rules | None = None) -> None:
    """Log the intent's incidents: those that fire at the ladder's level, those that ended as info."""
    for incident in intent.incidents:
        LOGGER.log(level(intent, incident), "%s", line(incident, intent, rules))


def level(intent: Intent, incident: Incident) -> int:
    if not incident.active:
        return logging.INFO
    return LEVELS.get(str(intent.argument).lower(), logging.WARNING)


def line(incident: Incident, intent: Intent, rules: Rules | None = None) -> str:
    """The rule's summary where it has one, then the worst series: `GradNormSpike firing (critical): 12.5 times its
    median, micro_norm{param="wq"} = 12.5 since step 151, micro-step 2`.
    """
    head = f"{incident.rule} {_state(incident, intent)} ({incident.severity}):"
    rule = (rules or {}).get(incident.rule)
    summary = rule.annotations.get("summary") if rule is not None else None
    if summary is None or not incident.firing or not incident.active:
        return f"{head} {_worst(incident)} {_when(incident)}"
    worst = incident.firing[0]
    said = " ".join(summary.render(worst.labels, worst.value).split()).rstrip(".")
    series = f", {_worst(incident)}" if worst.labels or incident.count > 1 else ""
    return f"{head} {said}{series} ({_when(incident)})"


def _state(incident: Incident, intent: Intent) -> str:
    if incident.active:
        return "still firing" if intent.reason == "repeat" else "firing"
    if incident.ending == "resolved":
        return "resolved"
    return "stopped reporting" + (f" since step {incident.last_verdict.step}" if incident.last_verdict else "")


def _worst(incident: Incident) -> str:
    if not incident.firing:
        return "no series"
    worst = incident.firing[0]
    more = f" and {incident.count - 1} more" if incident.count > 1 else ""
    return f"{reading_text(worst.labels, worst.value)}{more}"


def _when(incident: Incident) -> str:
    since = f"since {place_text(incident.since.step, incident.micro_step)}"
    return since if incident.ended is None else f"{since}, until {place_text(incident.ended.step, None)}"
