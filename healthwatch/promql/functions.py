"""Functions of one value at a time: each takes values and scalar parameters and gives values. All drop the name."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from healthwatch.promql.dates import DATES
from healthwatch.stream.ring import Floats

Elementwise: TypeAlias = Callable[..., "Floats | None"]
"""None where the parameters leave no result at all."""


def _round(values: Floats, to: float = 1.0) -> Floats:
    """Half up; `1 / to` is kept rather than `to`, which many fractions have no exact form of."""
    inverse = 1.0 / to if to else math.inf
    return np.asarray(np.floor(values * inverse + 0.5) / inverse)


def _clamp(values: Floats, low: float, high: float) -> Floats | None:
    if low > high:
        return None
    if math.isnan(low) or math.isnan(high):
        return np.full_like(values, np.nan)
    return np.maximum(low, np.minimum(high, values))


def _clamp_min(values: Floats, low: float) -> Floats:
    return np.maximum(low, values)


def _clamp_max(values: Floats, high: float) -> Floats:
    return np.minimum(high, values)


def _sgn(values: Floats) -> Floats:
    return np.where(values < 0, -1.0, np.where(values > 0, 1.0, values))


def _deg(values: Floats) -> Floats:
    return values * (180 / math.pi)


def _rad(values: Floats) -> Floats:
    return values * (math.pi / 180)


ELEMENTWISE: dict[str, Elementwise] = {
    "abs": np.abs,
    "ceil": np.ceil,
    "floor": np.floor,
    "exp": np.exp,
    "sqrt": np.sqrt,
    "ln": np.log,
    "log2": np.log2,
    "log10": np.log10,
    "sgn": _sgn,
    "round": _round,
    "clamp": _clamp,
    "clamp_min": _clamp_min,
    "clamp_max": _clamp_max,
    "sin": np.sin,
    "cos": np.cos,
    "tan": np.tan,
    "asin": np.arcsin,
    "acos": np.arccos,
    "atan": np.arctan,
    "sinh": np.sinh,
    "cosh": np.cosh,
    "tanh": np.tanh,
    "asinh": np.arcsinh,
    "acosh": np.arccosh,
    "atanh": np.arctanh,
    "deg": _deg,
    "rad": _rad,
    **DATES,
}
