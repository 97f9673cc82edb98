"""Compiled expressions over one history."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from healthwatch.promql import ast
from healthwatch.promql.check import type_of
from healthwatch.promql.due import AT_STEP_END, Schedule
from healthwatch.promql.merge import Merge
from healthwatch.promql.node import VectorNode, WindowNode
from healthwatch.promql.parse import Expression
from healthwatch.promql.plan import AnyNode, Place, Planner
from healthwatch.promql.reach import Demand
from healthwatch.promql.silence import silence
from healthwatch.promql.subquery import stacked
from healthwatch.promql.vector import (
    Derived,
    Matrix,
    Moment,
    Vector,
)
from healthwatch.stream import TICKS_PER_STEP, History
from healthwatch.stream.history import Keep


class Program:
    """Expressions compiled together: what they share is computed once a tick.

    `subquery_step` (ticks) is that of a subquery without one. `stalled_seconds` is wall time since the last step
    record: 0 while one is evaluated, set by whoever has a clock.
    """

    def __init__(self, history: History, *, subquery_step: int = TICKS_PER_STEP, shortcuts: bool = True) -> None:
        self.history = history
        self.stalled_seconds = 0.0
        self.silent = False
        self.queries: list[Query] = []
        self._planner = Planner(history, subquery_step, lambda: self.stalled_seconds, shortcuts=shortcuts)
        self._epoch = 0
        self._keeps: dict[str, Keep | None] = {}
        self._seen: tuple[object, ...] = ()
        self._last = Moment(-1, -1, -1, 0, 0)
        self._instants: dict[int, Moment] = {}
        self._schedules: dict[tuple[object, ...], Schedule] = {}

    def add(self, expression: Expression, lookback: int | None = None) -> Query:
        """Compile an expression; with `lookback` (steps) its selectors take each series' newest sample so far back."""
        tree = expression.tree
        place = Place(None if lookback is None else lookback * TICKS_PER_STEP)
        is_range = type_of(tree) == "matrix"
        query = Query(
            self,
            expression,
            None if is_range or expression.string is not None else self._planner.vector(tree, place),
            self._planner.window(tree, place) if is_range else None,
            self._schedule(tree),
        )
        self.queries.append(query)
        self._keeps.clear()
        return query

    def _schedule(self, tree: ast.Expr) -> Schedule:
        selections = self._planner.selections_of(tree)
        at_step_end = not selections or bool(_calls(tree) & AT_STEP_END)
        key = (at_step_end, *selections)
        if key not in self._schedules:
            self._schedules[key] = Schedule(self.history, selections, at_step_end=at_step_end)
        return self._schedules[key]

    def retain(self) -> None:
        """Tell the history how far back to keep rows; call after the last `add`."""
        self.history.retain(self._keep)

    def _keep(self, metric: str) -> Keep | None:
        if metric not in self._keeps:
            demands = [each for each in self._planner.demands if each.selection.matches(metric)]
            self._keeps[metric] = partial(_oldest, demands) if demands else None
        return self._keeps[metric]

    def prepare(self) -> None:
        """Evaluate everything once, so that joins, groups and names are worked out for the series there are.

        What can't be evaluated yet says so at its first step.
        """
        tick = 0 if self.history.newest is None else self.history.newest
        with self.silenced():
            for query in self.queries:
                with suppress(Exception):
                    query.evaluate(tick)
        self.forget()

    @contextmanager
    def silenced(self) -> Iterator[None]:
        """Many evaluations on end, while nothing is written: whether 1/0 warns is settled once for all of them."""
        self._instants.clear()
        with silence():
            self.silent = True
            try:
                yield
            finally:
                self.silent = False

    def users(self) -> Mapping[int, int]:
        """How many expressions use each node, by its identity."""
        counts: dict[int, int] = {}
        for query in self.queries:
            for node in _below(query.vector or query.window):
                counts[node] = counts.get(node, 0) + 1
        return counts

    def moment(self, tick: int, start: int, end: int, step: int) -> Moment:
        """A moment whose epoch says whether what is known still holds."""
        history, last = self.history, self._last
        seen = history.writes, history.table.version, self.stalled_seconds
        # An instant evaluation is bound by its tick, which nodes tell apart anyway.
        same = seen == self._seen and step == last.step and (not step or (start, end) == last[1:3])
        if same and tick == last.tick:
            return last
        if not same:
            self._seen = seen
            self._epoch += 1
        self._last = Moment(tick, start, end, step, self._epoch)
        return self._last

    def instant(self, tick: int) -> Moment:
        """The moment of an instant evaluation; always the same object within `silenced`."""
        if not self.silent:
            return self.moment(tick, tick, tick, 0)
        found = self._instants.get(tick)
        if found is None:
            found = self._instants[tick] = self.moment(tick, tick, tick, 0)
        return found

    def foresee(self, ticks: Sequence[int]) -> None:
        """Many ticks will be evaluated whose rows are in the history: what can be is decided for all of them at once.

        It holds until more is written; each tick is still evaluated by itself.
        """
        with silence():
            self._planner.foresee(ticks)

    def forget(self) -> None:
        """Begin an epoch: the results of the last one are freed as they are replaced."""
        self._seen = ()


@dataclass(frozen=True, slots=True)
class Planned:
    """One node of a plan: what it computes, how many expressions share it, and what its last computation took."""

    text: str
    depth: int
    users: int
    seconds: float  # inputs included
    rows: int | None  # of the history that its selector keeps, None where it has none


def _calls(tree: ast.Expr) -> set[str]:
    """The functions that an expression calls."""
    return {each.function for each in ast.walk(tree) if isinstance(each, ast.Call)}


def _below(root: AnyNode | None) -> set[int]:
    """The identities of a node and all its inputs."""
    found: set[int] = set()
    waiting: list[AnyNode] = [] if root is None else [root]
    while waiting:
        node = waiting.pop()
        if id(node) not in found:
            found.add(id(node))
            waiting.extend(node.inputs)
    return found


def _planned(node: AnyNode, depth: int, users: Mapping[int, int], seen: set[int]) -> Iterator[Planned]:
    if id(node) in seen:
        return
    seen.add(id(node))
    rows = None if node.rows is None else node.rows()
    yield Planned(node.text, depth, users.get(id(node), 1), node.seconds, rows)
    for each in node.inputs:
        yield from _planned(each, depth + 1, users, seen)


def _oldest(demands: list[Demand], newest: int) -> int:
    return min(demand.keep_from(newest) for demand in demands)


class Query:
    """One compiled expression."""

    def __init__(
        self,
        program: Program,
        expression: Expression,
        vector: VectorNode | None,
        window: WindowNode | None,
        schedule: Schedule,
    ) -> None:
        self.program = program
        self.expression = expression
        self.vector = vector
        self.window = window
        self.uses_clock = "stalled_seconds" in _calls(expression.tree)
        self.due, self.micro_step = schedule.ticks, schedule.micro_step  # when the rule is evaluated (R3)
        self._public = Derived(Merge.shown)
        self._last: Vector | None = None
        self._shown: Vector | None = None

    def evaluate(self, tick: int) -> Vector:
        """The result at a tick. A scalar is a vector with one empty label set.

        `labels` is the same object while the set of series is unchanged. `values` may be a view into the history,
        good until more samples are written. Raises EvaluationError where Prometheus has no result either.
        """
        return self._at(self.program.instant(tick))

    def _at(self, moment: Moment) -> Vector:
        if self.vector is None:
            raise TypeError(f"{self.expression.text} has no value at an instant")
        if self.program.silent:
            vector = self.vector.at(moment)
        else:
            with silence():
                vector = self.vector.at(moment)
        if vector is not self._last:
            self._last, self._shown = vector, self._public(vector.labels)(vector)
        assert self._shown is not None
        return self._shown

    def plan(self) -> tuple[Planned, ...]:
        """The nodes of the expression, each below those that need it, once each."""
        root = self.vector or self.window
        return () if root is None else tuple(_planned(root, 0, self.program.users(), set()))

    def evaluate_samples(self, tick: int) -> Matrix:
        """The samples of a range expression at a tick."""
        if self.window is None:
            raise TypeError(f"{self.expression.text} is no range of samples")
        with silence():
            window = self.window.at(self.program.moment(tick, tick, tick, 0))
        present = np.ones(window.values.shape, bool) if window.present is None else window.present
        return Matrix(window.labels, tuple(window.ticks.tolist()), window.values, present)

    def evaluate_range(self, start: int, end: int, step: int) -> Matrix:
        """The results at start, start + step ... up to `end` (ticks)."""
        ticks = tuple(range(start, end + 1, step))
        vectors = []
        for tick in ticks:
            self.program.forget()
            vector = self._at(self.program.moment(tick, start, end, step))
            vectors.append(replace(vector, values=vector.values.copy()))
        window = stacked(ticks, vectors, start, end)
        kept = np.ones(window.values.shape, bool) if window.present is None else window.present
        return Matrix(window.labels, ticks, window.values, kept)
