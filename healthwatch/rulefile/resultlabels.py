"""Which labels the result of an expression can carry, as far as its text and the metric catalogue tell."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypeAlias

from healthwatch.promql import ast
from healthwatch.promql.check import type_of
from healthwatch.stream.catalogue import PLACEMENT, Metric

Names: TypeAlias = frozenset[str] | None  # None: it can't be told

_NONE: frozenset[str] = frozenset()
PICKS = ("topk", "bottomk", "limitk", "limit_ratio")  # aggregations that give back some of their series
RELABELS = ("label_replace", "label_join")
_UNKNOWN = ("absent", "absent_over_time", "info")


def result_labels(node: ast.Expr, metrics: Mapping[str, Metric]) -> Names:
    """Every label that a series of the result may have."""
    match node:
        case ast.Number() | ast.String():
            return _NONE
        case ast.VectorSelector(metric=metric):
            return _of_selector(node, metrics.get(metric or ""))
        case ast.Call(function=function) if function in _UNKNOWN:
            return None
        case ast.Call(function=function, args=(inner, target, *_)) if function in RELABELS:
            named = ast.unwrapped(target)
            new = frozenset((named.value,)) if isinstance(named, ast.String) else None
            return _either(result_labels(inner, metrics), new)
        case ast.Aggregate():
            return _of_aggregate(node, result_labels(node.expr, metrics))
        case ast.Binary():
            return _of_binary(node, result_labels(node.left, metrics), result_labels(node.right, metrics))
        case _:
            return _union(result_labels(each, metrics) for each in ast.children(node))


def _of_selector(node: ast.VectorSelector, metric: Metric | None) -> Names:
    if metric is None:
        return None
    return frozenset((*metric.labels, *PLACEMENT, *(matcher.name for matcher in node.matchers), "__name__"))


def _of_aggregate(node: ast.Aggregate, inner: Names) -> Names:
    if node.op == "count_values":
        return None
    if node.op in PICKS:
        return inner
    if node.without:
        return None if inner is None else inner - {*node.labels, "__name__"}
    return frozenset(node.labels) if inner is None else inner & frozenset(node.labels)


def _of_binary(node: ast.Binary, left: Names, right: Names) -> Names:
    matching = node.matching
    if node.op in ("and", "unless"):
        return left
    if node.op == "or" or "scalar" in (type_of(node.left), type_of(node.right)):
        return _either(left, right)
    if matching is not None and matching.group is not None:
        return _either(left if matching.group == "left" else right, frozenset(matching.include))
    if matching is not None and matching.on:
        return frozenset(matching.labels)
    removed = frozenset(matching.labels) if matching is not None else _NONE
    return None if left is None else left - removed


def _union(several: Iterable[Names]) -> Names:
    found: Names = _NONE
    for names in several:
        found = _either(found, names)
    return found


def _either(left: Names, right: Names) -> Names:
    return None if left is None or right is None else left | right
