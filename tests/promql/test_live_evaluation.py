"""A program that goes along with a training, its history short and its results shared, says at every step what one says
that is compiled afresh over all samples so far: random expressions of every function and aggregation there is.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from healthwatch.promql import EvaluationError, Program, Query, parse
from healthwatch.promql.signatures import FUNCTIONS, Signature
from healthwatch.promql.syntax import AGGREGATIONS, PARAMETRIC
from healthwatch.stream import Frame, History, SeriesTable, tick_of
from healthwatch.stream.series import LabelSet

LOOKS_AHEAD = ("start", "end", "range", "step")
SELECTORS = ["x", 'x{g="0"}', 'x{e!="1"}', "y", 'y{g=~"1|2"}', '{__name__=~"x|y"}', "z", "none"]
MOST_STEPS = 60


class Typed:
    """Expression texts of a wanted type."""

    def __init__(self, draw: st.DrawFn) -> None:
        self.draw = draw

    def pick(self, choices: Sequence[str]) -> str:
        return self.draw(st.sampled_from(choices))

    def of(self, wanted: str, levels: int) -> str:
        makers = {"scalar": self.scalar, "vector": self.vector, "matrix": self.matrix, "string": self.string}
        return makers[wanted](levels)

    def string(self, _: int) -> str:
        return self.pick(['"g"', '"e"', '"new"', '"$1-"', '"(.).*"'])

    def scalar(self, levels: int) -> str:
        if levels == 0 or self.draw(st.booleans()):
            return self.pick(["0", "1", "2", "0.5", "-1", "NaN"])
        return self.call("scalar", levels)

    def matrix(self, levels: int) -> str:
        window, shift = self.pick(["1", "3", "6"]), self.pick(["", "", " offset 2"])
        if levels and self.draw(st.booleans()):
            return f"({self.vector(levels - 1)})[{window}:{self.pick(['', '2'])}]{shift}"
        return f"{self.pick(SELECTORS)}[{window}]{shift}"

    def vector(self, levels: int) -> str:
        if levels == 0:
            return self.pick(SELECTORS) + self.pick(["", "", " offset 2"])
        kind = self.pick(["call", "call", "binary", "aggregate"])
        return {"call": self.calls, "binary": self.binary, "aggregate": self.aggregate}[kind](levels)

    def calls(self, levels: int) -> str:
        return self.call("vector", levels)

    def call(self, result: str, levels: int) -> str:
        names = [name for name, each in FUNCTIONS.items() if each.result == result and name not in LOOKS_AHEAD]
        signature: Signature = FUNCTIONS[self.pick(names)]
        most = signature.least + 1 if signature.most is None else signature.most
        count = self.draw(st.integers(signature.least, most))
        args = ", ".join(self.of(signature.type_of(place), levels - 1) for place in range(count))
        return f"{signature.name}({args})"

    def binary(self, levels: int) -> str:
        op = self.pick(["+", "-", "*", "/", "%", "^", "atan2", ">", "<= bool", "==", "and", "or", "unless"])
        join = self.pick(["", "", "on (g)", "ignoring (e)", "on ()"])
        if join and op not in ("and", "or", "unless"):
            join += self.pick(["", " group_left ()", " group_right (e)"] if join.startswith("on") else [""])
        return f"({self.vector(levels - 1)} {op} {join} {self.vector(levels - 1)})"

    def aggregate(self, levels: int) -> str:
        op = self.pick(sorted(AGGREGATIONS))
        grouping = self.pick(["", "by (g)", "without (e)", "by (g, __name__)"])
        param = "" if op not in PARAMETRIC else '"v", ' if op == "count_values" else f"{self.scalar(0)}, "
        return f"{op} {grouping} ({param}{self.vector(levels - 1)})"


@st.composite
def expressions(draw: st.DrawFn) -> str:
    return Typed(draw).vector(draw(st.integers(1, 3)))


VALUES = st.one_of(st.integers(-3, 9).map(float), st.sampled_from([math.nan, math.inf, 0.25, 1e9]))
ROWS = st.lists(VALUES, min_size=4, max_size=4)


@st.composite
def runs(draw: st.DrawFn, *, goes_back: bool) -> list[tuple[int, list[float]]]:
    """Steps with the values that they may use."""
    steps: list[tuple[int, list[float]]] = []
    step = 0
    for _ in range(draw(st.integers(3, MOST_STEPS))):
        back = goes_back and step and draw(st.integers(0, 9)) == 0
        step = max(1, step - draw(st.integers(0, 12))) if back else step + 1
        steps.append((step, draw(ROWS)))
    return steps


def frame_of(table: SeriesTable, step: int, row: list[float]) -> Frame:
    """x at every step, one more of its series from step 5 on; y at every third; z at both micro-steps of odd ones."""
    frame = Frame(step)
    groups = ["0", "1", "2"] if step >= 5 else ["0", "1"]
    frame.add(table.register("x", [{"g": g, "e": e} for g in groups for e in "01"]), (row * 2)[: 2 * len(groups)])
    if step % 3 == 0:
        frame.add(table.register("y", [{"g": "1"}, {"g": "2"}]), row[:2])
    if step % 2:
        for micro_step in range(2):
            frame.add(table.register("z", [{}]), [row[2 + micro_step]], micro_step)
    frame.close()
    return frame


def result_of(query: Query, tick: int) -> object:
    """Kept and clear label sets with their values as text, or that there is no result."""
    try:
        vector = query.evaluate(tick)
    except EvaluationError:
        return "no result"
    kept: dict[LabelSet, str] = {vector.labels[i]: repr(float(vector.values[i])) for i in np.flatnonzero(vector.kept)}
    return kept, {vector.labels[i] for i in np.flatnonzero(vector.known & ~vector.kept)}


def check(texts: list[str], run: list[tuple[int, list[float]]], lookback: int | None, *, retain: bool) -> None:
    expressions = [expression for text in texts if (expression := parse(text).expression) is not None]
    table = SeriesTable()
    live = Program(History(table))
    queries = [live.add(expression, lookback) for expression in expressions]
    if retain:
        live.retain()
    frames: list[Frame] = []
    for step, row in run:
        if frames and step <= frames[-1].step:
            live.history.rewind(tick_of(step - 1))
            frames = [frame for frame in frames if frame.step < step]
        frames.append(frame_of(table, step, row))
        live.history.extend(frames[-1])
        history = History(table)
        for frame in frames:
            history.extend(frame)
        for expression, query in zip(expressions, queries, strict=True):
            fresh = Program(history).add(expression, lookback)
            for tick in sorted({*query.due(frames[-1]), tick_of(step)}):
                assert result_of(query, tick) == result_of(fresh, tick), f"{expression.text} at {tick}"


common = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
several = st.lists(expressions(), min_size=1, max_size=3)
lookbacks = st.sampled_from([None, None, 5])


@pytest.mark.long
@settings(parent=common, max_examples=60)
@given(several, runs(goes_back=False), lookbacks)
def test_a_live_program_says_what_a_fresh_one_says(
    texts: list[str], run: list[tuple[int, list[float]]], lookback: int | None
) -> None:
    check(texts, run, lookback, retain=True)


@pytest.mark.long
@settings(parent=common, max_examples=60)
@given(several, runs(goes_back=True), lookbacks)
def test_so_does_one_whose_run_goes_back(
    texts: list[str], run: list[tuple[int, list[float]]], lookback: int | None
) -> None:
    """Nothing is dropped here: how much of the past is at hand after going back is up to whoever refills it."""
    check(texts, run, lookback, retain=False)


@pytest.mark.parametrize("picked", ["limitk(1, {})", "topk(1, {})", "bottomk(2, {})"])
def test_which_of_equal_ones_is_picked_does_not_depend_on_values_of_the_past(picked: str) -> None:
    run = [(1, [0.0, 0.0, 0.0, 0.0]), (2, [3.0, 3.0, 3.0, 3.0]), (3, [1.0, 0.0, 2.0, 3.0])]
    check([picked.format('count_values("v", abs(x))')], run, None, retain=True)
