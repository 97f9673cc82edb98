"""How two sides can be joined: what the help of a join that fails proposes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Literal

from healthwatch.promql import ast
from healthwatch.promql.syntax import SET_OPERATORS
from healthwatch.rulefile.conditions.labels import PLACEMENT
from healthwatch.rulefile.lint.carried import carried
from healthwatch.rulefile.resultlabels import result_labels
from healthwatch.stream.catalogue import Metric

_GROUPS: tuple[Literal["left", "right"] | None, ...] = (None, "left", "right")


def mended(node: ast.Binary, metrics: Mapping[str, Metric], text: str, passes: Callable[[ast.Binary], bool]) -> str:
    """The first way of joining that passes; `text` is what the node was read from."""
    for matching in _candidates(node, metrics):
        if passes(replace(node, matching=matching)):
            return f"write {node.op} {_written(matching)}"
    right = text[slice(*node.right.span)]
    for matching in _candidates(node, metrics):
        if not matching.on:
            continue
        whole = ast.Aggregate("max", node.right, None, matching.labels, False, node.right.span, node.right.span)
        if passes(replace(node, matching=matching, right=whole)):
            by = f" by ({', '.join(matching.labels)}) " if matching.labels else ""
            return f"write {node.op} {_written(matching)} max{by}({right})"
    return "aggregate both sides alike"


def _candidates(node: ast.Binary, metrics: Mapping[str, Metric]) -> Iterator[ast.Matching]:
    """Those that compare most come first, one value with one before one with many."""
    for base in _bases(node, metrics):
        for group in (None,) if node.op in SET_OPERATORS else _GROUPS:
            kept = base.include if group is not None and group == base.group else ()
            yield replace(base, group=group, include=kept)


def _bases(node: ast.Binary, metrics: Mapping[str, Metric]) -> Iterator[ast.Matching]:
    left, right = carried(node.left, metrics), carried(node.right, metrics)
    named = [result_labels(side, metrics) for side in (node.left, node.right)]
    shared = {*left} & {*right}
    differ = {label for label in shared if None not in (left[label], right[label]) and left[label] != right[label]}
    common = tuple(sorted(shared - differ))
    old = node.matching or ast.Matching(False, (), None, ())
    if old.on:
        missing = {label for label in old.labels if any(names is not None and label not in names for names in named)}
        yield replace(old, labels=tuple(label for label in old.labels if label not in missing | differ))
    if all(
        names is None or {*PLACEMENT} <= names for names in named
    ):  # whatever else they are told apart by counts, too
        lacking = [
            {label for label in sure if names is not None and label not in names}
            for sure, names in zip((left, right), reversed(named), strict=True)
        ]
        left_out = {*differ, *lacking[0], *lacking[1], *(() if old.on else old.labels)}
        yield replace(old, on=False, labels=tuple(sorted(left_out)), include=() if old.on else old.include)
    yield replace(old, on=True, labels=common, include=())


def _written(matching: ast.Matching) -> str:
    clause = f"{'on' if matching.on else 'ignoring'} ({', '.join(matching.labels)})"
    return clause if matching.group is None else f"{clause} group_{matching.group} ({', '.join(matching.include)})"
