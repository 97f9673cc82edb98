"""Comparisons of our own functions with a number, decided for nearly every series without computing the function.

A screen proves of a series that it is known and not kept. What it can't prove is computed the plain way, so that kept,
known and the values of what is kept are those of the plain way to the last bit. Values of what is not kept may be
anything.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, TypeAlias

import numpy as np

from healthwatch.promql import ast, fast, training
from healthwatch.promql.blocks import Blocks
from healthwatch.promql.bounds import of_median
from healthwatch.promql.decided import Decided
from healthwatch.promql.minima import Minima
from healthwatch.promql.moving import Moving, Span
from healthwatch.promql.node import VectorNode
from healthwatch.promql.operators import COMPARISON, HOLDS, MIRRORED
from healthwatch.promql.smoothing import Smoothing
from healthwatch.promql.turns import Turns
from healthwatch.promql.vector import Indices, Moment, Vector
from healthwatch.stream.ring import Floats, Mask

if TYPE_CHECKING:
    from healthwatch.promql.ahead import Lookahead
    from healthwatch.promql.plan import Planner

_SLACK = 1e-9
"""By how much a bound is lowered for the rounding on both sides."""

_LEAST, _MOST = 1e-2, 1e6
"""Bounds between which that slack is many times what rounding can do."""

_MOST_DOUBTFUL = 1 / 4

_FEW = 3
"""Series that are computed as quickly as closer limits are asked for."""


class Screen(Protocol):
    """Limits that follow a window: no now up to its series' limit has a value of more than the bound.

    The limit is -inf where nothing is proven. It holds for series with gaps too, unless they are ragged.
    """

    def limit(self, bound: float) -> Floats: ...

    def rebuild(self, span: Span) -> None: ...

    def move(self, span: Span, leaving: range, entering: range) -> None: ...

    def closer(self, span: Span, which: Indices, bound: float) -> Floats | None:
        """Limits that hold now for some series without gaps; None where there are no higher ones."""


NewScreen: TypeAlias = Callable[[int, Callable[[], Blocks]], Screen]
"""Given the window in ticks, and what brings blocks that move with it."""


def _close_median(_: int, __: Callable[[], Blocks]) -> Screen:
    return Turns(of_median, 4)


def _far_median(_: int, blocks: Callable[[], Blocks]) -> Screen:
    return Minima(blocks())


def _close_average(window: int, _: Callable[[], Blocks]) -> Screen:
    return Smoothing(window)


def _far_average(window: int, blocks: Callable[[], Blocks]) -> Screen:
    return Smoothing(window, blocks())


def _close_deviation(_: int, __: Callable[[], Blocks]) -> Screen:
    return Turns(fast.deviation(), 6, fast.limit_of())


def _far_deviation(_: int, __: Callable[[], Blocks]) -> Screen:
    return Turns(fast.deviation(), 5, fast.limit_of())


SCREENS: dict[str, tuple[NewScreen, NewScreen, float]] = {
    "spike_ratio": (_close_median, _far_median, 2.5),
    "robust_zscore": (_close_deviation, _far_deviation, 5.0),
    "ema_ratio": (_close_average, _far_average, 3.0),
}
"""For a bound close to 1, and for one that is so many times as much."""


@dataclass(frozen=True, slots=True)
class Pattern:
    """`function(selector[window], min_samples) > bound`."""

    window: ast.MatrixSelector
    function: training.TrainingFunction
    min_samples: float
    operator: str
    bound: float

    @property
    def screen(self) -> NewScreen:
        """What makes the screen for it."""
        close, far, many_times = SCREENS[self.function.name]
        return far if self.bound >= many_times else close

    def compare(self, values: Floats) -> Mask:
        return COMPARISON[self.operator](values, self.bound)


def pattern_of(node: ast.Binary) -> Pattern | None:
    """What a comparison says if a screen can decide it."""
    left, operator, right = ast.unwrapped(node.left), node.op, ast.unwrapped(node.right)
    if isinstance(left, ast.Number) and operator in MIRRORED:
        left, operator, right = right, MIRRORED[operator], left
    if not isinstance(left, ast.Call) or not isinstance(right, ast.Number) or operator not in (">", ">="):
        return None
    if node.bool_modifier or left.function not in SCREENS or not _LEAST <= right.value <= _MOST:
        return None
    function = training.TRAINING[left.function]
    window, minimum = range_of(left), min_samples_of(left, function)
    if window is None or minimum is None:
        return None
    return Pattern(window, function, minimum, operator, right.value)


def range_of(call: ast.Call) -> ast.MatrixSelector | None:
    """The range of a function of our own, if it is one that moves with the evaluation."""
    window = ast.unwrapped(call.args[0])
    return window if isinstance(window, ast.MatrixSelector) and window.selector.at is None else None


def min_samples_of(call: ast.Call, function: training.TrainingFunction) -> float | None:
    """The last argument, 1 at the least, or its default; None where it varies or is no number."""
    if len(call.args) == 1:
        return function.min_samples
    minimum = ast.unwrapped(call.args[1])
    return max(minimum.value, 1.0) if isinstance(minimum, ast.Number) and not math.isnan(minimum.value) else None


def screened(planner: Planner, node: ast.Binary, plain: VectorNode) -> VectorNode:
    """The comparison with its screen in front, or `plain` if there is none for it."""
    pattern = pattern_of(node)
    if pattern is None:
        return plain
    arbiter = planner.arbiter(pattern)
    arbiter.decides(pattern.bound)

    bound, holds = pattern.bound, HOLDS[pattern.operator]

    def decide(moment: Moment) -> Vector:
        decided = arbiter.at(moment, bound)
        if decided is None:
            return plain.at(moment)
        return decided.compared(pattern) if holds(decided.most, bound) else decided.unkept

    return VectorNode(plain.text, decide, plain.inputs, plain.timeless)


class Arbiter:
    """Decides all comparisons of one function of one window with bounds of one kind: what the least of these needs
    serves the others.
    """

    def __init__(self, pattern: Pattern, moving: Moving, screen: Screen) -> None:
        self._least = math.inf
        self._function, self._min_samples = pattern.function, pattern.min_samples
        self._scores = fast.scores(pattern.function)
        self.moving, self._screen = moving, screen
        self._foreseen: Mapping[int, Decided] = {}  # by tick
        self._foreseen_at = -1  # by what the history had written
        self._moment: Moment | None = None
        self._span: Span | None = None
        self._common: Decided | None = None  # what the least bound leaves open, unless that is too much
        self._decided: dict[float, Decided | None] = {}

    def decides(self, bound: float) -> None:
        """A comparison with this bound will be asked for."""
        self._least, self._moment = min(self._least, bound), None

    def foresee(self, lookahead: Lookahead, ticks: Sequence[int]) -> None:
        """Decide for ticks whose rows are there already; it holds until anything is written."""
        self._foreseen = lookahead.decided(self._function, self._min_samples, ticks)
        self._foreseen_at = self.moving.history.writes

    def ask(self, lookahead: Lookahead) -> None:
        """Have the least of the bounds looked for."""
        lookahead.ask(self._function.name, self._least * (1 - _SLACK), self._min_samples)

    def at(self, moment: Moment, bound: float) -> Decided | None:
        """None where only the plain way will do."""
        if self._foreseen and self._foreseen_at == self.moving.history.writes:
            foreseen = self._foreseen.get(moment.tick)
            if foreseen is not None:
                return foreseen
        if moment is self._moment and self._common is not None:
            return self._common
        span = self.moving.at(moment)  # another rule may have had it moved to another moment and back
        if moment is not self._moment or span is not self._span:
            self._moment, self._span, self._common = moment, span, None
            self._decided.clear()
            if span is not None and span.count >= self._min_samples:
                self._common = self._decide(span, self._least)
        if self._common is not None:
            return self._common
        return None if span is None or span.count < self._min_samples else self._decide(span, bound)

    def _decide(self, span: Span, bound: float) -> Decided | None:
        if bound not in self._decided:
            doubtful = self._doubtful(span, bound * (1 - _SLACK))
            self._decided[bound] = None if doubtful is None else self._computed(span, doubtful)
        return self._decided[bound]

    def _doubtful(self, span: Span, bound: float) -> Indices | None:
        """The series that the screen can't decide, None if they are too many."""
        now, limit = span.row(span.now), self._screen.limit(bound)
        doubt = now > limit
        if not span.finite(span.now):
            doubt |= ~np.isfinite(now)  # NaN is above nothing, and infinity is above a limit that has overflown
        gaps = self._gaps(span)
        if len(gaps):
            doubt[gaps] = True
        doubtful = doubt.nonzero()[0]
        if len(doubtful) > _MOST_DOUBTFUL * len(now):
            return None
        return self._left(span, doubtful, bound) if len(doubtful) > _FEW else doubtful

    def _left(self, span: Span, doubtful: Indices, bound: float) -> Indices:
        """Those of some series that closer limits do not decide either."""
        gapless = self.moving.gapless(doubtful)
        regular = doubtful if gapless is None else doubtful[gapless]
        closer = self._screen.closer(span, regular, bound) if len(regular) else None
        if closer is None:
            return doubtful
        now = span.row(span.now)[regular]
        left = ~(now <= closer)
        if not span.finite(span.now):
            left |= np.isinf(now)
        return regular[left] if gapless is None else np.union1d(regular[left], doubtful[~gapless])

    def _gaps(self, span: Span) -> Indices:
        """The series for which the limits mean nothing."""
        return span.ragged if span.count - span.gaps >= self._min_samples else span.irregular

    def _computed(self, span: Span, which: Indices) -> Decided:
        """The function itself for some of the series."""
        labels = self.moving.selection.labels.nameless()
        if not len(which):
            return Decided.of_none(labels)
        gapless = self.moving.gapless(which) is None
        found = self._scores(span, which) if gapless and self._scores is not None else None
        if found is not None:
            return Decided.of(labels, which, found, found == found)  # a NaN is no data (R4)
        values, defined = training.evaluate(self._function, self.moving.baseline(which), self._min_samples)
        return Decided.of(labels, which, values, defined & (values == values))
