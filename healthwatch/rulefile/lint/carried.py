"""Labels that a series of an expression's result has for sure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

from healthwatch.promql import ast
from healthwatch.promql.check import type_of
from healthwatch.rulefile.resultlabels import PICKS, RELABELS, result_labels
from healthwatch.stream.catalogue import Metric

Carried: TypeAlias = Mapping[str, str | None]  # labels that every series has; the value where it is fixed

_UNKNOWN = ("absent", "absent_over_time", "vector", "scalar", "time", "info")


def compared(label: str, matching: ast.Matching | None) -> bool:
    """Whether the two sides of a join must agree in the label."""
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
        case ast.Call(function=function, args=(inner, *texts)) if function in RELABELS:
            target = _text(texts[0])  # which may be empty: what it is made of stays
            return {label: value for label, value in carried(inner, metrics).items() if label != target}
        case _:
            parts = [carried(each, metrics) for each in ast.children(node)]
            return next((part for part in parts if part), {})


def made(node: ast.Expr, metrics: Mapping[str, Metric]) -> Mapping[str, frozenset[str]]:
    """Labels that `label_replace` and `label_join` give, and of which labels of its series each is made."""
    names = result_labels(node, metrics)
    return {label: of for label, of in _made(node).items() if names is None or label in names}


def _made(node: ast.Expr) -> dict[str, frozenset[str]]:
    kept = (node.left,) if isinstance(node, ast.Binary) and node.op in ("and", "unless") else ast.children(node)
    found: dict[str, frozenset[str]] = {}
    for each in kept:
        for label, of in _made(each).items():
            found[label] = found.get(label, frozenset()) | of
    if isinstance(node, ast.Call) and node.function in RELABELS:
        target, _, *rest = map(_text, node.args[1:])
        sources = [name for name in (rest[:1] if node.function == "label_replace" else rest) if name]
        of = frozenset(each for name in sources for each in found.get(name, {name}))
        found[target] = found.get(target, frozenset()) | of
    return found


def _text(node: ast.Expr) -> str:
    found = ast.unwrapped(node)
    return found.value if isinstance(found, ast.String) else ""


def _of_selector(node: ast.VectorSelector, metric: Metric | None) -> Carried:
    sure = {} if metric is None else dict.fromkeys(set(metric.labels) - set(metric.optional))
    fixed = {each.name: each.value for each in node.matchers if each.op == "=" and each.value}
    gone = {each.name for each in node.matchers if each.op == "=" and not each.value}
    return {label: value for label, value in {**sure, **fixed}.items() if label not in gone | {"__name__"}}


def _of_aggregate(node: ast.Aggregate, inner: Carried) -> Carried:
    if node.op in PICKS:
        return inner
    if node.op == "count_values":
        return {}
    return {label: value for label, value in inner.items() if (label in node.labels) != node.without}


def _of_binary(node: ast.Binary, metrics: Mapping[str, Metric]) -> Carried:
    left, right = carried(node.left, metrics), carried(node.right, metrics)
    matching = node.matching
    if is_scalar(node.left):
        return right
    if is_scalar(node.right) or node.op in ("and", "unless"):
        return left
    if node.op == "or":
        return dict.fromkeys({*left} & {*right})
    if matching is None:
        return left
    if matching.group is not None:
        many, one = (left, right) if matching.group == "left" else (right, left)
        return {**many, **{label: one[label] for label in matching.include if label in one}}
    return {label: value for label, value in left.items() if compared(label, matching)}


def is_scalar(node: ast.Expr) -> bool:
    """Whether it is a number and no vector."""
    return type_of(node) == "scalar"
