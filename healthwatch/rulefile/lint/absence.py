"""`absent()` of a metric that came once: a selector keeps its newest row, however old that is."""

from __future__ import annotations

from collections.abc import Iterator

from healthwatch.promql import ast
from healthwatch.promql.text import written
from healthwatch.rulefile.lint.always import always
from healthwatch.rulefile.lint.subject import Subject, selectors
from healthwatch.stream import TICKS_PER_STEP

WINDOW = 50  # steps, of an example


def check(subject: Subject) -> None:
    """With a `lookback`, rows grow too old, and `absent()` means what it does in Prometheus."""
    if subject.draft.group.get("lookback") is not None:
        return
    for key, tree in subject.trees():
        for node in _deciding(tree) if subject.written(key) else ():
            if _stays(node.args[0]):
                _report(subject, key, node)


def _deciding(node: ast.Expr) -> Iterator[ast.Call]:
    """Where that a metric is absent is all that is asked; beside something else it may mean that it never was."""
    match ast.unwrapped(node):
        case ast.Call(function="absent") as call:
            yield call
        case ast.Binary(op="or", left=left, right=right):
            yield from _deciding(left)
            yield from _deciding(right)


def _stays(node: ast.Expr) -> bool:
    """Whether it has a result for ever once its metrics have come: no window that empties, nothing that filters."""
    below = ast.walk(node)
    windows = any(isinstance(each, ast.MatrixSelector | ast.Subquery) for each in below)
    return always(node) is not None and not windows and bool(selectors(node))


def _report(subject: Subject, key: str, node: ast.Call) -> None:
    selector = selectors(node)[0]
    metric = subject.known.get(selector.metric or "")
    steps = WINDOW if metric is None or metric.every is None else max(WINDOW, 3 * metric.every)
    window = written(ast.MatrixSelector(selector, steps * TICKS_PER_STEP, selector.span))
    message = f'this is true only until "{selector.metric or written(selector)}" has come for the first time'
    mend = f"absent_over_time({window}) is true where nothing came for {steps} steps; so is the condition missing"
    if metric is not None and metric.cadence == "sparse" and metric.every is None:
        mend = "absent_over_time(...[N]) is true where nothing came for N steps; so is the condition missing"
    subject.report("HW044", message, key, node.span, mend, "warning")
