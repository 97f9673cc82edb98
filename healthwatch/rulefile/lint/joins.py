"""Joins whose sides can never carry the same labels: such a rule is empty for ever."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

from healthwatch.promql import ast
from healthwatch.rulefile.lint.subject import Subject
from healthwatch.rulefile.resultlabels import Names, result_labels
from healthwatch.stream.catalogue import Metric

Carried: TypeAlias = Mapping[str, str | None]  # labels that every series has; the value where it is fixed

_PICKS = ("topk", "bottomk", "limitk", "limit_ratio")
_UNKNOWN = ("label_replace", "label_join", "absent", "absent_over_time", "vector", "scalar", "time", "info")


def check(subject: Subject) -> None:
    for key, tree in subject.trees():
        for node in ast.walk(tree) if subject.written(key) else ():
            if isinstance(node, ast.Binary) and node.op != "or" and not (_scalar(node.left) or _scalar(node.right)):
                _check_join(subject, key, node)


def _check_join(subject: Subject, key: str, node: ast.Binary) -> None:
    metrics = subject.metrics
    left, right = carried(node.left, metrics), carried(node.right, metrics)
    upper = result_labels(node.left, metrics), result_labels(node.right, metrics)
    for label in sorted({*left, *right}):
        if not _compared(label, node.matching) or label == "__name__":
            continue
        why = _why(label, left, right, upper)
        if why:
            effect = "it excludes nothing" if node.op == "unless" else "it is always empty"
            mend = _mend(label, node)
            subject.report("HW024", f"the two sides of {node.op} never match, {effect}: {why}", key, node.op_span, mend)
            return


def _why(label: str, left: Carried, right: Carried, upper: tuple[Names, Names]) -> str:
    for ours, names, side in ((left, upper[1], "right"), (right, upper[0], "left")):
        if label in ours and names is not None and label not in names:
            return f'the {side} one has no label "{label}"'
    a, b = left.get(label), right.get(label)
    return (
        f'"{label}" is "{a}" on the left and "{b}" on the right' if a is not None and b is not None and a != b else ""
    )


def _mend(label: str, node: ast.Binary) -> str:
    if node.matching is not None and node.matching.on:
        return f"take {label} out of on (...), or keep it on both sides"
    if node.op in ("and", "unless"):
        return f"join on the labels that both have, {node.op} on (...), or aggregate both sides alike"
    return f"write {node.op} ignoring ({label}) group_left () where one value meets many, or aggregate both sides alike"


def _compared(label: str, matching: ast.Matching | None) -> bool:
    if matching is None:
        return True
    return (label in matching.labels) == matching.on


def carried(node: ast.Expr, metrics: Mapping[str, Metric]) -> Carried:
    """Labels that every series of the result has, as far as the catalogue tells."""
    match node:
        case ast.VectorSelector():
            return _of_selector(node, metrics.get(node.metric or ""))
        case ast.Aggregate():
            return _of_aggregate(node, carried(node.expr, metrics))
        case ast.Binary():
            return _of_binary(node, metrics)
        case ast.Call(function=function) if function in _UNKNOWN:
            return {}
        case _:
            parts = [carried(each, metrics) for each in ast.children(node)]
            return next((part for part in parts if part), {})


def _of_selector(node: ast.VectorSelector, metric: Metric | None) -> Carried:
    sure = {} if metric is None else dict.fromkeys(set(metric.labels) - set(metric.optional))
    fixed = {each.name: each.value for each in node.matchers if each.op == "=" and each.value}
    gone = {each.name for each in node.matchers if each.op == "=" and not each.value}
    return {label: value for label, value in {**sure, **fixed}.items() if label not in gone | {"__name__"}}


def _of_aggregate(node: ast.Aggregate, inner: Carried) -> Carried:
    if node.op in _PICKS:
        return inner
    if node.op == "count_values":
        return {}
    return {label: value for label, value in inner.items() if (label in node.labels) != node.without}


def _of_binary(node: ast.Binary, metrics: Mapping[str, Metric]) -> Carried:
    left, right = carried(node.left, metrics), carried(node.right, metrics)
    matching = node.matching
    if _scalar(node.left):
        return right
    if _scalar(node.right) or node.op in ("and", "unless"):
        return left
    if node.op == "or":
        return dict.fromkeys({*left} & {*right})
    if matching is None:
        return left
    if matching.group is not None:
        many, one = (left, right) if matching.group == "left" else (right, left)
        return {**many, **{label: one[label] for label in matching.include if label in one}}
    return {label: value for label, value in left.items() if _compared(label, matching)}


def _scalar(node: ast.Expr) -> bool:
    match ast.unwrapped(node):
        case ast.Number():
            return True
        case ast.Unary(expr=inner):
            return _scalar(inner)
        case ast.Binary(left=left, right=right):
            return _scalar(left) and _scalar(right)
        case ast.Call(function=function):
            return function in ("scalar", "time", "pi", "max_of", "min_of")
        case _:
            return False
