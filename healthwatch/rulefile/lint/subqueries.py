"""Subqueries of so many points that a step has to wait for them."""

from __future__ import annotations

from collections.abc import Iterator

from healthwatch.promql import ast
from healthwatch.rulefile.lint.subject import Subject
from healthwatch.stream import TICKS_PER_STEP

MANY = 500  # points that the first evaluation computes within the 50 ms that a step may wait
SECONDS = 1e-4  # of one point, with few series


def check(subject: Subject) -> None:
    """A subquery computes what is inside it once a point, and those inside each other multiply."""
    for key, tree in subject.trees():
        for node, points in _outermost(tree):
            if points > MANY:
                message = (
                    f"a subquery of {points:,} points: the first step waits {_time(points)} for them,"
                    " and each later one looks through them all"
                )
                step = -(-points * (node.step or TICKS_PER_STEP) // (MANY * TICKS_PER_STEP))
                mend = f"a coarser step, such as [{node.window // TICKS_PER_STEP}:{step}], asks for fewer"
                subject.report("HW040", message, key, node.span, mend, "warning")


def _outermost(node: ast.Expr) -> Iterator[tuple[ast.Subquery, int]]:
    if isinstance(node, ast.Subquery):
        yield node, _points(node)
        return
    for each in ast.children(node):
        yield from _outermost(each)


def _points(node: ast.Expr) -> int:
    """How often the innermost expression is computed."""
    inner = max((_points(each) for each in ast.children(node)), default=1)
    if not isinstance(node, ast.Subquery):
        return inner
    return inner * max(1, node.window // (node.step or TICKS_PER_STEP))


def _time(points: int) -> str:
    seconds = points * SECONDS
    return f"about {seconds:.0f} s" if seconds >= 1 else f"about {1000 * seconds:.0f} ms"
