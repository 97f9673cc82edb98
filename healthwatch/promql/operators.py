"""The binary operators as array functions, by the name they are written with."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TypeAlias

import numpy as np

from healthwatch.promql.vector import Vector, both
from healthwatch.stream.ring import Floats, Mask

Arithmetic: TypeAlias = Callable[[Floats, Floats], Floats]
Comparison: TypeAlias = Callable[[Floats, Floats], Mask]

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

SET_OPERATORS = frozenset(("and", "or", "unless"))

MIRRORED = {"==": "==", "!=": "!=", ">": "<", "<": ">", ">=": "<=", "<=": ">="}
"""The comparison that says the same with its sides changed over."""


def compared(operator: str, result: Vector, left: Floats, right: Floats) -> Vector:
    """Keep of `result`, whose masks are those of both operands, the elements for which left and right compare.

    A NaN in a kept operand is no data: its comparison is false, and it is not known either (R4).
    """
    kept = both(result.kept, COMPARISON[operator](left, right))
    if operator == "!=":
        return _unequal(result, kept, left, right)
    return replace(result, kept=kept, known=_without_nan(result, left, right))


def _unequal(result: Vector, kept: Mask, left: Floats, right: Floats) -> Vector:
    return replace(result, kept=kept, known=_without_nan(result, left, right) | kept)


def _without_nan(result: Vector, left: Floats, right: Floats) -> Mask:
    nan = np.isnan(left) | np.isnan(right)
    return result.known & ~(nan & result.kept) if nan.any() else result.known


def truth(operator: str, result: Vector, left: Floats, right: Floats) -> Vector:
    """The comparison as 0 or 1."""
    return replace(result, values=COMPARISON[operator](left, right).astype(np.float64))
