"""What a person reads: a notify intent as Markdown that is just as readable where Markdown is not shown."""

from __future__ import annotations

import hashlib
import math
import re
import shlex
import sys
from collections.abc import Callable, Mapping, Sequence
from datetime import tzinfo
from pathlib import Path

from healthwatch.alerting.block import CaptureNote, Context, RuleText, block, sentence, standing
from healthwatch.alerting.causal import causal_order
from healthwatch.alerting.model import Incident, Intent, Notice, severity_rank
from healthwatch.alerting.text import code, number_text, one_line, place_text, series_text, time_text

__all__ = ["number_text", "place_text", "render", "series_text", "time_text"]

SERIES_BESIDE = 3  # listed for every incident but the worst, where a group holds several
BLOCKS = 10  # incidents told at length; the others are named
NAMES = 100  # incidents named
TITLE = 200  # characters
SILENCED = 10  # rules named in the command that silences a group


def render(
    intent: Intent,
    *,
    run: str,
    rank: int,
    rules: Mapping[str, RuleText],
    captures: Mapping[str, CaptureNote] | None = None,
    zone: tzinfo | None = None,
    output: Path | None = None,
) -> Notice:
    """The notice of a notify intent; `captures` by incident id. The same intent gives the same notice.

    `extra` is for receivers that take more than text: `alerts` for an Alertmanager, a `plot` to be drawn.
    """
    context = Context(run, rank, rules, captures or {}, zone, output)
    incidents = _in_order(intent.loud)
    named = {incident.id for incident in incidents}
    held = _in_order([incident for incident in intent.incidents if incident.id not in named])
    parts = [_opening(intent, incidents, context)]
    parts += [
        block(incident, context, SERIES_BESIDE if number else None)
        for number, incident in enumerate(incidents[:BLOCKS])
    ]
    if incidents[BLOCKS:]:
        parts.append(f"… {len(incidents) - BLOCKS} more incidents, named above")
    parts += _how_to_silence(incidents, output)
    parts += [f"Held back: {_names(held)}"] if held else []
    return Notice(
        id=notice_id(intent),
        receiver=str(intent.argument),
        reason=intent.reason,
        severity=intent.severity,
        title=_title(intent, incidents, run),
        body="\n\n".join(parts) + "\n",
        incidents=tuple(incident.id for incident in (*incidents, *held)),
        now=intent.now,
        extra=_extra(incidents, context),
    )


def notice_id(intent: Intent) -> str:
    """Receiver, group, reason, step, attempt and a digest of the incidents: the same news has the same id.

    What is told between two steps has the number of the look: a training that stands still may have news every hour.
    """
    group = ",".join(f"{name}={value}" for name, value in intent.group)
    told = "\n".join(sorted(incident.id for incident in intent.incidents))
    digest = hashlib.sha256(told.encode()).hexdigest()[:8]
    look = f"+{intent.look}" if intent.look else ""
    return f"{intent.argument}|{group}|{intent.reason}@{intent.now.step}{look}#{intent.now.attempt}|{digest}"


def _in_order(incidents: Sequence[Incident]) -> list[Incident]:
    """Those that fire before those that ended, then the most severe, then the oldest."""
    return sorted(incidents, key=lambda one: (not one.active, -severity_rank(one.severity), one.since.step, one.id))


def _title(intent: Intent, incidents: Sequence[Incident], run: str) -> str:
    head = _state_of(incidents) if intent.reason == "resolved" else intent.severity.upper()
    first = incidents[0]
    subject = f"{first.rule} ({first.severity})" if intent.reason == "resolved" else first.rule
    more = f" and {len(incidents) - 1} more" if len(incidents) > 1 else ""
    title = one_line(f"{head}: {subject}{more}, run {run}")
    return title if len(title) <= TITLE else title[: TITLE - 1] + "…"


def _state_of(ended: Sequence[Incident]) -> str:
    """An incident that stopped reporting is never called resolved."""
    endings = {incident.ending for incident in ended}
    return {frozenset({"resolved"}): "RESOLVED", frozenset({"expired"}): "STOPPED REPORTING"}.get(
        frozenset(ending for ending in endings if ending), "ENDED"
    )


_NEWS: Mapping[str, Callable[[Intent], str]] = {
    "opened": lambda _: "",
    "joined": lambda _: "more has joined",
    "severity": lambda intent: f"now {intent.severity}",
    "repeat": lambda _: "still firing",
    "resolved": lambda _: "over",
}


def _opening(intent: Intent, incidents: Sequence[Incident], context: Context) -> str:
    """Where this comes from, what is new, and every incident that it is about, so that no cut can take one away."""
    news = _NEWS[intent.reason](intent)
    line = f"Run {code(context.run)}, rank {context.rank}, {place_text(intent.now.step, None)}"
    line += f": {news}." if news else "."
    line += _first_to_fire(incidents)
    if len(incidents) == 1:
        return line
    firing = sum(incident.active for incident in incidents)
    count = f"{len(incidents)} incidents" + (f", {firing} firing" if firing else "")
    return f"{line}\n{count}: {_names(incidents)}"


def _names(incidents: Sequence[Incident]) -> str:
    names = [f"{code(one.rule)} ({standing(one)})" for one in incidents[:NAMES]]
    return ", ".join(names) + (f" and {len(incidents) - NAMES} more" if incidents[NAMES:] else "")


def _first_to_fire(incidents: Sequence[Incident]) -> str:
    """Where a fault that shows in many series began: by step, micro-step and depth in the model."""
    known = [incident for incident in incidents if incident.first is not None]
    if not known or sum(incident.joined for incident in incidents) < 2:
        return ""
    first = min(known, key=_began)
    what = f"{code(series_text(first.first))} ({first.rule})" if first.first else first.rule
    return f" First to fire: {what}, {place_text(first.since.step, first.micro_step)}."


def _began(incident: Incident) -> tuple[object, ...]:
    since, micro_step = incident.since, incident.micro_step
    order = causal_order(incident.first or ())
    return since.attempt, since.step, sys.maxsize if micro_step is None else micro_step, order, incident.rule


def _how_to_silence(incidents: Sequence[Incident], output: Path | None) -> list[str]:
    names = list(dict.fromkeys(incident.rule for incident in incidents if incident.active))[:SILENCED]
    if output is None or not names:
        return []
    matcher = f"alertname={names[0]}" if len(names) == 1 else f"alertname=~{'|'.join(map(re.escape, names))}"
    command = f"healthwatch silence add {shlex.quote(str(output))} {shlex.quote(matcher)} --for 2h"
    return [f"To silence it: {code(command)}"]


def _extra(incidents: Sequence[Incident], context: Context) -> dict[str, object]:
    extra: dict[str, object] = {"alerts": [_alert(incident, context) for incident in incidents]}
    traced = next((incident for incident in incidents if incident.traces), None)
    if traced is not None:
        extra["plot"] = _plot(traced, context.run)
    return extra


def _plot(incident: Incident, run: str) -> dict[str, object]:
    return {
        "title": f"{incident.rule} ({incident.severity}), run {run}",
        "fired": incident.since.step,
        "series": [
            {
                "name": series_text(trace.labels) if trace.labels else incident.rule,
                "steps": list(trace.steps),
                "values": [value if math.isfinite(value) else number_text(value) for value in trace.values],
                "threshold": trace.threshold,
            }
            for trace in incident.traces
        ],
    }


def _alert(incident: Incident, context: Context) -> dict[str, object]:
    """The incident as an Alertmanager has it; `ends` is None while it fires."""
    rule = context.rules.get(incident.rule)
    labels: dict[str, str] = {str(name): str(value) for name, value in getattr(rule, "labels", {}).items()}
    labels |= {"alertname": incident.rule, "severity": incident.severity}
    labels |= {"run": context.run, "rank": str(context.rank), "incident": incident.id}
    annotations = rule.annotations if rule is not None else {}
    return {
        "labels": labels,
        "annotations": {
            "summary": sentence(incident, annotations),
            "description": block(incident, context, None),
        },
        "starts": incident.since.time,
        "ends": incident.ended.time if incident.ended is not None else None,
    }
