"""How often chance alone trips a rule that tests each of thousands of series."""

from __future__ import annotations

import math
from collections.abc import Iterator

from healthwatch.promql import ast
from healthwatch.promql.syntax import COMPARISONS
from healthwatch.rulefile.lint.subject import Subject, selectors
from healthwatch.rulefile.resultlabels import result_labels
from healthwatch.stream.catalogue import Metric
from healthwatch.stream.ticks import parse_duration

MANY = 1000  # series
STEPS_A_DAY = 8640  # of 10 seconds
SIGMA = 0.5  # of the logarithm: norms have heavy tails
_SCALE = 0.491  # 1.4826 times the median absolute deviation of such noise, as a share of its median
_MEAN, _DEVIATION = math.exp(SIGMA**2 / 2), math.exp(SIGMA**2 / 2) * math.sqrt(math.expm1(SIGMA**2))


def check(subject: Subject) -> None:
    """Warns of a rule that tells each series by itself, tests it against its own past alone, and has no quorum."""
    expression = subject.draft.expressions.get("expr")
    metric = None if expression is None else _many(subject, expression.tree)
    if expression is None or metric is None or metric.series is None:
        return
    chances = [_chance(part) for part in _conjuncts(expression.tree)]
    known = [chance for chance in chances if chance is not None]
    if len(known) < len(chances):
        return  # a second condition of another kind: how often that holds can't be told
    alarms = metric.series * STEPS_A_DAY * min(known) ** _records(subject)
    if alarms >= 1:
        message = (
            f'each of about {metric.series:,} series of "{metric.name}" is tested at every step:'
            f" about {_rounded(alarms)} false alarms a day"
        )
        mend = (
            "add for_records: 3, a quorum, or a condition that only series of weight meet"
            " (reckoned for 10 s a step and lognormal noise, sigma 0.5)"
        )
        subject.report("HW029", message, "expr", ast.unwrapped(expression.tree).span, mend, "warning")


def _many(subject: Subject, tree: ast.Expr) -> Metric | None:
    """The metric of many series whose every series may be an alert."""
    carried = result_labels(tree, subject.metrics)
    for node in selectors(tree):
        metric = subject.metrics.get(node.metric or "")
        if metric is None or (metric.series or 0) < MANY or carried is None:
            continue
        finest = {"param", "expert", "head"} & {*metric.labels}
        fixed = {each.name for each in node.matchers if each.op == "="}
        if finest and finest <= carried and not finest & fixed:
            return metric
    return None


def _conjuncts(node: ast.Expr) -> Iterator[ast.Expr]:
    node = ast.unwrapped(node)
    if isinstance(node, ast.Binary) and node.op == "and":
        yield from _conjuncts(node.left)
        yield from _conjuncts(node.right)
    else:
        yield node


def _chance(node: ast.Expr) -> float | None:
    """With which probability one healthy sample breaches; None where that can't be told."""
    if not isinstance(node, ast.Binary) or node.op not in COMPARISONS:
        return None
    test, bound = ast.unwrapped(node.left), ast.unwrapped(node.right)
    sign = -1.0 if isinstance(bound, ast.Unary) else 1.0
    number = ast.unwrapped(bound.expr) if isinstance(bound, ast.Unary) else bound
    if not isinstance(test, ast.Call) or not isinstance(number, ast.Number):
        return None
    ratio = _as_ratio(test.function, sign * number.value)
    if ratio is None:
        return None
    above = _tail(math.log(ratio) / SIGMA) if ratio > 0 else 1.0
    return above if node.op in (">", ">=") else 1 - above


def _as_ratio(function: str, bound: float) -> float | None:
    """The bound as a multiple of the median."""
    match function:
        case "spike_ratio" | "ema_ratio":
            return bound
        case "robust_zscore":
            return 1 + bound * _SCALE
        case "zscore":
            return _MEAN + bound * _DEVIATION
        case _:
            return None


def _tail(deviations: float) -> float:
    return 0.5 * math.erfc(deviations / math.sqrt(2))


def _records(subject: Subject) -> int:
    """How many healthy samples in a row have to breach by chance."""
    data = subject.draft.data
    waits = getattr(parse_duration(data.get("for", 0)), "steps", None)
    return int(data.get("for_records") or (waits or 0) + 1)


def _rounded(alarms: float) -> str:
    if alarms < 10:
        return f"{alarms:.0f}"
    digits = 10 ** (math.floor(math.log10(alarms)) - 1)
    return f"{round(alarms / digits) * digits:,}"
