"""Expressions that filter nothing: a rule breaches wherever its expression has a value, whatever the value is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from healthwatch.promql import ast
from healthwatch.promql.syntax import COMPARISONS
from healthwatch.promql.text import written
from healthwatch.rulefile.lint.carried import is_scalar
from healthwatch.rulefile.lint.subject import Subject, selectors
from healthwatch.stream.catalogue import Metric

_FILTERS = ("absent", "absent_over_time", "nonfinite", "present_over_time")
_EFFECTS = {"expr": "so the rule always fires", "until": "so the alert never ends"}


def check(subject: Subject) -> None:
    for key, tree in subject.trees():
        found = always(tree) if key in _EFFECTS and subject.written(key) else None
        if found is not None and not _event(subject, found):
            metrics = [subject.known.get(each.metric or "") for each in selectors(found)]
            message, mend = f"this has a value at every step, {_EFFECTS[key]}", _mend(found, tree, metrics)
            subject.report("HW045", message, key, found.span, mend, "warning")
        elif found is None and key in _EFFECTS and subject.written(key):
            _numbers_for_filters(subject, key, tree)


def _numbers_for_filters(subject: Subject, key: str, tree: ast.Expr) -> None:
    """With bool a comparison is 0 or 1, and so always there to whatever asks whether it is there."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.Binary) or node.op not in ("and", "unless"):
            continue
        for side in (node.left, node.right) if node.op == "and" else (node.right,):
            asked = ast.unwrapped(side)
            if isinstance(asked, ast.Binary) and asked.op in COMPARISONS and asked.bool_modifier:
                effect = "excludes everything" if node.op == "unless" else "lets everything through"
                message = f"with bool this is 0 or 1 at every step, so {node.op} {effect}"
                mend = f"leave out bool: {written(replace(asked, bool_modifier=False))}"
                subject.report("HW045", message, key, asked.span, mend, "warning")


def always(node: ast.Expr) -> ast.Expr | None:
    """The part because of which the expression has a value wherever its metrics have samples."""
    node = ast.unwrapped(node)
    match node:
        case ast.Binary(op=op) if op in COMPARISONS and not node.bool_modifier:
            return None
        case ast.Binary(op="unless"):
            return None
        case ast.Binary(op="or", left=left, right=right):
            return always(left) or always(right)
        case ast.Call(function=function) if function in _FILTERS:
            return None
        case ast.Call(function="scalar"):
            return node
        case _:
            return node if all(always(each) is not None for each in ast.children(node)) else None


def _event(subject: Subject, node: ast.Expr) -> bool:
    """Whether its metrics come now and then only, so that to come is what is looked for."""
    metrics = [subject.known.get(each.metric or "") for each in selectors(node)]
    return bool(metrics) and all(each is not None and each.cadence == "sparse" and not each.every for each in metrics)


def _mend(node: ast.Expr, tree: ast.Expr, metrics: Sequence[Metric | None]) -> str:
    if node is not ast.unwrapped(tree):
        return "compare it with a bound, or leave it out"
    if isinstance(node, ast.Binary) and node.bool_modifier:
        left = ast.Call("vector", (node.left,), node.span, node.span) if is_scalar(node) else node.left
        return f"leave out bool: {written(replace(node, left=left, bool_modifier=False))}"
    shown = f"vector({written(node)})" if is_scalar(node) else "it"
    kinds = {each.kind for each in metrics if each is not None}
    return f"compare {shown} with a bound, such as {'== 1' if kinds == {'flag'} else '> 3'}"
