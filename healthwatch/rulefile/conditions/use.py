"""One use of a condition: its parameters read and checked, and the PromQL and labels that come of it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from healthwatch.diagnostics import did_you_mean, likely_typo, suggest
from healthwatch.promql.parse import parse
from healthwatch.rulefile.conditions.labels import NO_LABELS, Labels, of_series
from healthwatch.rulefile.conditions.operand import Operand, either
from healthwatch.rulefile.conditions.problems import Bad, ConditionProblem, Path, Scope
from healthwatch.rulefile.conditions.spec import Arguments, Condition, Expansion, Group
from healthwatch.rulefile.conditions.values import read_value, show, unknown_key
from healthwatch.stream.catalogue import PLACEMENT

"""difflib's ratio from which an unknown metric is taken for a misspelt one."""

Values = Mapping[str, Any]
Matchers = tuple[tuple[str, str, str], ...]


def use(condition: Condition, written: Any, path: Path, scope: Scope) -> tuple[Operand | None, list[ConditionProblem]]:
    """The condition as an operand, or every problem of how it was written."""
    if not isinstance(written, Mapping):
        help_ = f"write {condition.name}: {json.dumps(dict(condition.example))}"
        return None, [Bad(f"{condition.name} holds its parameters, not {show(written)}", help_).at(path)]
    values, problems = _read(condition, written, path, scope)
    if not any(problem.severity == "error" for problem in problems):
        problems += _together(condition, values, path)
    if any(problem.severity == "error" for problem in problems):
        return None, problems
    try:
        return _operand(condition, values, scope), problems
    except Exception as error:
        message = f"{condition.name} could not be expanded: {type(error).__name__}: {error}"
        return None, [*problems, Bad(message, kind="bad expansion", on="key").at(path)]


def _read(condition: Condition, written: Values, path: Path, scope: Scope) -> tuple[Values, list[ConditionProblem]]:
    values: dict[str, Any] = {each.name: _default(each.default) for each in condition.parameters}
    problems: list[ConditionProblem] = []
    for name, value in written.items():
        parameter = condition.parameter(name) if isinstance(name, str) else None
        if parameter is None:
            names = tuple(each.name for each in condition.parameters)
            problems.append(unknown_key(name, names, condition.name).at((*path, name)))
            continue
        read = read_value(value, parameter, scope)
        if isinstance(read, Bad):
            problems.append(read.at((*path, name)))
        else:
            values[name] = read
    unknown = [name for name in written if isinstance(name, str) and condition.parameter(name) is None]
    for each in condition.parameters:
        if each.required and each.name not in written and not any(did_you_mean(name, [each.name]) for name in unknown):
            message = f'{condition.name} needs "{each.name}"'
            problems.append(Bad(message, f"for instance {each.name}: {each.example}", "missing key", on="key").at(path))
    if "by" in written and "over" in written:
        message = '"over" and "by" exclude each other'
        problems.append(Bad(message, "keep one of them", "conflict", on="key").at((*path, "by")))
    return values, problems + list(_known(values, written, path, scope))


def _default(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


def _known(values: Values, written: Values, path: Path, scope: Scope) -> Iterable[ConditionProblem]:
    """Metrics that nobody declares, and labels that they do not carry."""
    names = _metrics(values)
    for position, name in enumerate(names):
        if name not in scope.metrics:
            below: Path = (position,) if isinstance(written.get("metric"), list) else ()
            yield _unknown_metric(name, scope).at((*path, "metric", *below))
    top_k = values.get("top_k")
    if isinstance(top_k, str) and top_k not in scope.metrics:
        yield _unknown_metric(top_k, scope).at((*path, "top_k"))
    if not names or any(name not in scope.metrics for name in names):
        return
    labels = {label for name in names for label in scope.metrics[name].labels}
    for key in ("select", "over", "by"):
        for position, label in enumerate(_mentioned(values.get(key) if key in written else ())):
            if label not in labels and label not in PLACEMENT:
                what = f'{" and ".join(names)} {"has" if len(names) == 1 else "have"} no label "{label}"'
                help_ = suggest(label, labels, "its labels") or "it has no labels"
                bad = Bad(what, help_, "unknown label", on="key" if key == "select" else "value")
                yield bad.at((*path, key, label if key == "select" else position))


def _unknown_metric(name: str, scope: Scope) -> Bad:
    near = likely_typo(name, scope.metrics)
    if near is not None:
        return Bad(f'no metric is called "{name}"', f'did you mean "{near}"?', "unknown metric")
    return Bad(
        f'no metric is called "{name}" as far as healthwatch knows',
        "declare it under metrics: with its labels",
        "unknown metric",
        severity="warning",
    )


def _mentioned(value: Any) -> tuple[str, ...]:
    return tuple(each if isinstance(each, str) else each[0] for each in value or ())


def _metrics(values: Values) -> tuple[str, ...]:
    return tuple(values.get("metric") or ())


def _together(condition: Condition, values: Values, path: Path) -> list[ConditionProblem]:
    found = []
    for issue in condition.check(_arguments(values, "x")):
        place = path if issue.name is None else (*path, issue.name)
        bad = Bad(issue.message, issue.help, issue.kind, on="key" if issue.name is None else "value")
        found.append(bad.at(place))
    return found


def _arguments(values: Values, selector: str) -> Arguments:
    by, over = values.get("by"), values.get("over")
    group = Group(by, without=False) if by is not None else None if over is None else Group(over, without=True)
    return Arguments(values, selector, group)


def _operand(condition: Condition, values: Values, scope: Scope) -> Operand:
    metrics, select = _metrics(values), tuple(values.get("select") or ())
    if not metrics:
        return _one(condition, _arguments(values, ""), NO_LABELS)
    mentioned = (*_mentioned(values.get("over")), *_mentioned(values.get("by")))
    labels = of_series(metrics, scope.metrics, select, mentioned)
    if len(metrics) == 1 or condition.keeps_name(_arguments(values, "x")):
        return _one(condition, _arguments(values, _selector(metrics, select)), labels)
    return either(
        [
            _one(condition, _arguments(values, _selector((name,), select)), labels).tagged("metric", name)
            for name in metrics
        ]
    )


def _one(condition: Condition, arguments: Arguments, labels: Labels) -> Operand:
    expansion = condition.expand(arguments)
    _readable(expansion)
    if expansion.shape == "group" and arguments.group is not None:
        labels = labels.grouped(arguments.group)
    elif expansion.shape == "none":
        labels = NO_LABELS
    refusal = "" if expansion.negatable else condition.name
    return Operand(expansion.text, expansion.inverse, expansion.value, expansion.detail, labels, refusal)


def _readable(expansion: Expansion) -> None:
    texts = [expansion.text, expansion.value, *([expansion.inverse] if expansion.negatable else [])]
    for text in [*texts, *filter(None, [expansion.detail])]:
        parsed = parse(text)
        if parsed.expression is None:
            raise ValueError(f"{parsed.problems[0].message}: {text}")


def _selector(metrics: tuple[str, ...], select: Matchers) -> str:
    matchers = [f"{label}{op}{json.dumps(value, ensure_ascii=False)}" for label, op, value in select]
    if len(metrics) > 1:
        matchers.insert(0, f'__name__=~"{"|".join(metrics)}"')
    inside = f"{{{', '.join(matchers)}}}" if matchers else ""
    return inside if len(metrics) > 1 else metrics[0] + inside
