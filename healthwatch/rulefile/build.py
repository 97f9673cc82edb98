"""One rule of a file: its keys checked together, its expressions parsed, its annotations compiled."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from healthwatch.diagnostics import Diagnostic, errors, suggest
from healthwatch.promql.parse import Expression, parse
from healthwatch.rulefile.model import DEFAULT_LIMIT, Rule
from healthwatch.rulefile.template import Template, compile_template
from healthwatch.stream.ticks import Duration, parse_duration
from healthwatch.yamlfile import Document, KeyPath, number_hint

EXPRESSION_KEYS = ("expr", "until", "detail")
SEVERITIES = ("info", "warning", "critical")

_PARAM = re.compile(r"\$([A-Za-z_][A-Za-z0-9_]*)")
_NO_STEPS = Duration(steps=0)


@dataclass(slots=True)
class Draft:
    """A rule as it is read: what stands in the file, the override of the config, and what is wrong."""

    document: Document
    path: KeyPath  # of the rule
    written: Mapping[str, Any]
    data: Mapping[str, Any]  # of what is written the keys that the schema allows
    group: Mapping[str, Any]
    override: Mapping[str, Any]
    sound: bool  # whether the schema allows all of it
    diagnostics: list[Diagnostic] = field(default_factory=list)
    expressions: dict[str, Expression] = field(default_factory=dict)  # those that can be parsed
    inhibited_by: tuple[str, ...] = ()  # those that are loaded

    @property
    def name(self) -> str:
        return str(self.data.get("alert", ""))

    @property
    def label(self) -> str:
        return f'rule "{self.name}"'

    @property
    def enabled(self) -> bool:
        return self.override.get("enabled", True) is not False

    def report(self, code: str, message: str, *path: str | int, **fields: Any) -> None:
        at_key = fields.pop("at_key", False)
        place = self.document.at_key if at_key else self.document.at_value
        self.diagnostics.append(place(code, message, (*self.path, *path), label=self.label, **fields))


def build(draft: Draft) -> Rule | None:
    """The rule, or None where it has an error; every problem is noted in the draft."""
    data, params = draft.data, _params(draft)
    for key in EXPRESSION_KEYS:
        if key in data:
            _parse(draft, key, params)
    _check_unused(draft, params)
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


def _params(draft: Draft) -> dict[str, Any]:
    """The parameters in force; 1 stands for a value that can't be used, so that it is told once."""
    own = draft.written.get("params")
    params = {str(name): _param(draft, name, value) for name, value in own.items()} if isinstance(own, dict) else {}
    given = draft.override.get("params", {})
    return {name: given.get(name, value) for name, value in params.items()}


def _param(draft: Draft, name: str, value: Any) -> Any:
    if isinstance(value, str) and number_hint(value) and not draft.document.quoted((*draft.path, "params", name)):
        mend = f"write {number_hint(value)}"
        draft.report("HW009", f"YAML reads {value} as text, not as a number", "params", name, help=mend)
        return 1
    return value if "params" in draft.data or (isinstance(value, (int, float)) and math.isfinite(value)) else 1


def _parse(draft: Draft, key: str, params: Mapping[str, Any]) -> None:
    parsed = parse(draft.data[key], params)
    for problem in parsed.problems:
        span = draft.document.text_span((*draft.path, key), *problem.span)
        draft.diagnostics.append(
            draft.document.text.diagnostic(problem.code, problem.message, span, label=draft.label, help=problem.help)
        )
    if parsed.expression is not None:
        draft.expressions[key] = parsed.expression


def _check_unused(draft: Draft, params: Mapping[str, Any]) -> None:
    used = set(_PARAM.findall(" ".join(draft.data[key] for key in EXPRESSION_KEYS if key in draft.data)))
    for name in params:
        if name not in used:
            message = f'no expression uses the parameter "{name}"'
            draft.report("HW019", message, "params", name, at_key=True, severity="warning", help=f"write ${name}")


def _labels(draft: Draft) -> dict[str, str]:
    group_path = draft.path[:-2]
    labels = {
        **_texts(draft.document, (*group_path, "labels"), draft.group.get("labels", {})),
        **_texts(draft.document, (*draft.path, "labels"), draft.data.get("labels", {})),
    }
    for name, value in labels.items():
        if "{{" in value:
            draft.report("HW016", "a label can't hold a template", "labels", name, help="annotations can")
    labels |= {name: str(value) for name, value in draft.override.get("labels", {}).items()}
    _check_severity(draft, labels.get("severity"))
    return labels


def _check_severity(draft: Draft, severity: str | None) -> None:
    if severity is None:
        mend = "add labels: {severity: critical}, warning or info; without one it is info"
        draft.report("HW020", "this rule has no severity", "alert", severity="warning", help=mend)
    elif severity not in SEVERITIES:
        message = f'no severity is called "{severity}"'
        mend = suggest(severity, SEVERITIES, "known")
        draft.report("HW020", message, "labels", "severity", severity="warning", help=mend)


def _annotation(draft: Draft, key: str) -> Template:
    path = (*draft.path, "annotations", key)
    text = draft.data["annotations"][key]
    template, problems = compile_template(text if isinstance(text, str) else draft.document.written(path) or str(text))
    for problem in problems:
        span = draft.document.text_span(path, problem.start, problem.end)
        draft.diagnostics.append(
            draft.document.text.diagnostic("HW016", problem.message, span, label=draft.label, help=problem.help)
        )
    return template


def _texts(document: Document, path: KeyPath, values: Mapping[str, Any]) -> dict[str, str]:
    """Label values as written: `tier: 1` is the text 1."""
    return {
        name: value if isinstance(value, str) else document.written((*path, name)) or str(value)
        for name, value in values.items()
    }
