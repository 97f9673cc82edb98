"""From the syntax tree to a plan: one node a subexpression, equal ones shared."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field, fields, is_dataclass, replace
from typing import TYPE_CHECKING, Any

from healthwatch.promql import ast, calls, fast
from healthwatch.promql.aggregate import AGGREGATIONS, aggregate
from healthwatch.promql.binary import harmless, operation, unless_clear
from healthwatch.promql.blocks import Blocks
from healthwatch.promql.groups import group
from healthwatch.promql.moving import Moving
from healthwatch.promql.narrow import narrowed
from healthwatch.promql.node import VectorNode, WindowNode
from healthwatch.promql.pick import PICKS, CountValues
from healthwatch.promql.reach import Demand, Reach
from healthwatch.promql.running import Running
from healthwatch.promql.screens import Arbiter, NewScreen, Pattern, Screen, screened
from healthwatch.promql.select import Selection, newest_row, newest_samples, row_at, window_of
from healthwatch.promql.subquery import Subquery
from healthwatch.promql.text import written
from healthwatch.promql.tiers import Tiers, tiered
from healthwatch.promql.vector import (
    FINITE,
    Derived,
    Moment,
    Vector,
    scalar_vector,
)
from healthwatch.promql.window import Window
from healthwatch.stream import History
from healthwatch.stream.ring import Floats

if TYPE_CHECKING:
    from healthwatch.promql.ahead import Lookahead

AnyNode = VectorNode | WindowNode

FEWEST_FORESEEN = 256
"""Of fewer series each step is soon looked at, and nobody waits for loops to be compiled."""


def shape(node: object) -> Hashable:
    """What two equal expressions share, wherever they stand in their texts."""
    match node:
        case ast.Paren(expr=inner):
            return shape(inner)
        case tuple():
            return tuple(shape(each) for each in node)
        case float():
            return repr(node)
        case _ if is_dataclass(node):
            names = [each.name for each in fields(node) if not each.name.endswith("span")]
            return (type(node).__name__, *(shape(getattr(node, name)) for name in names))
        case _:
            return node


@dataclass(frozen=True, slots=True)
class Place:
    """Where a subexpression stands: the group's lookback in ticks, and how far back it is evaluated."""

    lookback: int | None = None
    reach: Reach = field(default_factory=Reach)


class Planner:
    """Builds nodes over one history. `clock` gives the wall seconds since the last step record."""

    def __init__(
        self, history: History, subquery_step: int, clock: Callable[[], float], *, shortcuts: bool = True
    ) -> None:
        self.history = history
        self.shortcuts = shortcuts
        self.subquery_step = subquery_step
        self.clock = clock
        self.demands: dict[Demand, None] = {}  # an ordered set
        self.nodes: dict[Hashable, AnyNode] = {}
        self._selections: dict[Hashable, Selection] = {}
        self._moving: dict[Hashable, Moving] = {}
        self._blocks: dict[Hashable, Blocks] = {}
        self._screens: dict[Hashable, Screen] = {}
        self._arbiters: dict[tuple[Hashable, ...], Arbiter] = {}
        self._lookaheads: dict[Hashable, Lookahead] = {}
        self._tiers: dict[tuple[Hashable, ...], Tiers] = {}

    def vector(self, node: ast.Expr, place: Place) -> VectorNode:
        """The node of an expression that is a vector or a scalar."""
        found: VectorNode = self._shared(node, place, self._build_vector)
        return found

    def window(self, node: ast.Expr, place: Place) -> WindowNode:
        """The node of a range expression."""
        found: WindowNode = self._shared(node, place, self._build_window)
        return found

    def _shared(self, node: ast.Expr, place: Place, build: Callable[[ast.Expr, Place], Any]) -> Any:
        key = shape(node), place.lookback
        found = self.nodes.get(key)
        built = build(node, place)  # also where it is known: its demands depend on the place
        if found is None:
            built.text = written(node)
            found = self.nodes[key] = built
        return found

    def _build_vector(self, node: ast.Expr, place: Place) -> VectorNode:
        match node:
            case ast.Paren(expr=inner):
                return self._build_vector(inner, place)
            case ast.Number(value=value):
                return number(value)
            case ast.VectorSelector():
                return self._selector(node, place)
            case ast.Unary():
                return self._negated(node, place)
            case ast.Binary():
                return self._binary(node, place)
            case ast.Aggregate():
                return self._aggregate(node, place)
            case ast.Call():
                return calls.build(self, node, place)
            case _:
                raise TypeError(f"{type(node).__name__} is no vector")

    def _build_window(self, node: ast.Expr, place: Place) -> WindowNode:
        match node:
            case ast.Paren(expr=inner):
                return self._build_window(inner, place)
            case ast.MatrixSelector():
                return self._matrix(node, place)
            case ast.Subquery():
                return self._subquery(node, place)
            case ast.Call(function="finite", args=(inner,)):
                return self._finite(inner, place)
            case _:
                raise TypeError(f"{type(node).__name__} is no range of samples")

    def selection(self, selector: ast.VectorSelector) -> Selection:
        key = selector.metric, shape(selector.matchers)
        if key not in self._selections:
            self._selections[key] = Selection(self.history, selector.metric, selector.matchers)
        return self._selections[key]

    def selections_of(self, tree: ast.Expr) -> tuple[Selection, ...]:
        found = [self.selection(node) for node in ast.walk(tree) if isinstance(node, ast.VectorSelector)]
        return tuple(dict.fromkeys(found))

    def moving(self, node: ast.MatrixSelector) -> Moving:
        """The moving baseline of a range selector, one for all that use it."""
        key = shape(node)
        if key not in self._moving:
            selection, when = self.selection(node.selector), time_of(node.selector)
            self._moving[key] = Moving(selection, node.window, when, self.history)
        return self._moving[key]

    def screen(self, new: NewScreen, node: ast.MatrixSelector) -> Screen:
        key = new, shape(node)
        if key not in self._screens:
            self._screens[key] = new(node.window, lambda: self.blocks(node))
            self.moving(node).follow(self._screens[key])
        return self._screens[key]

    def blocks(self, node: ast.MatrixSelector) -> Blocks:
        """Those of a window, for all screens that are made of them; they move before these do."""
        key = shape(node)
        if key not in self._blocks:
            self._blocks[key] = Blocks()
            self.moving(node).follow(self._blocks[key])
        return self._blocks[key]

    def arbiter(self, pattern: Pattern) -> Arbiter:
        """What decides the comparisons of one function of one window with such a bound."""
        key = pattern.function.name, shape(pattern.window), pattern.min_samples, pattern.screen
        if key not in self._arbiters:
            screen = self.screen(pattern.screen, pattern.window)
            self._arbiters[key] = Arbiter(pattern, self.moving(pattern.window), screen)
        return self._arbiters[key]

    def tiers(self, node: ast.Binary, scaled: ast.Expr, place: Place) -> Tiers:
        """The comparisons of its left side with multiples of `scaled`."""
        key = node.op, shape(node.left), shape(scaled), place.lookback
        return self._tiers.setdefault(key, Tiers(node.op))

    def foresee(self, ticks: Sequence[int]) -> None:
        """Decide what can be decided for many ticks at once; the rows of all of them are in the history.

        Without the `fast` extra, or for few series, each tick is looked at by itself.
        """
        asked = [each for each in self._arbiters.items() if len(each[1].moving.selection.labels) >= FEWEST_FORESEEN]
        lookahead = fast.lookahead() if asked else None
        if lookahead is None:
            return
        for (*_, window, _, _), arbiter in asked:
            if window not in self._lookaheads:
                self._lookaheads[window] = lookahead(arbiter.moving)
            arbiter.ask(self._lookaheads[window])
        for (*_, window, _, _), arbiter in asked:
            arbiter.foresee(self._lookaheads[window], ticks)

    def demand(self, selector: ast.VectorSelector, place: Place, window: int, rows: int) -> None:
        """Have the rows kept that a selector needs where it stands."""
        reach = place.reach.shifted(selector.offset, selector.at)
        self.demands[Demand(self.selection(selector), reach, window, rows)] = None

    def _selector(self, node: ast.VectorSelector, place: Place) -> VectorNode:
        selection, when = self.selection(node), time_of(node)
        lookback = place.lookback
        self.demand(node, place, lookback or 0, 0 if lookback else 1)

        def newest(moment: Moment) -> Vector:
            if lookback is None:
                return newest_row(selection, when(moment))
            return newest_samples(selection, when(moment), lookback)[0]

        return VectorNode(written(node), newest, timeless=not bound(node), rows=selection.rows_kept)

    def sample_times(self, node: ast.Expr, place: Place) -> Callable[[Moment], Floats | int]:
        """When the samples of a selector were taken, in ticks; for any other expression the evaluation's own."""
        selector = ast.unwrapped(node)
        if not isinstance(selector, ast.VectorSelector):
            return lambda moment: moment.tick
        selection, when, lookback = self.selection(selector), time_of(selector), place.lookback
        if lookback is None:
            return lambda moment: row_at(selection, when(moment)) or 0
        return lambda moment: newest_samples(selection, when(moment), lookback)[1]

    def _matrix(self, node: ast.MatrixSelector, place: Place) -> WindowNode:
        selection, when = self.selection(node.selector), time_of(node.selector)
        self.demand(node.selector, place, node.window, 0)
        running = Running(self.history) if self.shortcuts else None

        def samples(moment: Moment) -> Window:
            tick = when(moment)
            return window_of(selection, tick - node.window, tick, running)

        return WindowNode(written(node), samples, timeless=not bound(node.selector), rows=selection.rows_kept)

    def _subquery(self, node: ast.Subquery, place: Place) -> WindowNode:
        step = node.step or self.subquery_step
        reach = place.reach.shifted(node.offset, node.at).widened(node.window)
        inner = self.vector(node.expr, replace(place, reach=reach))
        query = Subquery(inner, node.window, step, self.history, time_of(node))
        return WindowNode(written(node), query, (inner,), timeless=inner.timeless and not bound(node))

    def _finite(self, inner: ast.Expr, place: Place) -> WindowNode:
        source = self.window(inner, place)

        def finite(moment: Moment) -> Window:
            return source.at(moment).finite()

        return WindowNode("finite", finite, (source,), timeless=source.timeless)

    def _negated(self, node: ast.Unary, place: Place) -> VectorNode:
        source = self.vector(node.expr, place)

        def negated(moment: Moment) -> Vector:
            vector = source.at(moment)
            return replace(
                vector,
                labels=vector.labels.nameless(),
                values=-vector.values,
                order=None,
                grade=min(vector.grade, FINITE),
            )

        return VectorNode("-", negated, (source,), source.timeless)

    def _binary(self, node: ast.Binary, place: Place) -> VectorNode:
        left, right = self.vector(node.left, place), self.vector(node.right, place)
        plain = VectorNode(node.op, operation(node, left, right), (left, right), left.timeless and right.timeless)
        if not self.shortcuts:
            return plain
        if node.op == "and" and harmless(node.right):
            return VectorNode(node.op, unless_clear(plain, left), (left, right), plain.timeless)
        return screened(self, node, tiered(self, node, narrowed(self, node, plain, place), place))

    def _aggregate(self, node: ast.Aggregate, place: Place) -> VectorNode:
        source = self.vector(node.expr, place)
        groups = Derived(lambda labels: group(labels, node.labels, node.without))
        if node.param is not None and isinstance(parameter := ast.unwrapped(node.param), ast.String):
            count = CountValues(parameter.value)
            return VectorNode(
                node.op,
                lambda moment: count(vector := source.at(moment), groups(vector.labels)),
                (source,),
                source.timeless,
            )
        number_ = None if node.param is None else self.vector(node.param, place)

        def aggregated(moment: Moment) -> Vector:
            vector = source.at(moment)
            value = None if number_ is None else number_.at(moment).scalar
            if value is not None and node.op in PICKS:
                return PICKS[node.op](vector, groups(vector.labels), value)
            return aggregate(AGGREGATIONS[node.op], vector, groups(vector.labels), value)

        inputs = (source,) if number_ is None else (source, number_)
        return VectorNode(node.op, aggregated, inputs, all(each.timeless for each in inputs))


def number(value: float) -> VectorNode:
    vector = scalar_vector(value)
    return VectorNode(f"{value:g}", lambda _: vector, constant=vector)


def time_of(node: ast.VectorSelector | ast.Subquery) -> Callable[[Moment], int]:
    """The tick at which a selector or subquery is looked at, its modifiers applied."""
    offset = node.offset
    match node.at:
        case None:
            return lambda moment: moment.tick - offset
        case ast.At(bound="start"):
            return lambda moment: moment.start - offset
        case ast.At(bound="end"):
            return lambda moment: moment.end - offset
        case ast.At(tick=tick):
            fixed = (tick or 0) - offset
            return lambda _: fixed


def bound(node: ast.VectorSelector | ast.Subquery) -> bool:
    """Whether the node depends on the range of the evaluation."""
    return node.at is not None and node.at.bound is not None
