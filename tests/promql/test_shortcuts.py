"""Every shortcut against its plain twin: the same kept and known, and the same values of what is kept, bit for bit."""

from __future__ import annotations

import math
from contextlib import nullcontext
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from twins import same

from healthwatch.promql import Program, parse
from healthwatch.promql.screens import Arbiter
from healthwatch.promql.turns import Turns
from healthwatch.stream import ABSENT, TICKS_PER_STEP, Frame, History, SeriesTable, tick_of

RULES = [
    "spike_ratio(x[{w}]) > {k}",
    "spike_ratio(x[{w}], {n}) >= {k}",
    "{k} < spike_ratio(x[{w}])",
    "robust_zscore(x[{w}]) > {k}",
    "robust_zscore(x[{w}], {n}) >= {k}",
    "ema_ratio(x[{w}]) > {k}",
    "ema_ratio(x[{w}], {n}) > {k}",
    "growth(x[{w}])",
    "growth(x[{w}], {n}) >= {k}",
    "count(spike_ratio(x[{w}]) > {k}) > 1",
    'robust_zscore(x{{e=~"1|3|4"}}[{w}], {n}) > {k}',
    "max_over_time((ema_ratio(x[{w}]) > {k})[5:1])",
    "spike_ratio(x[{w}] offset 3) > {k}",
    "sum_over_time(x[{n}]) > {k}",
    "avg_over_time(finite(x[{w}])) - {k}",
    "max by (e) (avg_over_time(x[{w}])) / avg by (e) (avg_over_time(x[{w}] offset 2)) > {k}",
    "max_over_time(x[{n}]) == {k}",
    "max_over_time(x[{w}]) == 0 and min_over_time(x[{w}]) == 0 and x offset {n}",
    "{k} >= max_over_time(x[{n}]) and sum_over_time(x[{w}]) > {k}",
    "max_over_time(x[{n}]) < {k}",
    "min_over_time(x[{w}]) > {k}",
    "min_over_time(x[{n}]) >= {k} and on (i) min_over_time(x[{w}]) == {k}",
]
rules = st.builds(
    lambda text, w, k, n: text.format(w=w, k=k, n=n),
    st.sampled_from(RULES),
    st.sampled_from([3, 10, 20, 40, 150]),
    st.sampled_from(["0.5", "1", "1.5", "2", "3", "6"]),
    st.sampled_from([1, 3, 8]),
)


@st.composite
def runs(draw: st.DrawFn) -> tuple[np.random.Generator, dict[str, float]]:
    """A random run: how values are spread, and how often something is wrong with them."""
    shape = {
        "spread": draw(st.sampled_from([0.0, 0.1, 0.4])),
        "integers": draw(st.sampled_from([0, 0, 1, 3])),
        "nonfinite": draw(st.sampled_from([0, 0, 0.001, 0.02])),
        "absent": draw(st.sampled_from([0, 0, 0, 0.02, 0.3])),
        "negative": draw(st.sampled_from([0, 0, 0.3])),
        "zero": draw(st.sampled_from([0, 0, 0.6])),
        "huge": draw(st.sampled_from([0, 0, 0.01])),
        "float32": draw(st.sampled_from([0, 1])),
        "micro_steps": draw(st.sampled_from([1, 1, 2])),
        "rewind": draw(st.sampled_from([0, 0, 1])),
    }
    return np.random.default_rng(draw(st.integers(0, 2**32))), shape


def values_of(rng: np.random.Generator, shape: dict[str, float], size: int) -> np.ndarray:
    values = rng.lognormal(0, shape["spread"], size) * (1 + np.arange(size) % 5)
    if shape["integers"]:
        values = np.round(values * shape["integers"])
    for key, fault in (("zero", 0.0), ("negative", -1.0), ("huge", 1e30)):
        values[rng.random(size) < shape[key]] *= fault
    values[rng.random(size) < 0.01] *= 12
    bad = rng.random(size) < shape["nonfinite"]
    values[bad] = rng.choice([math.nan, math.inf, -math.inf], bad.sum())
    values[rng.random(size) < shape["absent"]] = ABSENT
    return values


@pytest.mark.long
@given(run=runs(), text=rules, extra=st.booleans())
@settings(deadline=None, max_examples=120, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
def test_a_shortcut_says_what_the_plain_way_says(
    run: tuple[np.random.Generator, dict[str, float]], text: str, extra: bool
) -> None:
    rng, shape = run
    expression = parse(text).expression
    assert expression is not None
    table = SeriesTable()
    history = History(table)
    sizes = [90, 100]
    plain = Program(history, shortcuts=False).add(expression)
    program = Program(history)
    with patch("healthwatch.promql.fast.loops", return_value=None) if not extra else nullcontext():
        quick = program.add(expression)
    program.retain()
    step = 0
    for _ in range(80):
        step += 1
        if shape["rewind"] and step == 60:
            step, shape["rewind"] = 45, 0
            history.rewind(tick_of(step))
            step += 1
        series = table.register("x", [{"e": str(i % 6), "i": str(i)} for i in range(sizes[step > 40])])
        frame = Frame(step)
        micro_steps = int(shape["micro_steps"])
        for micro in range(micro_steps):
            values = values_of(rng, shape, len(series))
            if shape["float32"] and not shape["absent"]:
                values = values.astype(np.float32)
            frame.add(series, values, micro_step=micro if micro_steps > 1 else None)
        frame.close()
        history.extend(frame)
        for tick in quick.due(frame):
            same(plain, quick, tick)
    same(plain, quick, tick_of(step) + TICKS_PER_STEP // 2)


@pytest.mark.parametrize("function", ["spike_ratio", "robust_zscore", "ema_ratio"])
def test_what_one_rule_looks_at_in_the_past_changes_nothing_for_another(function: str) -> None:
    """They share what moves with the window, and a subquery takes it back and forth."""
    low, high = ("0.9", "1.6") if function != "robust_zscore" else ("0.1", "3")
    texts = [f"{function}(x[20]) > {low}", f"max_over_time(({function}(x[20]) > 4)[3:1] offset 7)"]
    expressions = [parse(text).expression for text in (*texts, f"{function}(x[20]) > {high}")]
    table, rng = SeriesTable(), np.random.default_rng(4)
    history = History(table)
    programs = [Program(history, shortcuts=shortcuts) for shortcuts in (False, True)]
    plain, quick = [[program.add(each) for each in expressions if each is not None] for program in programs]
    series = table.register("x", [{"i": str(i)} for i in range(30)])
    for step in range(1, 120):
        history.append(tick_of(step), series, rng.lognormal(0, 0.3, 30) * (10.0 if step // 15 % 2 else 1.0))
        with programs[1].silenced():
            for left, right in zip(plain, quick, strict=True):
                same(left, right, tick_of(step))


@pytest.mark.parametrize("text", ["spike_ratio(x[20]) > 3", "robust_zscore(x[20]) > 6", "ema_ratio(x[20]) > 3"])
def test_labels_are_one_object_whichever_way_was_taken(text: str) -> None:
    """While the window fills, and when most of the series have gaps, the plain way is taken."""
    expression = parse(text).expression
    assert expression is not None
    table = SeriesTable()
    history, series = History(table), table.register("x", [{"i": str(i)} for i in range(16)])
    query = Program(history).add(expression)
    seen = set()
    for step in range(1, 60):
        values = np.ones(16) + step % 3
        values[: 12 if 30 < step < 33 else 0] = np.nan
        history.append(tick_of(step), series, values)
        seen.add(id(query.evaluate(tick_of(step)).labels))
    assert len(seen) == 1


@pytest.mark.parametrize("text", ["spike_ratio(x[20]) > 6", "robust_zscore(x[20]) > 1e6"])
def test_infinity_is_above_a_bound_that_overflows(text: str) -> None:
    expression = parse(text).expression
    assert expression is not None
    table = SeriesTable()
    history, series = History(table), table.register("x", [{"i": str(i)} for i in range(16)])
    plain, quick = Program(history, shortcuts=False).add(expression), Program(history).add(expression)
    for step in range(1, 40):
        values = np.geomspace(3e307, 1e308, 16)[(np.arange(16) + 7 * step) % 16]
        values[3] = np.inf if step == 30 else values[3]
        history.append(tick_of(step), series, values)
        same(plain, quick, tick_of(step))
        assert quick.evaluate(tick_of(step)).kept.tolist() == [step == 30 and i == 3 for i in range(16)]


@pytest.mark.parametrize("least", ["0", "-1", "NaN"])
@pytest.mark.parametrize("function", ["spike_ratio", "robust_zscore", "ema_ratio"])
def test_without_a_finite_sample_before_nothing_is_known(function: str, least: str) -> None:
    expression = parse(f"{function}(x[20], {least}) > 2").expression
    assert expression is not None
    table = SeriesTable()
    history, series = History(table), table.register("x", [{"i": str(i)} for i in range(16)])
    plain, quick = Program(history, shortcuts=False).add(expression), Program(history).add(expression)
    for step in range(1, 5):
        values = np.ones(16)
        values[3] = np.nan if step < 4 else 1.0
        history.append(tick_of(step), series, values)
        same(plain, quick, tick_of(step))
    assert quick.evaluate(tick_of(4)).known.tolist() == [least != "NaN" and i != 3 for i in range(16)]


@pytest.mark.parametrize("text", ["spike_ratio(x[20]) > 1.5", "ema_ratio(x[20]) > 1.5", "robust_zscore(x[20], 3) > 2"])
def test_a_series_that_has_just_begun_is_told_by_its_few_samples(text: str) -> None:
    """New bounds of a window that is mostly gaps hold no better than the old ones."""
    expression = parse(text).expression
    assert expression is not None
    shape = {"spread": 0.0, "integers": 0, "nonfinite": 0, "absent": 0, "negative": 0, "zero": 0, "huge": 0.01}
    for seed in range(12):
        rng, table = np.random.default_rng(seed), SeriesTable()
        history = History(table)
        plain, quick = Program(history, shortcuts=False).add(expression), Program(history).add(expression)
        for step in range(1, 70):
            size = 90 if step <= 40 else 100
            series = table.register("x", [{"i": str(i)} for i in range(size)])
            history.append(tick_of(step), series, values_of(rng, shape, size))
            same(plain, quick, tick_of(step))


def alike(text: str, series: np.ndarray) -> None:
    """One series of these values beside fifteen that are always 1 is judged alike at every step."""
    expression = parse(text).expression
    assert expression is not None
    table = SeriesTable()
    history, columns = History(table), table.register("x", [{"i": str(i)} for i in range(16)])
    plain, quick = Program(history, shortcuts=False).add(expression), Program(history).add(expression)
    for step, value in enumerate(series, 1):
        row = np.ones(16, series.dtype)
        row[3] = value
        history.append(tick_of(step), columns, row)
        same(plain, quick, tick_of(step))


def test_a_series_that_is_no_longer_ragged_has_no_bound_yet() -> None:
    """The least values of a few rows allow for the gaps of those series that were not ragged when they were asked."""
    values = np.full(45, 1e-6)
    values[33:37], values[[26, 37, 38]], values[44] = 1.0, np.nan, 0.7
    alike("ema_ratio(x[16]) > 3", values)


def test_the_quotient_of_two_infinities_is_no_data() -> None:
    values = np.full(60, 1.7e308)
    values[50] = np.inf
    alike("ema_ratio(x[20]) > 2", values)


def test_float32_do_not_overflow_into_a_bound() -> None:
    levels = np.array([-2.5e38, -2.4e38, -2.3e38, 0, 1e36, 2e36, 2.4e38, 2.5e38, 2.6e38])
    values = np.random.default_rng(1).choice(levels, 120)
    expression = parse("robust_zscore(x[20]) > 6").expression
    assert expression is not None
    table = SeriesTable()
    history, columns = History(table), table.register("x", [{"i": str(i)} for i in range(16)])
    plain, quick = Program(history, shortcuts=False).add(expression), Program(history).add(expression)
    for step, value in enumerate(values, 1):
        row = np.ones(16)
        row[3] = value
        row = row.astype(np.float32)
        if step > 60 and step % 7 == 1:
            row = row.astype(np.float64)
            row[3] = 1e40
        history.append(tick_of(step), columns, row)
        same(plain, quick, tick_of(step))


@pytest.mark.parametrize(
    ("text", "values", "now"),
    [
        ("spike_ratio(x[20]) > 2.6", (5e-324,), 1.5e-323),
        ("spike_ratio(x[20]) > 1.6", (5e-324,), 1e-323),
        ("robust_zscore(x[20]) > 2", (-1.7e308, -1e307, 1.6e308), 1.79e308),
        ("robust_zscore(x[20]) > 6", (-1.6e308, -1e308, 5e307), 1.7e308),
    ],
)
def test_where_numbers_end_bounds_prove_nothing(text: str, values: tuple[float, ...], now: float) -> None:
    """Denormals are rounded by whole parts of them, and the distance of two numbers may overflow."""
    series = np.resize(np.array(values), 110)
    series[100] = now
    alike(text, series)


@pytest.mark.parametrize("ticks", [(0,), (-1, 0), (-4, -2, -1, 0)])
def test_a_turn_holds_for_a_while_however_the_rows_of_a_step_are_spread(ticks: tuple[int, ...]) -> None:
    expression = parse("spike_ratio(x[64]) > 2").expression
    assert expression is not None
    table, rng = SeriesTable(), np.random.default_rng(1)
    history, series = History(table), table.register("x", [{"i": str(i)} for i in range(16)])
    query = Program(history).add(expression)
    with patch.object(Turns, "_take", autospec=True, side_effect=Turns._take) as take:
        for step in range(1, 164):
            for tick in ticks:
                history.append(tick_of(step) + tick, series, rng.lognormal(0, 0.1, 16))
            query.evaluate(tick_of(step))
            if step == 100:
                take.reset_mock()
    assert take.call_count <= 9


@pytest.mark.parametrize(("pause", "apart"), [(20, 1), (1, 4)])
def test_series_take_turns_after_a_pause_too_and_where_steps_are_logged_more_seldom(pause: int, apart: int) -> None:
    expression = parse("spike_ratio(x[64]) > 2").expression
    assert expression is not None
    table, rng = SeriesTable(), np.random.default_rng(1)
    history, series = History(table), table.register("x", [{"i": str(i)} for i in range(3000)])
    query, takes = Program(history).add(expression), []
    with (
        patch.object(Turns, "_take", autospec=True, side_effect=Turns._take) as take,
        patch.object(Arbiter, "_computed", autospec=True, side_effect=Arbiter._computed) as computed,
    ):
        for step in (*range(1, 100), *range(99 + pause, 99 + pause + 80 * apart, apart)):
            history.append(tick_of(step), series, rng.lognormal(0, 0.05, 3000))
            take.reset_mock()
            query.evaluate(tick_of(step))
            takes.append(take.call_count)
            if len(takes) == 150:
                computed.reset_mock()
    assert max(takes[150:]) == 1, "not all at the same step"
    assert computed.call_count == len(takes) - 150, "never all of them the plain way"
