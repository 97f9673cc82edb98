"""`until` whose results have other labels than the alerts: it never holds one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from healthwatch.promql import ast
from healthwatch.promql.parse import parse
from healthwatch.promql.syntax import COMPARISONS
from healthwatch.rulefile.lint.carried import carried, is_scalar
from healthwatch.rulefile.lint.subject import Subject
from healthwatch.rulefile.resultlabels import result_labels
from healthwatch.stream.catalogue import Metric

_NAME = "__name__"


def check(subject: Subject) -> None:
    expression, until = (subject.draft.expressions.get(key) for key in ("expr", "until"))
    if expression is None or until is None:
        return
    why = _never(expression.tree, until.tree, subject.metrics)
    if why:
        good = (f"write {text}" for text in _candidates(subject) if _holds(subject, text))
        mend = next(good, "give it the labels of the alerts, or none at all")
        message = f"until holds no alert: {why}"
        subject.report("HW048", message, "until", ast.unwrapped(until.tree).span, mend, "warning")


def _never(expression: ast.Expr, until: ast.Expr, metrics: Mapping[str, Metric]) -> str:
    """Why no result of `until` has the labels of an alert, or nothing; a result without labels holds every alert."""
    ours, theirs = carried(expression, metrics), carried(until, metrics)
    if not theirs:
        return ""
    alerts, results = result_labels(expression, metrics), result_labels(until, metrics)
    for label in sorted({*ours, *theirs} - {_NAME}):
        if label in ours and results is not None and label not in results:
            return f'its result has no label "{label}", which the alerts have'
        if label in theirs and alerts is not None and label not in alerts:
            return f'its result has the label "{label}", which the alerts don\'t have'
        a, b = ours.get(label), theirs.get(label)
        if a is not None and b is not None and a != b:
            return f'"{label}" is "{b}" in its result and "{a}" in the alerts'
    return ""


def _holds(subject: Subject, text: str) -> bool:
    written = subject.draft.written.get("params")
    params = dict.fromkeys(written, 1) if isinstance(written, dict) else {}  # labels depend on no value
    parsed = parse(text, params).expression
    expression = subject.draft.expressions["expr"].tree
    return parsed is not None and not _never(expression, parsed.tree, subject.metrics)


def _candidates(subject: Subject) -> Iterator[str]:
    """What is too fine as coarse as the alerts, what is too coarse for each alert by itself, and all alerts at once."""
    expression, until = subject.draft.expressions["expr"], subject.draft.expressions["until"]
    text = until.text.strip()
    alerts, results = (result_labels(each.tree, subject.metrics) for each in (expression, until))
    if alerts is not None and results is not None:
        finer, coarser = sorted(results - alerts - {_NAME}), sorted(alerts - results - {_NAME})
        if finer and not coarser and alerts:
            yield f"max without ({', '.join(finer)}) ({text})"
        if coarser and not finer:
            compared = _compared(expression.tree)
            yield f"{expression.text[slice(*compared.span)]} and ignoring ({', '.join(coarser)}) ({text})"
    yield f"max({text})"


def _compared(node: ast.Expr) -> ast.Expr:
    """What a rule compares with its bound, which has the labels of its alerts."""
    node = ast.unwrapped(node)
    if isinstance(node, ast.Binary) and node.op in COMPARISONS and is_scalar(node.right):
        return _compared(node.left)
    if isinstance(node, ast.Binary) and node.op in ("and", "unless"):
        return _compared(node.left)
    return node
