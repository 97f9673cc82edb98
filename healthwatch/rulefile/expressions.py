"""A rule's expressions: written as PromQL, or as conditions that stand for it."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any

from healthwatch.promql.parse import parse
from healthwatch.rulefile.conditions import ConditionProblem, expand
from healthwatch.rulefile.draft import Draft
from healthwatch.stream.catalogue import Metric
from healthwatch.yamlfile import KeyPath, number_hint

KEYS = ("expr", "until", "detail")

CONDITION_CODES: Mapping[str, str] = {
    "unknown condition": "HW022",
    "unknown key": "HW007",
    "unknown metric": "HW012",
    "unknown label": "HW023",
    "missing key": "HW008",
    "wrong type": "HW009",
    "out of range": "HW010",
    "conflict": "HW011",
    "never matches": "HW024",
    "bad pattern": "HW110",
    "undefined parameter": "HW107",
    "not supported": "HW017",
    "bad expansion": "HW022",
}

_PARAM = re.compile(r"\$([A-Za-z_][A-Za-z0-9_]*)")


def read_expressions(draft: Draft, metrics: Mapping[str, Metric]) -> dict[str, Any]:
    """Fill in the draft's expressions; gives the parameters in force. `metrics` are all that are known."""
    params = _params(draft)
    for key in KEYS:
        if key in draft.data:
            _parse(draft, key, params)
    _read_when(draft, metrics, params)
    _check_unused(draft, params)
    return params


def _read_when(draft: Draft, metrics: Mapping[str, Metric], params: Mapping[str, Any]) -> None:
    if "when" not in draft.written:
        if "expr" not in draft.written and not (draft.told("expr") or draft.told("when")):
            draft.report("HW008", 'rule lacks the key "expr" or "when"', at_key=True)
        return
    if "expr" in draft.written:
        draft.report("HW011", '"expr" and "when" exclude each other', "when", at_key=True)
    expanded = expand(draft.written["when"], metrics, params)
    for problem in expanded.problems:
        _report(draft, problem)
    texts = {"expr": expanded.text, "detail": None if "detail" in draft.data else expanded.detail}
    for key, text in texts.items():
        parsed = parse(text) if text is not None else None
        if parsed is not None and parsed.expression is not None and key not in draft.expressions:
            draft.expressions[key] = parsed.expression


def _report(draft: Draft, problem: ConditionProblem) -> None:
    code = CONDITION_CODES[problem.kind]
    help_ = problem.help or _as_truth(draft, ("when", *problem.path))
    fields: dict[str, Any] = {"at_key": problem.on == "key", "severity": problem.severity, "help": help_}
    draft.report(code, problem.message, "when", *problem.path, **fields)


def _as_truth(draft: Draft, path: KeyPath) -> str:
    """YAML 1.1 has more words for true and false than people know."""
    written = draft.document.written((*draft.path, *path)) or ""
    if written.lower() not in ("yes", "no", "on", "off") or draft.document.quoted((*draft.path, *path)):
        return ""
    return f"YAML reads {written} as {'true' if written.lower() in ('yes', 'on') else 'false'}"


def _params(draft: Draft) -> dict[str, Any]:
    """The parameters in force; 1 stands for a value that can't be used, so that it is told once."""
    own = draft.written.get("params")
    params = {str(name): _param(draft, name, value) for name, value in own.items()} if isinstance(own, dict) else {}
    given = draft.override.get("params", {})
    draft.guessed = any(value is None for name, value in params.items() if name not in given)
    return {name: given.get(name, 1 if value is None else value) for name, value in params.items()}


def _param(draft: Draft, name: str, value: Any) -> Any:
    if isinstance(value, str) and number_hint(value) and not draft.document.quoted((*draft.path, "params", name)):
        mend = f"write {number_hint(value)}"
        draft.report("HW009", f"YAML reads {value} as text, not as a number", "params", name, help=mend)
        return None
    return value if "params" in draft.data or (isinstance(value, (int, float)) and math.isfinite(value)) else None


def _parse(draft: Draft, key: str, params: Mapping[str, Any]) -> None:
    parsed = parse(draft.data[key], params)
    for problem in parsed.problems:
        draft.report_text(problem.code, problem.message, (key,), problem.span, problem.help)
    if parsed.expression is not None:
        draft.expressions[key] = parsed.expression
    elif parsed.tree is not None:
        draft.partial[key] = parsed.tree


def _check_unused(draft: Draft, params: Mapping[str, Any]) -> None:
    texts = [str(draft.written[key]) for key in (*KEYS, "when") if key in draft.written]
    used = set(_PARAM.findall(" ".join(texts)))
    misread = {problem.path for problem in draft.document.problems}
    for name in params:
        usable = _PARAM.fullmatch(f"${name}") and (*draft.path, "params", name) not in misread
        if usable and name not in used:
            message = f'no expression uses the parameter "{name}"'
            draft.report("HW019", message, "params", name, at_key=True, severity="warning", help=f"write ${name}")
