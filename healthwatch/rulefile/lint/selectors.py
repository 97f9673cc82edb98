"""Selectors and groupings against the labels that the metrics carry."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Set

from healthwatch.diagnostics import Severity, likely_typo, suggest
from healthwatch.promql import ast
from healthwatch.promql.regex import compile_regex
from healthwatch.rulefile.lint.subject import Subject
from healthwatch.rulefile.resultlabels import result_labels
from healthwatch.stream.catalogue import PLACEMENT, Metric

_LIKELY_TYPO = 0.75  # difflib's ratio from which an unknown label is taken for a misspelt one
_NAME = "__name__"


def check(subject: Subject) -> None:
    """Conditions check their own labels, so only what is written as PromQL is looked at for unknown ones."""
    for key, tree in subject.trees():
        for node in ast.walk(tree):
            match node:
                case ast.VectorSelector():
                    _selector(subject, key, node)
                case ast.Aggregate(labels=labels, expr=inner) if subject.written(key):
                    _labels(subject, key, node, labels, result_labels(inner, subject.metrics))
                case ast.Binary(matching=matching) if matching is not None and subject.written(key):
                    sides = [result_labels(side, subject.metrics) for side in (node.left, node.right)]
                    carried = None if None in sides else frozenset().union(*(side for side in sides if side))
                    _labels(subject, key, node, matching.labels, carried)


def _selector(subject: Subject, key: str, node: ast.VectorSelector) -> None:
    for matcher in _never(node, subject.metrics.get(node.metric or "")):
        absent = matcher.op == "=" and not matcher.value
        why = "every series has a" if absent else "a label is one thing at a time:"
        message = f'no series can match: {why} "{matcher.name}"'
        mend = "drop the matcher" if absent else "drop one of the matchers, or join them with =~ and |"
        subject.report("HW026", message, key, matcher.span, mend)
    metric = subject.metrics.get(node.metric or "")
    if metric is None or not subject.written(key):
        return
    for matcher in node.matchers:
        if matcher.name not in (*metric.labels, *PLACEMENT, _NAME) and not admits(matcher, ""):
            start = matcher.span[0]
            where = (start, start + len(matcher.name))
            _unknown(subject, key, matcher.name, f'"{metric.name}"', {*metric.labels}, where)


def _labels(
    subject: Subject, key: str, node: ast.Aggregate | ast.Binary, labels: Iterable[str], carried: Set[str] | None
) -> None:
    if carried is None:
        return
    text = str(subject.draft.data[key])
    for label in labels:
        if label not in carried:
            found = re.compile(rf"\b{re.escape(label)}\b").search(text, node.op_span[1], node.span[1])
            what = "what it aggregates" if isinstance(node, ast.Aggregate) else "either side"
            _unknown(subject, key, label, what, {*carried} - {_NAME}, found.span() if found else node.op_span)


def _unknown(subject: Subject, key: str, label: str, what: str, carried: Set[str], span: ast.Span) -> None:
    """An error where it resembles a label that is there; else a source of the user's own may add it."""
    near = likely_typo(label, carried, _LIKELY_TYPO)
    own = carried - {*PLACEMENT}
    mend = f'did you mean "{near}"?' if near else suggest(label, own, "its labels") or "it has none of its own"
    severity: Severity = "error" if near else "warning"
    subject.report("HW023", f'{what} has no label "{label}"', key, span, mend, severity)


def _never(node: ast.VectorSelector, metric: Metric | None) -> Iterator[ast.Matcher]:
    """The matchers that contradict an earlier one, or a label that every series of the metric has."""
    carried = set() if metric is None else {*metric.labels} - {*metric.optional}
    for position, matcher in enumerate(node.matchers):
        before = node.matchers[:position]
        fixed = [each.value for each in (*before, matcher) if each.name == matcher.name and each.op == "="]
        others = [each for each in (*before, matcher) if each.name == matcher.name]
        contradicts = fixed and not all(admits(each, fixed[0]) for each in others)
        if contradicts or (matcher.op == "=" and not matcher.value and matcher.name in carried) or _nothing(matcher):
            yield matcher


def _nothing(matcher: ast.Matcher) -> bool:
    return matcher.op == "!~" and matcher.value in (".*", "^.*$", "(.*)")


def admits(matcher: ast.Matcher, value: str) -> bool:
    """Whether a label of this value (empty: absent) passes."""
    if matcher.op in ("=", "!="):
        return (value == matcher.value) == (matcher.op == "=")
    return bool(compile_regex(matcher.value).fullmatch(value)) == (matcher.op == "=~")
