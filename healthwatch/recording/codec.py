"""Nouns to rows and back. Numbers inside JSON that are not finite are Prometheus' `NaN`, `+Inf`, `-Inf`."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, is_dataclass
from pathlib import Path
from typing import Any

import msgspec

from healthwatch.alerting.model import (
    Acceptance,
    Incident,
    LabelSet,
    Notice,
    Now,
    Phase,
    Sample,
    Trace,
    Transitions,
    Untold,
)

_compact = msgspec.json.Encoder().encode  # of nothing but lists and texts, a hundred times faster than `dump`


def dump(value: object) -> str:
    return json.dumps(_plain(value), ensure_ascii=False, separators=(",", ":"), allow_nan=False)


def _plain(value: object) -> Any:
    if is_dataclass(value) and not isinstance(value, type):
        return _plain(asdict(value))
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [_plain(item) for item in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else number_text(value)
    if value is None or isinstance(value, (bool, int, str)):
        return value
    return value.as_posix() if isinstance(value, Path) else str(value)


def labels_text(labels: Sequence[LabelSet]) -> str:
    """The label sets of a series, as `dump` writes them but without looking at each of 20,000 pairs in Python."""
    return _compact(labels).decode()


def number_text(value: float) -> str:
    """The shortest text that `float` reads back as the same value."""
    if math.isinf(value):
        return "+Inf" if value > 0 else "-Inf"
    return "NaN" if math.isnan(value) else repr(float(value))


def labels_of(pairs: Sequence[Sequence[str]]) -> LabelSet:
    return tuple((name, value) for name, value in pairs)


def change_row(found: Transitions) -> tuple[Any, ...]:
    now = found.now
    values: Sequence[float | str] = found.values
    if not all(map(math.isfinite, found.values)):
        values = [value if math.isfinite(value) else number_text(value) for value in found.values]
    alerts = list(zip(found.labels, found.micro_steps, values, strict=True))
    return (
        *(now.attempt, now.step, now.time, now.clock, found.rule),
        *(found.before.value, found.after.value, found.reason, _compact(alerts).decode()),
    )


def change_of(row: tuple[Any, ...]) -> Transitions:
    attempt, step, time, clock, rule, before, after, reason, text = row
    alerts = json.loads(text)
    return Transitions(
        rule=rule,
        before=Phase(before),
        after=Phase(after),
        reason=reason,
        now=Now(step, time, attempt, clock),
        labels=[labels_of(labels) for labels, _, _ in alerts],
        micro_steps=[micro_step for _, micro_step, _ in alerts],
        values=[float(value) for _, _, value in alerts],
    )


def incident_row(incident: Incident) -> tuple[Any, ...]:
    ended = incident.ended.step if incident.ended else None
    return (incident.id, incident.rule, incident.severity, incident.opened.step, ended, dump(incident))


def incident_of(text: str) -> Incident:
    fields = json.loads(text)
    for name in ("opened", "since", "ended", "last_verdict"):
        fields[name] = Now(**fields[name]) if fields.get(name) else None
    for name in ("firing", "details"):
        fields[name] = tuple(sample_of(found) for found in fields[name])
    fields["first"] = labels_of(fields["first"]) if fields.get("first") is not None else None
    fields["traces"] = tuple(trace_of(found) for found in fields.get("traces", ()))
    return Incident(**fields)


def sample_of(fields: Mapping[str, Any]) -> Sample:
    numbers = (None if fields.get(name) is None else float(fields[name]) for name in ("now", "baseline"))
    return Sample(labels_of(fields["labels"]), float(fields["value"]), *numbers)


def trace_of(fields: Mapping[str, Any]) -> Trace:
    steps, values = (tuple(map(float, fields[name])) for name in ("steps", "values"))
    return Trace(labels_of(fields["labels"]), steps, values, fields["threshold"])


def notice_row(notice: Notice) -> tuple[Any, ...]:
    return (notice.id, notice.receiver, notice.now.attempt, notice.now.step, dump(notice))


def notice_of(text: str) -> Notice:
    fields = json.loads(text)
    fields["now"] = Now(**fields["now"])
    fields["incidents"] = tuple(fields["incidents"])
    return Notice(**fields)


def untold_of(rows: Iterable[tuple[str, str | None]], elsewhere: Sequence[Acceptance]) -> list[Untold]:
    """Rows of `schema.PENDING` without what has been accepted elsewhere."""
    whole = {each.notice for each in elsewhere if each.whole}
    found = []
    for text, targets in rows:
        notice = notice_of(text)
        done = {int(target) for target in targets.split(",")} if targets else set()
        done |= {each.target for each in elsewhere if each.notice == notice.id}
        if notice.id not in whole:
            found.append(Untold(notice, frozenset(done)))
    return found
