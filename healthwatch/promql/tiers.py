"""Comparisons of a vector with several multiples of another: `x > 2 * y` and `x > 5 * y`, where severity has tiers.

What is not above the least multiple of something that is not negative is not above any other multiple either.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from healthwatch.promql import ast
from healthwatch.promql.check import type_of
from healthwatch.promql.node import VectorNode
from healthwatch.promql.vector import POSITIVE, EvaluationError, Moment, Vector

if TYPE_CHECKING:
    from healthwatch.promql.plan import Place, Planner

WEAKEST = {">": min, ">=": min, "<": max, "<=": max}
"""Which factor says nothing only where no other one does."""


class Tiers:
    """Comparisons that differ in their factor alone."""

    def __init__(self, operator: str) -> None:
        self._weakest = WEAKEST[operator]
        self._nodes: dict[float, VectorNode] = {}
        self.weakest: VectorNode | None = None

    def add(self, factor: float, node: VectorNode) -> None:
        """A comparison with this factor will be asked for."""
        self._nodes.setdefault(factor, node)
        self.weakest = self._nodes[self._weakest(self._nodes)]


def tiered(planner: Planner, node: ast.Binary, plain: VectorNode, place: Place) -> VectorNode:
    """The comparison that asks the weakest one of its tiers first, or `plain` if it is none with a multiple."""
    product = ast.unwrapped(node.right)
    if node.op not in WEAKEST or node.bool_modifier or node.matching is not None or not isinstance(product, ast.Binary):
        return plain
    factor, scaled = _factor_of(product)
    if factor is None or type_of(node.left) != "vector" or type_of(scaled) != "vector":
        return plain
    tiers, source = planner.tiers(node, scaled, place), planner.vector(scaled, place)

    def decide(moment: Moment) -> Vector:
        if tiers.weakest is tier or tiers.weakest is None:
            return plain.at(moment)
        if source.at(moment).grade != POSITIVE:
            return plain.at(moment)
        try:
            weakest = tiers.weakest.at(moment)
        except EvaluationError:  # of two that are one it keeps both, which this one need not
            return plain.at(moment)
        return plain.at(moment) if weakest.breaches() else weakest

    tier = VectorNode(plain.text, decide, plain.inputs, plain.timeless)
    tiers.add(factor, tier)
    return tier


def _factor_of(product: ast.Binary) -> tuple[float | None, ast.Expr]:
    """The finite number of a product, and what it multiplies; None where it is none."""
    for one, other in ((product.left, product.right), (product.right, product.left)):
        number = ast.unwrapped(one)
        if product.op == "*" and isinstance(number, ast.Number) and math.isfinite(number.value):
            return number.value, other
    return None, product
