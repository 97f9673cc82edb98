"""Comparisons of our own functions with a number, decided for nearly every series without computing the function.

A screen proves of a series that it is known and not kept. What it can't prove is computed the plain way, so that kept,
known and the values of what is kept are those of the plain way to the last bit. Values of what is not kept are 0.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from healthwatch.promql import ast, training
from healthwatch.promql.bracket import Bracket
from healthwatch.promql.moving import Moving, Span
from healthwatch.promql.node import VectorNode
from healthwatch.promql.operators import COMPARISON, MIRRORED
from healthwatch.promql.smoothing import Smoothing
from healthwatch.promql.spread import Spread
from healthwatch.promql.vector import Indices, Moment, Vector, everything
from healthwatch.stream.ring import Floats, Mask

if TYPE_CHECKING:
    from healthwatch.promql.plan import Planner

_SLACK = 1e-9
"""By how much a bound is lowered for the rounding on both sides."""

_LEAST, _MOST = 1e-2, 1e6
"""Bounds between which that slack is many times what rounding can do."""

_MOST_DOUBTFUL = 1 / 4

Proof: TypeAlias = Callable[[Span, Floats, float], tuple[Mask, Floats]]
"""Where it holds for sure that a series is known and its value at most the bound; and the least its divisor can be."""

Refit: TypeAlias = Callable[[Span, Indices], None]


@dataclass(frozen=True, slots=True)
class Screen:
    proof: Proof
    refit: Refit  # for series that could not be decided although nothing is wrong with their window


def _spike_ratio(moving: Moving) -> Screen:
    bracket = Bracket()
    moving.follow(bracket)

    def proof(_: Span, now: Floats, bound: float) -> tuple[Mask, Floats]:
        limit = bracket.low * (bound * (1 - _SLACK))
        return _proven(now, limit, bracket.low)

    return Screen(proof, bracket.fit)


def _robust_zscore(moving: Moving) -> Screen:
    spread = Spread()
    moving.follow(spread)

    def proof(_: Span, now: Floats, bound: float) -> tuple[Mask, Floats]:
        limit = spread.divisor * (bound * (1 - _SLACK))
        limit += spread.low
        return _proven(now, limit, spread.divisor)

    return Screen(proof, spread.fit)


def _ema_ratio(moving: Moving) -> Screen:
    smoothing = Smoothing(moving.window)
    moving.follow(smoothing)

    def proof(span: Span, now: Floats, bound: float) -> tuple[Mask, Floats]:
        low = smoothing.low(span)
        return _proven(now, low * (bound * (1 - _SLACK)), low)

    return Screen(proof, smoothing.refresh)


SCREENS: dict[str, Callable[[Moving], Screen]] = {
    "spike_ratio": _spike_ratio,
    "robust_zscore": _robust_zscore,
    "ema_ratio": _ema_ratio,
}


def _proven(now: Floats, limit: Floats, divisor: Floats) -> tuple[Mask, Floats]:
    """Where now is at most the limit; without a positive divisor there is no result, and nothing is proven."""
    proven = now <= limit
    if not divisor.min(initial=np.inf) > 0:
        proven &= divisor > 0
    return proven, divisor


@dataclass(frozen=True, slots=True)
class Pattern:
    """`function(selector[window], min_samples) > bound`."""

    window: ast.MatrixSelector
    function: training.TrainingFunction
    min_samples: float
    operator: str
    bound: float


def pattern_of(node: ast.Binary) -> Pattern | None:
    """What a comparison says if a screen can decide it."""
    left, operator, right = _unwrapped(node.left), node.op, _unwrapped(node.right)
    if isinstance(left, ast.Number) and operator in MIRRORED:
        left, operator, right = right, MIRRORED[operator], left
    if not isinstance(left, ast.Call) or not isinstance(right, ast.Number) or operator not in (">", ">="):
        return None
    if node.bool_modifier or left.function not in SCREENS or not _LEAST <= right.value <= _MOST:
        return None
    function, window = training.TRAINING[left.function], _unwrapped(left.args[0])
    minimum = _unwrapped(left.args[1]) if len(left.args) > 1 else ast.Number(function.min_samples, left.span)
    if not isinstance(window, ast.MatrixSelector) or window.selector.at or not isinstance(minimum, ast.Number):
        return None
    return Pattern(window, function, minimum.value, operator, right.value)


def _unwrapped(node: ast.Expr) -> ast.Expr:
    while isinstance(node, ast.Paren):
        node = node.expr
    return node


def screened(planner: Planner, node: ast.Binary, plain: VectorNode) -> VectorNode:
    """The comparison with its screen in front, or `plain` if there is none for it."""
    pattern = pattern_of(node)
    if pattern is None:
        return plain
    screen = planner.screen(pattern.function.name, pattern.window)
    decide = Decide(pattern, planner.moving(pattern.window), screen, plain)
    return VectorNode(plain.text, decide, plain.inputs, plain.timeless)


@dataclass(slots=True)
class Decide:
    pattern: Pattern
    moving: Moving
    screen: Screen
    plain: VectorNode

    def __call__(self, moment: Moment) -> Vector:
        span = self.moving.at(moment)
        if span is None or span.count < self.pattern.min_samples:
            return self.plain.at(moment)
        proven, divisor = self.screen.proof(span, span.row(span.now), self.pattern.bound)
        if self.moving.irregular is not None:
            proven &= ~self.moving.irregular
        doubtful = np.flatnonzero(~proven)
        if len(doubtful) > _MOST_DOUBTFUL * len(proven):
            return self.plain.at(moment)
        stuck = doubtful[~(divisor[doubtful] > 0)]
        if len(stuck):
            self.screen.refit(span, stuck)
        return self._decided(span, doubtful, len(proven))

    def _decided(self, span: Span, doubtful: Indices, size: int) -> Vector:
        labels = self.moving.selection.labels.nameless()
        values, kept, known = np.zeros(size), np.zeros(size, bool), everything(size)
        if len(doubtful):
            baseline = span.baseline(doubtful)
            found, defined = training.evaluate(self.pattern.function, baseline, self.pattern.min_samples)
            values[doubtful] = found
            kept[doubtful] = defined & COMPARISON[self.pattern.operator](found, self.pattern.bound)
            if not defined.all():
                known = known.copy()
                known[doubtful] = defined
        return Vector(labels, values, kept, known)
