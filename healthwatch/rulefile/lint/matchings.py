"""How two sides can be joined: what the help of a join that fails proposes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Literal

from healthwatch.promql import ast
from healthwatch.promql.syntax import SET_OPERATORS
from healthwatch.rulefile.lint.carried import carried, compared, made
from healthwatch.rulefile.resultlabels import result_labels
from healthwatch.stream.catalogue import PLACEMENT, Metric

_GROUPS: tuple[Literal["left", "right"] | None, ...] = (None, "left", "right")


def mended(node: ast.Binary, metrics: Mapping[str, Metric], text: str, passes: Callable[[ast.Binary], bool]) -> str:
    """The first way of joining that passes, with several ranks too; `text` is what the node was read from."""

    def fits(joined: ast.Binary) -> bool:
        return passes(joined) and not (_ranks_meet(joined, metrics) or _made_up(joined, node.matching, metrics))

    for matching in _candidates(node, metrics):
        if fits(replace(node, matching=matching)):
            return f"write {node.op} {_written(matching)}"
    right = text[slice(*node.right.span)]
    for base in _candidates(node, metrics):
        matching, whole = _aggregated(node, base, metrics)
        if fits(replace(node, matching=matching, right=whole)):
            by = f" {'without' if whole.without else 'by'} ({', '.join(whole.labels)}) " if whole.labels else ""
            return f"write {node.op} {_written(matching)} max{by}({right})"
    return "aggregate both sides alike"


def _aggregated(
    node: ast.Binary, matching: ast.Matching, metrics: Mapping[str, Metric]
) -> tuple[ast.Matching, ast.Aggregate]:
    """One series of the right side for all that are not told apart, and what is left to match."""
    left, right = ({*carried(side, metrics), *made(side, metrics)} for side in (node.left, node.right))
    gone = tuple(label for label in matching.labels if matching.on or label in right)
    rest = tuple(label for label in matching.labels if matching.on or label in left or label not in right)
    whole = ast.Aggregate("max", node.right, None, gone, not matching.on, node.right.span, node.right.span)
    return replace(matching, labels=rest), whole


def _ranks_meet(node: ast.Binary, metrics: Mapping[str, Metric]) -> bool:
    """Whether series that differ by their rank alone would match one of the other side."""
    if node.op in SET_OPERATORS:
        return False
    group = None if node.matching is None else node.matching.group
    free = [label for label in PLACEMENT if not compared(label, node.matching)]
    sides = (("left", result_labels(node.left, metrics)), ("right", result_labels(node.right, metrics)))
    return any(side != group and (names is None or label in names) for side, names in sides for label in free)


def _made_up(node: ast.Binary, old: ast.Matching | None, metrics: Mapping[str, Metric]) -> bool:
    """Whether a label is compared that one side alone makes, or beside one that is compared it is made of."""
    lone = _lone(node, old, metrics)
    left, right = made(node.left, metrics), made(node.right, metrics)
    for label in {*left, *right}:
        of = (left.get(label, frozenset((label,))) ^ right.get(label, frozenset((label,)))) - {label}
        if compared(label, node.matching) and (label in lone or any(compared(each, node.matching) for each in of)):
            return True
    return False


def _lone(node: ast.Binary, old: ast.Matching | None, metrics: Mapping[str, Metric]) -> set[str]:
    """Labels that one side makes and the other has not for sure; where they are compared already it may have them."""
    lone = set()
    for ours, theirs in ((node.left, node.right), (node.right, node.left)):
        names = result_labels(theirs, metrics)
        for label in {*made(ours, metrics)} - {*made(theirs, metrics)} - {*carried(theirs, metrics)}:
            if not compared(label, old) or (names is not None and label not in names):
                lone.add(label)
    return lone


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
        lone = _lone(node, node.matching, metrics)
        left_out = {*differ, *lacking[0], *lacking[1], *lone, *(() if old.on else old.labels)}
        yield replace(old, on=False, labels=tuple(sorted(left_out)), include=() if old.on else old.include)
    yield replace(old, on=True, labels=common, include=())


def _written(matching: ast.Matching) -> str:
    clause = f"{'on' if matching.on else 'ignoring'} ({', '.join(matching.labels)})"
    return clause if matching.group is None else f"{clause} group_{matching.group} ({', '.join(matching.include)})"
