"""Numbers that make no sense where they stand."""

from __future__ import annotations

import math

from healthwatch.promql import ast
from healthwatch.promql.syntax import COMPARISONS
from healthwatch.promql.text import written
from healthwatch.rulefile.lint.subject import Subject


def check(subject: Subject) -> None:
    for key, tree in subject.trees():
        for node in ast.walk(tree) if subject.written(key) else ():
            match node:
                case ast.Binary(op=op, left=left, right=right) if op in COMPARISONS:
                    _compared_with_nan(subject, key, node, left, right)
                    _nonfinite_compared(subject, key, node, left, right)
                case ast.Aggregate(op="quantile", param=share) if share is not None:
                    _share(subject, key, node.op, share)
                case ast.Call(function="quantile_over_time", args=(share, _)):
                    _share(subject, key, node.function, share)


def _compared_with_nan(subject: Subject, key: str, node: ast.Binary, *sides: ast.Expr) -> None:
    for side in sides:
        number = ast.unwrapped(side)
        if isinstance(number, ast.Number) and math.isnan(number.value):
            truth = "always" if node.op == "!=" else "never"
            message = f"a comparison with NaN is {truth} true, whatever is compared"
            subject.report("HW046", message, key, number.span, "nonfinite(...) finds NaN and infinities", "warning")


def _nonfinite_compared(subject: Subject, key: str, node: ast.Binary, left: ast.Expr, right: ast.Expr) -> None:
    """What other languages give as 0 or 1 is a filter here."""
    for side, other in ((left, right), (right, left)):
        kept, number = ast.unwrapped(side), ast.unwrapped(other)
        if isinstance(kept, ast.Call) and kept.function == "nonfinite" and isinstance(number, ast.Number):
            message = "nonfinite() keeps what is NaN or infinite: compared with a number no NaN is found"
            mend = f"leave out the comparison: {written(kept)}"
            subject.report("HW046", message, key, node.op_span, mend, "warning")


def _share(subject: Subject, key: str, user: str, node: ast.Expr) -> None:
    number = ast.unwrapped(node)
    if not isinstance(number, ast.Number) or 0 <= number.value <= 1:
        return
    percent = 1 < number.value <= 100
    mend = f"write {number.value / 100:g}" if percent else "0.5 is the median, 0 the least and 1 the greatest value"
    message = f"a quantile stands between 0 and 1: {user} of {number.value:g} is infinite"
    subject.report("HW046", message, key, number.span, mend, "warning")
