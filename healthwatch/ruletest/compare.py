"""Expected against got: rows of named cells, each in both, missing or too much."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias, TypeVar

import numpy as np

from healthwatch.alerting.message import number_text
from healthwatch.alerting.model import Incident, Intent
from healthwatch.diagnostics import Span
from healthwatch.promql import Vector, ast
from healthwatch.rulefile import Rule
from healthwatch.ruletest.alerts import asked_for
from healthwatch.ruletest.model import AlertTest, Case, Expected, ExpectedAlert, ExprTest
from healthwatch.ruletest.trace import Firing, Trace
from healthwatch.stream.series import METRIC_NAME, LabelSet

TOLERANCE = 1e-6  # relative, of expected values

E = TypeVar("E")
G = TypeVar("G")
Cells: TypeAlias = Mapping[str, str]
Element: TypeAlias = tuple[LabelSet, float]


@dataclass(frozen=True, slots=True)
class Row:
    """`=` is in both, `-` was expected and did not come, `+` came and was not expected.

    `apart` is in what an expectation differs from what came instead of it, where something like it did.
    """

    mark: Literal["=", "-", "+"]
    cells: Cells
    apart: str = ""


@dataclass(frozen=True, slots=True)
class Failure:
    """One expectation that was not met; `step` is what the values around it are shown of."""

    span: Span
    title: str
    rows: tuple[Row, ...]
    step: int | None
    rules: tuple[str, ...] = ()  # whose metrics are of interest
    note: str = ""
    tree: ast.Expr | None = None  # of the expression that was asked for


def failures(case: Case, trace: Trace, rules: Sequence[Rule]) -> list[Failure]:
    """Everything expected that is not so, in the order of the file."""
    by_name = {rule.name: rule for rule in rules}
    found = [_alerts(test, trace, by_name[test.rule]) for test in case.alerts]
    found += [_expression(test, trace) for test in case.expressions]
    if case.incidents is not None:
        found.append(_timeline("incidents", case.incidents, _incidents(trace), case.span))
    if case.actions is not None:
        found.append(_timeline("actions", case.actions, _actions(trace), case.span))
    return [failure for failure in found if failure is not None]


def _alerts(test: AlertTest, trace: Trace, rule: Rule) -> Failure | None:
    named = any(METRIC_NAME in each.labels for each in test.expected)
    texts = any(each.annotations is not None for each in test.expected)
    got = [_alert(each, rule, named=named, texts=texts) for each in trace.firing_at(test.step, rule.name)]
    rows = _matched(test.expected, got, _is_alert, _alert_cells, _alert_cells, _is_asked)
    title = f"{test.rule}: alerts that fire at step {test.step}"
    return _failed(rows, test.span, title, test.step, (test.rule,))


def _alert(firing: Firing, rule: Rule, *, named: bool, texts: bool) -> ExpectedAlert:
    labels = {name: value for name, value in firing.labels if named or name != METRIC_NAME} | dict(rule.labels)
    filled = {name: template.render(firing.labels, firing.value) for name, template in rule.annotations.items()}
    return ExpectedAlert(labels, filled if texts else None, firing.value)


def _is_alert(expected: ExpectedAlert, got: ExpectedAlert) -> bool:
    return (
        expected.labels == got.labels
        and expected.annotations in (None, got.annotations)
        and (expected.value is None or close(expected.value, got.value))
    )


def _alert_cells(alert: ExpectedAlert) -> Cells:
    cells = {name: f'{name}="{value}"' for name, value in sorted(alert.labels.items())}
    cells |= {f"@{name}": f'{name}: "{text}"' for name, text in sorted((alert.annotations or {}).items())}
    return cells if alert.value is None else {**cells, "=": f"value: {number_text(alert.value)}"}


def _is_asked(expected: ExpectedAlert, key: str) -> bool:
    if key == "=":
        return expected.value is not None
    return expected.annotations is not None or not key.startswith("@")


def _expression(test: ExprTest, trace: Trace) -> Failure | None:
    got = trace.result(test)
    at = f"step {test.step}" + (f", micro-step {test.micro_step}" if test.micro_step else "")
    title = f"{test.expression.text}: result at {at}"
    seen = tuple(trace.phases) if asked_for([test]) else ()
    if isinstance(got, str):
        rows = tuple(Row("-", _sample_cells(each)) for each in test.expected)
        return Failure(test.span, title, rows, test.step, seen, f"no result: {got}", test.expression.tree)
    rows = _matched(test.expected, _samples(got), _is_sample, _sample_cells, _sample_cells, lambda *_: True)
    failure = _failed(rows, test.span, title, test.step, seen)
    return None if failure is None else replace(failure, tree=test.expression.tree)


def _samples(vector: Vector) -> list[Element]:
    return [(vector.labels[position], float(vector.values[position])) for position in np.flatnonzero(vector.kept)]


def _is_sample(expected: Element, got: Element) -> bool:
    return expected[0] == got[0] and close(expected[1], got[1])


def _sample_cells(element: Element) -> Cells:
    labels, value = element
    return {name: f'{name}="{text}"' for name, text in labels} | {"=": number_text(value)}


def _incidents(trace: Trace) -> list[Mapping[str, Any]]:
    ordered = sorted(trace.incidents.values(), key=lambda one: (one.opened.attempt, one.opened.step, one.rule))
    return [_incident(each) for each in ordered]


def _incident(incident: Incident) -> Mapping[str, Any]:
    ended = incident.ended
    return {
        "rule": incident.rule,
        "severity": incident.severity,
        "since": incident.since.step,
        "micro_step": incident.micro_step,
        "opened": incident.opened.step,
        "ended": None if ended is None else ended.step,
        "ending": incident.ending,
        "alerts": incident.joined,
        "inhibited": incident.inhibited,
        "shadow": incident.shadow,
    }


def _actions(trace: Trace) -> list[Mapping[str, Any]]:
    return [_action(intent) for intent in trace.actions]


def _action(intent: Intent) -> Mapping[str, Any]:
    return {
        "step": intent.now.step,
        "action": intent.action,
        "argument": intent.argument,
        "reason": intent.reason,
        "rules": [incident.rule for incident in intent.incidents],
    }


def _timeline(what: str, expected: Sequence[Expected], got: Sequence[Mapping[str, Any]], span: Span) -> Failure | None:
    rows = _matched(
        [each.fields for each in expected],
        got,
        lambda one, other: all(_same(value, other.get(key)) for key, value in one.items()),
        _field_cells,
        _field_cells,
        lambda one, key: key in one,
    )
    place = expected[0].span if expected else span
    steps = [row for row in rows if row.mark != "="]
    step = _step_of(steps, got, expected)
    fields = (*got, *(one.fields for one in expected))
    names = {name for each in fields for name in (each.get("rule"), *(each.get("rules") or ()))}
    return _failed(rows, place, what, step, tuple(sorted(name for name in names if isinstance(name, str))))


def _step_of(wrong: Sequence[Row], got: Sequence[Mapping[str, Any]], expected: Sequence[Expected]) -> int | None:
    """A step at which something is not as expected."""
    if not wrong:
        return None
    for each in (*got, *(one.fields for one in expected)):
        if _field_cells(each).items() >= wrong[0].cells.items():
            step = each.get("opened", each.get("step", each.get("since")))
            return step if isinstance(step, int) else None
    return None


def _field_cells(fields: Mapping[str, Any]) -> Cells:
    return {name: f"{name}: {_text(value)}" for name, value in fields.items()}


def _text(value: Any) -> str:
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    return f"[{', '.join(map(str, value))}]" if isinstance(value, list) else str(value)


def _same(expected: Any, got: Any) -> bool:
    if isinstance(expected, float) and isinstance(got, (int, float)):
        return close(expected, float(got))
    return bool(expected == got)


def _matched(
    expected: Iterable[E],
    got: Iterable[G],
    same: Callable[[E, G], bool],
    expected_cells: Callable[[E], Cells],
    got_cells: Callable[[G], Cells],
    asked: Callable[[E, str], bool],
) -> tuple[Row, ...]:
    """Each expectation takes the first result that meets it; what is left over on either side is wrong.

    `asked` is whether an expectation says anything of a cell of what came.
    """
    left = list(got)
    rows: list[Row] = []
    wanting: dict[int, E] = {}  # by row
    for each in expected:
        position = next((number for number, other in enumerate(left) if same(each, other)), None)
        if position is None:
            wanting[len(rows)] = each
            rows.append(Row("-", expected_cells(each)))
        else:
            rows.append(Row("=", got_cells(left.pop(position))))
    others = [got_cells(each) for each in left]
    free = list(others)
    for number, each in wanting.items():
        row = rows[number]
        closest = max(free, key=lambda cells: len(row.cells.items() & cells.items()), default={})
        if row.cells.items() & closest.items():
            free.remove(closest)
            rows[number] = replace(row, apart=_apart(row.cells, {k: v for k, v in closest.items() if asked(each, k)}))
    return (*rows, *(Row("+", cells) for cells in others))


def _apart(expected: Cells, got: Cells) -> str:
    """The names of the cells in which two rows differ."""
    found = {
        "only got": [name for name in got if name not in expected],
        "only expected": [name for name in expected if name not in got],
        "other value": [name for name in expected if name in got and expected[name] != got[name]],
    }
    return "; ".join(f"{how}: {', '.join(map(_cell_name, names))}" for how, names in found.items() if names)


def _cell_name(name: str) -> str:
    return "value" if name == "=" else f"annotation {name[1:]}" if name.startswith("@") else name


def _failed(
    rows: tuple[Row, ...], span: Span, title: str, step: int | None, rules: tuple[str, ...] = ()
) -> Failure | None:
    return Failure(span, title, rows, step, rules) if any(row.mark != "=" for row in rows) else None


def close(expected: float, got: float | None) -> bool:
    if got is None:
        return False
    return (math.isnan(expected) and math.isnan(got)) or math.isclose(expected, got, rel_tol=TOLERANCE)
