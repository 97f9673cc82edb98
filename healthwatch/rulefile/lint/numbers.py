"""Numbers that make no sense where they stand."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

from healthwatch.promql import ast
from healthwatch.promql.syntax import COMPARISONS
from healthwatch.promql.text import written
from healthwatch.promql.training import MIN_ROWS, TRAINING
from healthwatch.rulefile.lint.subject import Subject
from healthwatch.stream.catalogue import Metric
from healthwatch.stream.ticks import TICKS_PER_STEP

_TAKES = ("topk", "bottomk", "limitk")


def check(subject: Subject) -> None:
    for key, tree in subject.trees():
        for node in ast.walk(tree):
            _samples(subject, key, node)
        for node in ast.walk(tree) if subject.written(key) else ():
            match node:
                case ast.Aggregate(op=op, param=count) if op in _TAKES and count is not None:
                    _count(subject, key, count, f"{op} takes a whole number of elements", math.floor)
                case ast.Call(function=function, args=(_, least)) if function in TRAINING:
                    _count(subject, key, least, f"{function} asks for a whole number of samples", math.ceil)
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


def _count(subject: Subject, key: str, node: ast.Expr, message: str, whole: Callable[[float], int]) -> None:
    """`whole` says which number one with a fraction acts as."""
    number = ast.unwrapped(node)
    if isinstance(number, ast.Number) and not (number.value >= 1 and number.value == number.value // 1):
        mend = f"write {max(1, whole(number.value))}" if math.isfinite(number.value) else ""
        subject.report("HW046", f"{message}, at least 1", key, number.span, mend, "warning")


def _samples(subject: Subject, key: str, node: ast.Expr) -> None:
    """More samples asked for than come in a window: there is never a value, or the comparison never holds."""
    match node:
        case ast.Call(function=function, args=(window, least)) if function in TRAINING:
            before = _held(window, subject.known) - 1
            most, word = max(before, MIN_ROWS) if isinstance(window, ast.MatrixSelector) else before, ""
        case ast.Binary(op=">" | ">=" as op, left=ast.Call(function="count_over_time", args=(window,)), right=least):
            most, word = _held(window, subject.known), "more than " if op == ">" else ""
        case _:
            return
    number = ast.unwrapped(least)
    if isinstance(number, ast.Number) and (number.value >= most if word else number.value > most):
        message = f"at most {most:,} samples come in this window, never {word}{number.value:,.15g}"
        subject.report("HW046", message, key, number.span, "lengthen the window, or ask for fewer", "warning")


def _held(window: ast.Expr, known: Mapping[str, Metric]) -> float:
    """How many samples of a series a window holds, where its metric comes once a step at most."""
    match ast.unwrapped(window):
        case ast.Call(function="finite", args=(inner,)):
            return _held(inner, known)
        case ast.MatrixSelector(window=width, selector=ast.VectorSelector(metric=name)):
            metric = known.get(name or "")
            return math.inf if metric is None or metric.cadence == "micro-step" else math.ceil(width / TICKS_PER_STEP)
        case _:
            return math.inf
