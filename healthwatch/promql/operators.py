"""The binary operators as array functions, by the name they are written with."""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import replace
from typing import Any, TypeAlias

import numpy as np

from healthwatch.promql.vector import Vector, both, everything
from healthwatch.stream.ring import Floats, Mask

Arithmetic: TypeAlias = Callable[[Floats, Floats], Floats]
Comparison: TypeAlias = Callable[[Any, Any], Mask]

ARITHMETIC: dict[str, Arithmetic] = {
    "+": np.add,
    "-": np.subtract,
    "*": np.multiply,
    "/": np.divide,
    "%": np.fmod,
    "^": np.power,
    "atan2": np.arctan2,
}

COMPARISON: dict[str, Comparison] = {
    "==": np.equal,
    "!=": np.not_equal,
    ">": np.greater,
    "<": np.less,
    ">=": np.greater_equal,
    "<=": np.less_equal,
}

HOLDS: dict[str, Callable[[float, float], bool]] = {
    ">": operator.gt,
    "<": operator.lt,
    ">=": operator.ge,
    "<=": operator.le,
}
"""The comparisons by order, of two numbers: far quicker than those of arrays."""

SET_OPERATORS = frozenset(("and", "or", "unless"))

MIRRORED = {"==": "==", "!=": "!=", ">": "<", "<": ">", ">=": "<=", "<=": ">="}
"""The comparison that says the same with its sides changed over."""

_OPPOSITE: dict[str, Comparison] = {">": np.less_equal, "<": np.greater_equal, ">=": np.less, "<=": np.greater}
"""What holds where the comparison does not, unless one of the sides is NaN."""


def compared(op: str, result: Vector, left: Floats, right: Floats) -> Vector:
    """Keep of `result`, whose masks are those of both operands, the elements for which left and right compare.

    A NaN in a kept operand is no data: its comparison is false, and it is not known either (R4).
    """
    held = COMPARISON[op](left, right)
    kept = both(result.kept, held)
    places = kept.nonzero()[0]
    known = result.known
    if not result.grade and _may_hold_nan(op, held, left, right):
        nan = np.isnan(left) | np.isnan(right)
        known = known & ~(nan & result.kept) | kept
    elif not len(places) and known is everything(len(known)):
        return result.labels.clear()
    found = Vector(result.labels, result.values, kept, known)
    found.places = places
    return found


def _may_hold_nan(op: str, held: Mask, left: Floats, right: Floats) -> bool:
    """Two comparisons and two counts are half the price of looking for NaN on both sides."""
    opposite = _OPPOSITE.get(op)
    if opposite is None:
        return True
    return bool(np.count_nonzero(held) + np.count_nonzero(opposite(left, right)) < held.size)


def truth(op: str, result: Vector, left: Floats, right: Floats) -> Vector:
    """The comparison as 0 or 1."""
    return replace(result, values=COMPARISON[op](left, right).astype(np.float64), grade=0)
