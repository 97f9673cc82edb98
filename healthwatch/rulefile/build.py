"""One rule of a file: its keys checked together, its annotations compiled."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from healthwatch.diagnostics import errors, suggest
from healthwatch.rulefile.draft import Draft
from healthwatch.rulefile.expressions import read_expressions
from healthwatch.rulefile.model import DEFAULT_LIMIT, Rule
from healthwatch.rulefile.template import Template, compile_template
from healthwatch.stream.catalogue import Metric
from healthwatch.stream.ticks import Duration, parse_duration
from healthwatch.yamlfile import Document, KeyPath

SEVERITIES = ("info", "warning", "critical")

_NO_STEPS = Duration(steps=0)


def build(draft: Draft, metrics: Mapping[str, Metric]) -> Rule | None:
    """The rule, or None where it has an error; every problem is noted in the draft."""
    data, params = draft.data, read_expressions(draft, metrics)
    labels = _labels(draft)
    annotations = {key: _annotation(draft, key) for key in data.get("annotations", {})}
    if "for" in data and "for_records" in data:
        draft.report("HW011", '"for" and "for_records" exclude each other', "for_records", at_key=True, help=_FOR_HELP)
    expression = draft.expressions.get("expr")
    if expression is None or not draft.sound or errors(draft.diagnostics):
        return None
    return Rule(
        name=draft.name,
        group=str(draft.group.get("name", "")),
        expression=expression,
        span=draft.document.value_span((*draft.path, "alert")),
        until=draft.expressions.get("until"),
        detail=draft.expressions.get("detail"),
        for_=parse_duration(data.get("for", 0)) or _NO_STEPS,
        for_records=data.get("for_records"),
        keep_firing_for=parse_duration(data.get("keep_firing_for", 0)) or _NO_STEPS,
        labels=labels,
        annotations=annotations,
        warmup=data.get("warmup", 0),
        settle=data.get("settle", 0),
        inhibited_by=draft.inhibited_by,
        escalation=draft.override.get("escalation", data.get("escalation")),
        mode=data.get("mode", "active"),
        limit=data.get("limit", draft.group.get("limit", DEFAULT_LIMIT)),
        params=params,
        lookback=draft.group.get("lookback"),
    )


_FOR_HELP = '"for" counts steps since the first breach, "for_records" counts breaches'


def _labels(draft: Draft) -> dict[str, str]:
    group_path = draft.path[:-2]
    group = _texts(draft.document, (*group_path, "labels"), draft.group.get("labels", {}))
    own = _texts(draft.document, (*draft.path, "labels"), draft.data.get("labels", {}))
    own |= {name: str(value) for name, value in draft.override.get("labels", {}).items()}
    if "severity" not in own and (severity := _written_severity(draft)) is not None:
        _check_label(draft, draft.path, "severity", severity)
    elif "severity" not in {**group, **own} and not draft.told("labels"):
        mend = "add labels: {severity: critical}, warning or info; without one it is info"
        draft.report("HW020", "this rule has no severity", "alert", severity="warning", help=mend)
    for path, labels in ((group_path, group), (draft.path, own)):
        for name, value in labels.items():
            _check_label(draft, path, name, value)
    return {**group, **own}


def _written_severity(draft: Draft) -> str | None:
    """Also where something else in the labels is refused."""
    labels = draft.written.get("labels")
    severity = labels.get("severity") if isinstance(labels, dict) else None
    return severity if isinstance(severity, str) else None


def _check_label(draft: Draft, path: KeyPath, name: str, value: str) -> None:
    """At the rule or, without the rule's name so that it is told once, at its group."""
    fields = {"label": draft.label if path == draft.path else ""}
    place = (*path, "labels", name)
    if "{{" in value:
        found = draft.document.at_value(
            "HW016", "a label can't hold a template", place, help="annotations can", **fields
        )
        draft.diagnostics.append(found)
    if name == "severity" and value not in SEVERITIES:
        mend = suggest(value, SEVERITIES, "known")
        message = f'no severity is called "{value}"'
        found = draft.document.at_value("HW020", message, place, severity="warning", help=mend, **fields)
        draft.diagnostics.append(found)


def _texts(document: Document, path: KeyPath, values: Mapping[str, Any]) -> dict[str, str]:
    """Label values as written: `tier: 1` is the text 1."""
    return {
        name: value if isinstance(value, str) else document.written((*path, name)) or str(value)
        for name, value in values.items()
    }


def _annotation(draft: Draft, key: str) -> Template:
    path = (*draft.path, "annotations", key)
    text = draft.data["annotations"][key]
    template, problems = compile_template(text if isinstance(text, str) else draft.document.written(path) or str(text))
    for problem in problems:
        draft.report_text("HW016", problem.message, ("annotations", key), (problem.start, problem.end), problem.help)
    return template
