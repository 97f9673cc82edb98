"""Binary operators on the results of two nodes."""

from __future__ import annotations

import math
from collections.abc import Callable

from healthwatch.promql import ast
from healthwatch.promql.check import type_of
from healthwatch.promql.match import DEFAULT, Matcher
from healthwatch.promql.node import VectorNode
from healthwatch.promql.operators import ARITHMETIC, COMPARISON, HOLDS, MIRRORED, compared, truth
from healthwatch.promql.sets import SETS
from healthwatch.promql.vector import FINITE, NO_NAN, Moment, Vector
from healthwatch.stream.ring import Floats

Compute = Callable[[Moment], Vector]


def operation(node: ast.Binary, left: VectorNode, right: VectorNode) -> Compute:
    """What computes the operator on two nodes."""
    if node.op in SETS:
        return _set_operator(node, left, right)
    if scalar(node.left) or scalar(node.right):
        return _with_scalar(node, left, right)
    return _matched(node, left, right)


def scalar(node: ast.Expr) -> bool:
    return type_of(node) == "scalar"


def _set_operator(node: ast.Binary, left: VectorNode, right: VectorNode) -> Compute:
    operator = SETS[node.op](node.matching or DEFAULT)
    return lambda moment: operator(left.at(moment), right.at(moment))


def harmless(node: ast.Expr) -> bool:
    """Whether the expression can't fail, and keeps nothing up to date that would have to be made anew."""
    return all(
        isinstance(each, ast.VectorSelector | ast.MatrixSelector | ast.Number | ast.Paren | ast.Unary)
        or (isinstance(each, ast.Binary) and (scalar(each.left) or scalar(each.right) or each.op in SETS))
        or (isinstance(each, ast.Aggregate) and each.param is None)
        or (isinstance(each, ast.Call) and each.function in _HARMLESS)
        for each in ast.walk(node)
    )


_HARMLESS = frozenset(
    f"{name}_over_time" for name in ("avg", "sum", "min", "max", "count", "last", "first", "present", "stddev")
) | {"abs", "finite", "nonfinite", "deriv"}


def unless_clear(plain: VectorNode, left: VectorNode) -> Compute:
    """`and`, whose right side is asked only where the left one says nothing, or breaches (R4)."""

    def evaluate(moment: Moment) -> Vector:
        vector = left.at(moment)
        if not vector.breaches() and vector.knows_all():
            return vector.labels.clear()
        return plain.at(moment)

    return evaluate


def _matched(node: ast.Binary, left: VectorNode, right: VectorNode) -> Compute:
    """Vector with vector: the pairs that match, then arithmetic or a comparison on them."""
    matching = node.matching or DEFAULT
    match_up = Matcher(matching, node.op in ARITHMETIC, node.bool_modifier)

    def evaluate(moment: Moment) -> Vector:
        lefts, rights = left.at(moment), right.at(moment)
        join = match_up(lefts, rights)
        pairs, one, other = join.pairs(lefts, rights)
        if node.op in ARITHMETIC and not (pairs.grade >= FINITE and node.op in "+-*"):
            pairs.grade = 0  # nobody else has it yet
        result = _operated(node, pairs, one, other)
        join.check_result(result.kept, matching.group)
        return result

    return evaluate


def _with_scalar(node: ast.Binary, left: VectorNode, right: VectorNode) -> Compute:
    """A vector or a scalar with a scalar; a comparison keeps the vector's value."""
    drops_name = node.op in ARITHMETIC or node.bool_modifier
    vector_is_right = scalar(node.left)
    op = MIRRORED.get(node.op, node.op) if vector_is_right else node.op
    holds = None if node.bool_modifier else HOLDS.get(op)
    upwards = op in (">", ">=")

    def evaluate(moment: Moment) -> Vector:
        lefts, rights = left.at(moment), right.at(moment)
        source = rights if vector_is_right else lefts
        labels = source.labels.nameless() if drops_name else source.labels
        other = lefts if vector_is_right else rights
        number = other.scalar
        grade = min(source.grade, NO_NAN) if number and math.isfinite(number) else 0
        if holds is not None and source.complete() and len(labels):
            extreme = source.greatest if upwards else source.least
            if extreme == extreme and number == number:
                if not holds(extreme, number):
                    return labels.clear()
                grade = NO_NAN
        result = Vector(labels, source.values, source.kept, source.known, grade=grade)
        return _operated(node, result, lefts.values, rights.values)

    return evaluate


_KEEP_NO_NAN = frozenset("+-*/")
"""A number without NaN and a finite one other than 0 give no NaN, whichever comes first in all but the division."""


def _operated(node: ast.Binary, result: Vector, left: Floats, right: Floats) -> Vector:
    if node.op in COMPARISON:
        return (truth if node.bool_modifier else compared)(node.op, result, left, right)
    grade = min(result.grade, NO_NAN) if node.op in _KEEP_NO_NAN else 0  # finite numbers may make an infinity
    return Vector(result.labels, ARITHMETIC[node.op](left, right), result.kept, result.known, grade=grade)
