"""What a message says of one incident."""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import tzinfo
from pathlib import Path
from typing import Protocol

from healthwatch.alerting.model import Incident, LabelSet, Now, Sample
from healthwatch.alerting.text import code, number_text, one_line, place_text, series_text, time_text

SERIES = 10  # listed where the rule is not known
MARKS = ("inhibited", "silenced")


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


def block(incident: Incident, context: Context, at_most: int | None) -> str:
    rule = context.rules.get(incident.rule)
    annotations = rule.annotations if rule is not None else {}
    limit = min(rule.limit if rule is not None else SERIES, at_most or sys.maxsize)
    lines = [f"**{one_line(incident.rule)}** ({standing(incident)}): {sentence(incident, annotations)}", ""]
    lines.append(f"- Since {_moment(incident.since, incident.micro_step, context.zone)}")
    lines += _end(incident, context.zone)
    if incident.active and "action" in annotations:
        lines.append(f"- What to do: {_filled(annotations['action'], incident)}")
    if incident.id in context.captures:
        lines.append(_capture(context.captures[incident.id]))
    lines += _listing("Worst" if incident.active else "Last", incident.firing, incident.count, limit)
    lines += _listing("In detail, worst", incident.details, len(incident.details), limit)
    return "\n".join(lines)


def sentence(incident: Incident, annotations: Mapping[str, Annotation]) -> str:
    if "summary" in annotations:
        return _filled(annotations["summary"], incident)
    worst = _worst(incident)
    return f"{code(series_text(worst.labels)) if worst.labels else 'the value'} is {number_text(worst.value)}"


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
    shown = [f"{_named(one)}{number_text(one.value)}{_measured(one)}" for one in samples[:limit]]
    if count == 1 and shown:
        return [f"- {head}: {shown[0]}"]
    more = count - len(shown)
    lines = [f"- {head} {len(shown)} of {count} series:"] if samples else []
    lines += [f"    - {line}" for line in shown]
    return lines + ([f"    - … {more} more"] if more else [])


def _named(sample: Sample) -> str:
    return f"{code(series_text(sample.labels))} " if sample.labels else ""


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


def standing(incident: Incident) -> str:
    """Its severity, and how it has ended or what holds it back."""
    ending = {"resolved": ", resolved", "expired": ", stopped reporting"}.get(incident.ending or "", "")
    marks = [f", {mark}" for mark in MARKS if incident.quiet and getattr(incident, mark)]
    return incident.severity + ending + "".join(marks)
