"""Rows that are there already: what is foreseen of them is what each of them says by itself, bit for bit."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from twins import same

from healthwatch.diagnostics import Span
from healthwatch.engine import Engine
from healthwatch.promql import Program, parse
from healthwatch.promql.decided import Decided
from healthwatch.promql.screens import Arbiter
from healthwatch.rulefile import Rule
from healthwatch.stream import ABSENT, STALE, Frame, History, SeriesTable, tick_of

pytestmark = pytest.mark.extras

RULES = [
    "spike_ratio(x[{w}]) > {k}",
    "spike_ratio(x[{w}], {n}) >= {k}",
    "robust_zscore(x[{w}]) > {k}",
    "robust_zscore(x[{w}], {n}) >= {k}",
    "ema_ratio(x[{w}]) > {k}",
    "ema_ratio(x[{w}], {n}) > {k}",
    "robust_zscore(x[{w}] offset 3) > {k}",
    'ema_ratio(x{{e=~"1|3|4"}}[{w}], {n}) > {k}',
    'robust_zscore(x{{e=~"1|3|4"}}[{w}]) > {k}',
    "max_over_time((robust_zscore(x[{w}]) > {k})[5:1])",
    "sum_over_time(x[{n}]) > {k}",
    "growth(x[{w}], {n}) >= {k}",
    "max by (e) (x) / avg by (e) (x) > {k}",
    "absent(x) or y > 0",
    "x > {k} * x offset {n}",
]


@st.composite
def rules(draw: st.DrawFn) -> list[str]:
    """Several at a time: functions of one window share what is in order."""
    window = draw(st.sampled_from([3, 10, 30, 40, 150]))
    texts = draw(st.lists(st.sampled_from(RULES), min_size=1, max_size=4, unique=True))
    ks, ns = st.sampled_from(["0.5", "1", "1.5", "2", "3", "6"]), st.sampled_from([1, 3, 8, 20])
    return [text.format(w=window, k=draw(ks), n=draw(ns)) for text in texts]


@st.composite
def shapes(draw: st.DrawFn) -> dict[str, float]:
    """How values are spread, and how often something is wrong with them."""
    return {
        "spread": draw(st.sampled_from([0.0, 0.1, 0.4])),
        "integers": draw(st.sampled_from([0, 0, 1, 3])),
        "nonfinite": draw(st.sampled_from([0, 0.001, 0.02])),
        "absent": draw(st.sampled_from([0, 0, 0.02, 0.3])),
        "negative": draw(st.sampled_from([0, 0, 0.3])),
        "zero": draw(st.sampled_from([0, 0, 0.6])),
        "huge": draw(st.sampled_from([0, 1e30, 1e200, 1.7e308])),
        "tiny": draw(st.sampled_from([0, 0, 1e-40, 1e-310])),
        "float32": draw(st.sampled_from([0, 1])),
        "skipped": draw(st.sampled_from([0, 0, 0.1])),  # steps without a row
        "micro_steps": draw(st.sampled_from([1, 1, 2])),
        "other": draw(st.sampled_from([0, 1])),  # a metric that comes with other micro-steps
        "rewind": draw(st.sampled_from([0, 0, 1])),
        "size": draw(st.sampled_from([256, 300, 520])),
    }


def values_of(rng: np.random.Generator, shape: dict[str, float], size: int) -> np.ndarray:
    values = rng.lognormal(0, shape["spread"], size) * (1 + np.arange(size) % 5)
    if shape["integers"]:
        values = np.round(values * shape["integers"])
    values[rng.random(size) < shape["zero"]] = 0.0
    values[rng.random(size) < shape["negative"]] *= -1
    for key in ("huge", "tiny"):
        if shape[key]:
            values[rng.random(size) < 0.01] = shape[key]
    with np.errstate(over="ignore"):
        values[rng.random(size) < 0.01] *= 12
    bad = rng.random(size) < shape["nonfinite"]
    values[bad] = rng.choice([math.nan, math.inf, -math.inf], bad.sum())
    if shape["float32"]:
        with np.errstate(over="ignore"):
            return values.astype(np.float32)
    missing = rng.random(size) < shape["absent"]
    values[missing] = rng.choice([ABSENT, ABSENT, STALE], missing.sum())
    return values


def frames(rng: np.random.Generator, shape: dict[str, float], table: SeriesTable) -> Iterator[Frame]:
    """Of 110 steps; half-way there are more series, and perhaps the run goes back a little."""
    step, size = 0, int(shape["size"])
    while step < 110:
        step += 1
        if shape["rewind"] and step == 90:
            step, shape["rewind"] = 75, 0
        frame = Frame(step)
        if rng.random() >= shape["skipped"]:
            labels = [{"e": str(i % 6), "i": str(i)} for i in range(size + 10 * (step > 60))]
            series = table.register("x", labels)
            for micro in range(int(shape["micro_steps"])):
                values = values_of(rng, shape, len(series))
                frame.add(series, values, micro_step=micro if shape["micro_steps"] > 1 else None)
        if shape["other"]:
            other = table.register("y", [{}])
            for micro in range(3):
                frame.add(other, [float(step % 5 - 3)], micro_step=micro)
        frame.close()
        yield frame


def in_blocks(rng: np.random.Generator, given: Iterator[Frame]) -> Iterator[list[Frame]]:
    """Of ascending steps, as long as it happens to be."""
    block: list[Frame] = []
    most = 1
    for frame in given:
        if block and (frame.step <= block[-1].step or len(block) >= most):
            yield block
            block = []
        if not block:
            most = int(rng.choice([1, 5, 16, 40]))
        block.append(frame)
    yield block


@pytest.fixture(autouse=True, scope="module")
def _foresee_all() -> Iterator[None]:
    """However much is in doubt, and however close the bound of an average is."""
    pytest.importorskip("numba", reason="needs the fast extra")
    with (
        patch("healthwatch.promql.ahead._MOST_DOUBTFUL", 3.0),
        patch("healthwatch.promql.ahead._FAR", 0.0),
    ):
        yield


@pytest.mark.long
@given(seed=st.integers(0, 2**32), shape=shapes(), texts=rules())
@settings(deadline=None, max_examples=24, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
def test_what_is_foreseen_is_what_each_step_says(seed: int, shape: dict[str, float], texts: list[str]) -> None:
    rng, table = np.random.default_rng(seed), SeriesTable()
    one_by_one, together = History(table), History(table)
    plain, program = Program(one_by_one, shortcuts=False), Program(together)
    pairs = []
    for text in texts:
        expression = parse(text).expression
        assert expression is not None
        pairs.append((plain.add(expression), program.add(expression)))
    if not shape["rewind"]:  # what has been dropped would be missed
        program.retain()
    last = 0
    for block in in_blocks(rng, frames(rng, shape, table)):
        if block[0].step <= last:
            for history in (one_by_one, together):
                history.rewind(tick_of(block[0].step - 1))
        last = block[-1].step
        together.extend(*block)
        program.foresee(sorted({tick for frame in block for tick in (tick_of(frame.step), *ticks_of(frame))}))
        for frame in block:
            one_by_one.extend(frame)
            program.forget()
            for left, right in pairs:
                for tick in right.due(frame):
                    same(left, right, tick)


def ticks_of(frame: Frame) -> list[int]:
    return [column.tick for column in frame.columns]


def level_run(steps: int, gaps: float = 0.0) -> Iterator[tuple[Frame, SeriesTable]]:
    """2,000 series of float32 around levels of their own, with a share of NaN."""
    rng, table = np.random.default_rng(4), SeriesTable()
    series = table.register("x", [{"i": str(i)} for i in range(2_000)])
    level = rng.lognormal(0, 0.3, 2_000)
    for step in range(1, steps + 1):
        frame = Frame(step)
        values = (level * rng.lognormal(0, 0.1, 2_000)).astype(np.float32)
        values[rng.random(2_000) < gaps] = np.nan
        frame.add(series, values)
        frame.close()
        yield frame, table


@pytest.mark.parametrize(("close", "gaps"), [(False, 0.0), (False, 0.002), (True, 0.0)])
def test_nearly_nobody_is_in_doubt_and_no_window_moves(
    close: bool, gaps: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is foreseen asks no screen: these are for one step after the other. An average that is closely compared is
    left to them, and with it the whole window.
    """
    from healthwatch.promql import ahead

    monkeypatch.setattr(ahead, "_MOST_DOUBTFUL", 1 / 64)
    monkeypatch.setattr(ahead, "_FAR", 1.9)
    given = list(level_run(200, gaps))
    history = History(given[0][1])
    program = Program(history)
    texts = ["spike_ratio(x[50]) > 8", "robust_zscore(x[50]) > 6", f"ema_ratio(x[50]) > {1.2 if close else 3}"]
    queries = [program.add(expression) for text in texts if (expression := parse(text).expression) is not None]
    program.retain()
    asked: list[int] = []
    computed: list[int] = []
    doubtful, decided = Arbiter._doubtful, ahead.Ahead.decided

    def noted(*those: Any) -> dict[int, Decided]:
        found = decided(*those)
        computed.extend(len(each.which) for each in found.values())
        return found

    monkeypatch.setattr(Arbiter, "_doubtful", lambda *those: asked.append(1) or doubtful(*those))
    monkeypatch.setattr(ahead.Ahead, "decided", noted)
    for begin in range(0, 200, 40):
        block = [frame for frame, _ in given[begin : begin + 40]]
        history.extend(*block)
        asked.clear()
        computed.clear()
        program.foresee([tick_of(frame.step) for frame in block])
        for frame in block:
            program.forget()
            for query in queries:
                query.evaluate(tick_of(frame.step))
        if begin >= 120:
            assert bool(asked) == close
            assert len(computed) == (0 if close else 3 * 40)
            assert sum(computed) < (0.002 + 2 * gaps) * 2_000 * 3 * 40


def test_an_engine_says_of_many_frames_what_it_says_of_each() -> None:
    rules = [
        Rule(name, "test", expression, Span("test", 1, 1, 1), for_records=2)
        for name, text in (("Ratio", "spike_ratio(x[50]) > 1.3"), ("Score", "robust_zscore(x[50]) > 3"))
        if (expression := parse(text).expression) is not None
    ]
    given = list(level_run(150))
    frames = [frame for frame, _ in given]
    single, many = (Engine(rules, given[0][1]) for _ in range(2))
    one_by_one = [single.step(frame) for frame in frames]
    together = [*many.steps(frames[:70]), *many.steps(frames[70:75]), *many.steps(frames[75:])]
    assert [repr(outcome) for outcome in together] == [repr(outcome) for outcome in one_by_one]
    assert sum(len(outcome.transitions) for outcome in together) > 100
    assert any(outcome.incidents for outcome in together)
