"""Joins that can never succeed: whose sides never carry the same labels, or of which several series match one."""

from __future__ import annotations

from collections.abc import Mapping

from healthwatch.promql import ast
from healthwatch.promql.syntax import SET_OPERATORS
from healthwatch.rulefile.lint import matchings
from healthwatch.rulefile.lint.carried import Carried, carried, compared, is_scalar, made
from healthwatch.rulefile.lint.subject import Subject
from healthwatch.rulefile.resultlabels import PICKS, Names, result_labels
from healthwatch.stream.catalogue import Metric


def check(subject: Subject) -> None:
    for key, tree in subject.trees():
        for node in ast.walk(tree) if subject.written(key) else ():
            if isinstance(node, ast.Binary) and node.op != "or" and not (is_scalar(node.left) or is_scalar(node.right)):
                _check_join(subject, key, node)


def _check_join(subject: Subject, key: str, node: ast.Binary) -> None:
    never, several = _never(node, subject.metrics), _several(node, subject.metrics)
    if not (never or several):
        return
    text = str(subject.draft.data[key])
    mend = matchings.mended(node, subject.metrics, text, lambda each: not _fails(each, subject.metrics))
    if never:
        effect = "it excludes nothing" if node.op == "unless" else "it is always empty"
        message = f"the two sides of {node.op} never match, {effect}: {never}"
        subject.report("HW024", message, key, node.op_span, mend)
    else:
        subject.report("HW047", several, key, node.op_span, mend, "warning")


def _fails(node: ast.Binary, metrics: Mapping[str, Metric]) -> bool:
    """Whether it may fail: what is proposed must hold where several series have the same copy of what differs, too."""
    return bool(_never(node, metrics) or _several(node, metrics, copies=False))


def _never(node: ast.Binary, metrics: Mapping[str, Metric]) -> str:
    """Why no series of one side can match one of the other, or nothing."""
    left, right = carried(node.left, metrics), carried(node.right, metrics)
    upper = result_labels(node.left, metrics), result_labels(node.right, metrics)
    reasons = (
        _why(label, left, right, upper)
        for label in sorted({*left, *right})
        if compared(label, node.matching) and label != "__name__"
    )
    return next(filter(None, reasons), "")


def _why(label: str, left: Carried, right: Carried, upper: tuple[Names, Names]) -> str:
    for ours, names, side in ((left, upper[1], "right"), (right, upper[0], "left")):
        if label in ours and names is not None and label not in names:
            return f'the {side} one has no label "{label}"'
    a, b = left.get(label), right.get(label)
    return (
        f'"{label}" is "{a}" on the left and "{b}" on the right' if a is not None and b is not None and a != b else ""
    )


def _several(node: ast.Binary, metrics: Mapping[str, Metric], *, copies: bool = True) -> str:
    """Which side has several series that match one of the other where it must have one, or nothing.

    With `copies` a label counts as compared where one that is made of it is; else what is made tells series apart, too.
    """
    if node.op in SET_OPERATORS:
        return ""
    group = None if node.matching is None else node.matching.group
    told = []
    for side, name in ((node.left, "left"), (node.right, "right")):
        apart = () if name == group else _apart(side, node.matching, metrics, copies)
        if apart:
            labels = " or ".join(f'"{label}"' for label in apart)
            verb = "is" if len(apart) == 1 else "are"
            told.append(f"several series of the {name} side differ by {labels} alone, which {verb} not compared")
    return f"this join fails where {'; '.join(told)}" if told else ""


def _apart(side: ast.Expr, matching: ast.Matching | None, metrics: Mapping[str, Metric], copies: bool) -> list[str]:
    """Labels that tell series of the side from each other and are not compared; of what picks out series, none."""
    if any(isinstance(each, ast.Aggregate) and each.op in PICKS for each in ast.walk(side)):
        return []
    free = {label for label, value in carried(side, metrics).items() if value is None and not compared(label, matching)}
    for label, of in made(side, metrics).items():
        if compared(label, matching):
            free -= of if copies else frozenset()
        elif not copies and not all(compared(each, matching) for each in of):
            free.add(label)
    return sorted(free)
