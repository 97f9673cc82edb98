"""What a person reads: a notify intent as Markdown that is just as readable where Markdown is not shown."""

from __future__ import annotations

import hashlib
import math
import re
import shlex
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import tzinfo
from pathlib import Path
from typing import Protocol

from healthwatch.alerting.causal import causal_order
from healthwatch.alerting.model import Incident, Intent, LabelSet, Notice, Now, Sample, severity_rank
from healthwatch.alerting.text import code, number_text, one_line, place_text, series_text, time_text

__all__ = ["number_text", "place_text", "render", "series_text", "time_text"]

SERIES = 10  # listed per incident where its rule is not known
SERIES_BESIDE = 3  # listed for every incident but the worst, where a group holds several
BLOCKS = 10  # incidents told at length; the others are named
NAMES = 100  # incidents named
TITLE = 200  # characters
SILENCED = 10  # rules named in the command that silences a group


class Annotation(Protocol):
    """A template of a rule file; rendering never raises."""

    def render(self, labels: LabelSet, value: float) -> str: ...


class RuleText(Protocol):
    """What a message takes from a rule; `limit` is how many series it lists."""

    @property
    def annotations(self) -> Mapping[str, Annotation]: ...

    @property
    def limit(self) -> int: ...


class CaptureNote(Protocol):
    """Where an incident's capture is or will be: `trace` once it is whole, `refused` where there will be none."""

    @property
    def folder(self) -> Path: ...

    @property
    def first_step(self) -> int: ...

    @property
    def last_step(self) -> int: ...

    @property
    def trace(self) -> Path | None: ...

    @property
    def refused(self) -> str | None: ...


@dataclass(frozen=True, slots=True)
class Context:
    """What every message of a process shares. `zone` None is the machine's own time zone."""

    run: str
    rank: int
    rules: Mapping[str, RuleText]
    captures: Mapping[str, CaptureNote]
    zone: tzinfo | None
    output: Path | None = None  # where `healthwatch silence` finds the run; None: it is not told


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
    incidents = _in_order(intent.incidents)
    parts = [_opening(intent, incidents, context)]
    parts += [
        _block(incident, context, SERIES_BESIDE if number else None)
        for number, incident in enumerate(incidents[:BLOCKS])
    ]
    if incidents[BLOCKS:]:
        parts.append(f"… {len(incidents) - BLOCKS} more incidents, named above")
    parts += _how_to_silence(incidents, output)
    return Notice(
        id=notice_id(intent),
        receiver=str(intent.argument),
        reason=intent.reason,
        severity=intent.severity,
        title=_title(intent, incidents, run),
        body="\n\n".join(parts) + "\n",
        incidents=tuple(incident.id for incident in incidents),
        now=intent.now,
        extra=_extra(incidents, context),
    )


def notice_id(intent: Intent) -> str:
    """Receiver, group, reason, step, attempt and a digest of the incidents: the same news has the same id."""
    group = ",".join(f"{name}={value}" for name, value in intent.group)
    told = "\n".join(sorted(incident.id for incident in intent.incidents))
    digest = hashlib.sha256(told.encode()).hexdigest()[:8]
    return f"{intent.argument}|{group}|{intent.reason}@{intent.now.step}#{intent.now.attempt}|{digest}"


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
    """Where this comes from, what is new, and every incident by name, so that no cut can take one away."""
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
    names = [f"{code(one.rule)} ({_standing(one)})" for one in incidents[:NAMES]]
    return ", ".join(names) + (f" and {len(incidents) - NAMES} more" if incidents[NAMES:] else "")


def _standing(incident: Incident) -> str:
    ending = {"resolved": ", resolved", "expired": ", stopped reporting"}.get(incident.ending or "", "")
    return incident.severity + ending


def _block(incident: Incident, context: Context, at_most: int | None) -> str:
    rule = context.rules.get(incident.rule)
    annotations = rule.annotations if rule is not None else {}
    limit = min(rule.limit if rule is not None else SERIES, at_most or sys.maxsize)
    lines = [f"**{one_line(incident.rule)}** ({_standing(incident)}): {_sentence(incident, annotations)}", ""]
    lines.append(f"- Since {_moment(incident.since, incident.micro_step, context.zone)}")
    lines += _end(incident, context.zone)
    if incident.active and "action" in annotations:
        lines.append(f"- What to do: {_filled(annotations['action'], incident)}")
    if incident.id in context.captures:
        lines.append(_capture(context.captures[incident.id]))
    lines += _listing("Worst" if incident.active else "Last", incident.firing, incident.count, limit)
    lines += _listing("In detail, worst", incident.details, len(incident.details), limit)
    return "\n".join(lines)


def _sentence(incident: Incident, annotations: Mapping[str, Annotation]) -> str:
    if "summary" in annotations:
        return _filled(annotations["summary"], incident)
    worst = _worst(incident)
    return f"{code(series_text(worst.labels))} is {number_text(worst.value)}"


def _filled(annotation: Annotation, incident: Incident) -> str:
    """An annotation with the labels and the value of the incident's worst series, on one line."""
    worst = _worst(incident)
    return one_line(annotation.render(worst.labels, worst.value))


def _worst(incident: Incident) -> Sample:
    return incident.firing[0] if incident.firing else Sample((), math.nan)


def _moment(at: Now, micro_step: int | None, zone: tzinfo | None) -> str:
    attempt = f" (attempt {at.attempt})" if at.attempt > 1 else ""
    return f"{place_text(at.step, micro_step)}{attempt}, {time_text(at.time, zone)}"


def _end(incident: Incident, zone: tzinfo | None) -> list[str]:
    if incident.ended is None:
        return []
    if incident.ending == "resolved":
        return [f"- Resolved at {_moment(incident.ended, None, zone)}"]
    since = f" since {_moment(incident.last_verdict, None, zone)}" if incident.last_verdict is not None else ""
    return [f"- Stopped reporting{since}; given up at {_moment(incident.ended, None, zone)}"]


def _capture(note: CaptureNote) -> str:
    if note.refused:
        return f"- No profile: {note.refused}"
    steps = f"steps {note.first_step} to {note.last_step}"
    if note.trace is not None:
        return f"- Profile of {steps}: {code(str(note.trace))}"
    return f"- Profile of {steps} will be in {code(str(note.folder))}"


def _listing(head: str, samples: Sequence[Sample], count: int, limit: int) -> list[str]:
    """The first `limit` of `count` series with their values, and how many more there are."""
    shown = [f"{code(series_text(one.labels))} {number_text(one.value)}{_measured(one)}" for one in samples[:limit]]
    if count == 1 and shown:
        return [f"- {head}: {shown[0]}"]
    more = count - len(shown)
    lines = [f"- {head} {len(shown)} of {count} series:"] if samples else []
    lines += [f"    - {line}" for line in shown]
    return lines + ([f"    - … {more} more"] if more else [])


def _measured(sample: Sample) -> str:
    """What the series itself was, its baseline, and the one by the other."""
    parts = []
    if sample.now is not None and not _same(sample.now, sample.value):
        parts.append(f"now {number_text(sample.now)}")
    if sample.baseline is not None:
        parts.append(f"baseline {number_text(sample.baseline)}")
    ratio = sample.ratio
    if ratio is not None and math.isfinite(ratio) and not _same(ratio, sample.value):
        parts.append(f"ratio {number_text(ratio)}")
    return f" ({', '.join(parts)})" if parts else ""


def _same(one: float, other: float) -> bool:
    return number_text(one) == number_text(other)


def _first_to_fire(incidents: Sequence[Incident]) -> str:
    """Where a fault that shows in many series began: by step, micro-step and depth in the model."""
    known = [incident for incident in incidents if incident.first is not None]
    if not known or sum(incident.joined for incident in incidents) < 2:
        return ""
    first = min(known, key=_began)
    where = f"{code(series_text(first.first or ()))} " if first.first else ""
    return f" First to fire: {where}({first.rule}), {place_text(first.since.step, first.micro_step)}."


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
                "name": series_text(trace.labels),
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
            "summary": _sentence(incident, annotations),
            "description": _block(incident, context, None),
        },
        "starts": incident.since.time,
        "ends": incident.ended.time if incident.ended is not None else None,
    }
