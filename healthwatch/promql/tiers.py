"""Comparisons of a vector with several multiples of another: `x > 2 * y` and `x > 5 * y`, where severity has tiers.

What is not above one multiple of something that is not negative is not above a greater multiple either.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from healthwatch.promql import ast
from healthwatch.promql.check import type_of
from healthwatch.promql.node import VectorNode
from healthwatch.promql.operators import HOLDS
from healthwatch.promql.vector import POSITIVE, Moment, Vector

if TYPE_CHECKING:
    from healthwatch.promql.plan import Place, Planner


class Tiers:
    """Comparisons that differ in their factor alone, and the weakest of which nothing was kept at a moment."""

    def __init__(self, operator: str) -> None:
        self._weaker = HOLDS[">=" if operator in ("<", "<=") else "<="]
        self._known: tuple[Moment, float, Vector] | None = None

    def clear(self, moment: Moment, factor: float) -> Vector | None:
        """What was said at the moment with this factor or one that keeps more, if nothing was kept."""
        if self._known is None or self._known[0] != moment or not self._weaker(self._known[1], factor):
            return None
        return self._known[2]

    def note(self, moment: Moment, factor: float, clear: Vector) -> None:
        """Nothing is kept with this factor."""
        self._known = moment, factor, clear


def tiered(planner: Planner, node: ast.Binary, plain: VectorNode, place: Place) -> VectorNode:
    """The comparison, computed only where no weaker one of its tiers has been clear before it at the same moment; or
    `plain` if it is none with a multiple.
    """
    product = ast.unwrapped(node.right)
    if node.op not in HOLDS or node.bool_modifier or node.matching is not None or not isinstance(product, ast.Binary):
        return plain
    factor, scaled = _factor_of(product)
    if factor is None or type_of(node.left) != "vector" or type_of(scaled) != "vector":
        return plain
    tiers, source = planner.tiers(node, scaled, place), planner.vector(scaled, place)

    def decide(moment: Moment) -> Vector:
        clear = tiers.clear(moment, factor)
        if clear is not None:
            return clear
        found = plain.at(moment)
        if not found.breaches() and source.at(moment).grade == POSITIVE:
            tiers.note(moment, factor, found)
        return found

    return VectorNode(plain.text, decide, plain.inputs, plain.timeless)


def _factor_of(product: ast.Binary) -> tuple[float | None, ast.Expr]:
    """The finite number of a product, and what it multiplies; None where it is none."""
    for one, other in ((product.left, product.right), (product.right, product.left)):
        number = ast.unwrapped(one)
        if product.op == "*" and isinstance(number, ast.Number) and math.isfinite(number.value):
            return number.value, other
    return None, product
