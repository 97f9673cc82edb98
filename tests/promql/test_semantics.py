"""The normative rules on evaluation, one example each, and what the engine promises about its work."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pytest

from healthwatch.promql import EvaluationError, Program, Query, parse
from healthwatch.stream import ABSENT, STALE, TICKS_PER_STEP, Frame, History, SeriesTable, tick_of


class Run:
    """A history and a program over it, filled step by step."""

    def __init__(self) -> None:
        self.table = SeriesTable()
        self.history = History(self.table)
        self.program = Program(self.history)

    def add(self, text: str, lookback: int | None = None) -> Query:
        parsed = parse(text, rule=False)
        assert parsed.expression is not None, parsed.problems
        return self.program.add(parsed.expression, lookback)

    def write(
        self, step: int, metric: str, values: Sequence[float], labels: Sequence[dict[str, str]] | None = None
    ) -> None:
        labels = [{"i": str(i)} for i in range(len(values))] if labels is None else labels
        self.history.append(tick_of(step), self.table.register(metric, labels), np.array(values))


def kept(query: Query, step: int) -> dict[tuple[tuple[str, str], ...], float]:
    vector = query.evaluate(tick_of(step))
    return {vector.labels[i]: float(vector.values[i]) for i in np.flatnonzero(vector.kept)}


def verdicts(query: Query, step: int) -> list[str]:
    vector = query.evaluate(tick_of(step))
    return ["breach" if k else "clear" if n else "-" for k, n in zip(vector.kept, vector.known, strict=True)]


def test_r1_ranges_are_left_open_on_integers() -> None:
    """M = 3, step 100, m = 0, [50]: the sample of step 50 at 49.333333 is exactly t - 50 and out."""
    run = Run()
    series = run.table.register("x", [{}])
    for step in range(50, 101):
        for micro in range(3):
            run.history.append(tick_of(step, micro, 3), series, np.array([float(step)]))
    count = run.add("count_over_time(x[50])")
    vector = count.evaluate(tick_of(100, 0, 3))
    assert vector.values.tolist() == [150.0]


def test_r2_each_selector_has_its_own_row() -> None:
    run = Run()
    train, val = [{"split": "train"}], [{"split": "val"}]
    for step in range(1, 251):
        run.write(step, "loss", [step], train)
        if step % 100 == 0:
            run.write(step, "loss", [-step], val)
    assert list(kept(run.add('loss{split="val"}'), 250).values()) == [-200.0]
    assert list(kept(run.add('loss{split="train"}'), 250).values()) == [250.0]
    assert list(kept(run.add("loss"), 250).values()) == [250.0], "at 250 only one of them has a sample"
    assert len(kept(run.add("loss"), 200)) == 2


def test_r2_with_lookback_each_series_has_its_newest_sample() -> None:
    run = Run()
    run.write(1, "x", [1, 10])
    run.write(2, "x", [2, ABSENT])
    run.write(3, "x", [STALE, ABSENT])
    plain, back = run.add("x"), run.add("x", lookback=2)
    assert list(kept(plain, 2).values()) == [2.0]
    assert list(kept(back, 2).values()) == [2.0, 10.0]
    assert kept(back, 3) == {}
    assert kept(plain, 3) == {}


@pytest.mark.parametrize(
    ("text", "due"),
    [
        ("x", [0.5, 1.0]),
        ("y", [1.0]),
        ("x and on () y", [0.5, 1.0]),
        ("x{i='1'}", []),
        ("z", []),
        ("absent(z)", [1.0]),
        ("vector(time()) > 3", [1.0]),
        ("vector(1)", [1.0]),
        ("present_over_time(z[20]) unless present_over_time(z[2])", [1.0]),
    ],
)
def test_r3_when_a_rule_is_due(text: str, due: list[float]) -> None:
    run = Run()
    query = run.add(text)
    frame = Frame(7)
    x, y = run.table.register("x", [{"i": "0"}]), run.table.register("y", [{}])
    run.table.register("x", [{"i": "1"}])
    for micro in range(2):
        frame.add(x, [1.0], micro_step=micro)
    frame.add(y, [1.0])
    frame.close()
    run.history.extend(frame)
    assert [tick / TICKS_PER_STEP - 6 for tick in query.due(frame)] == due


def test_r4_a_count_of_nothing_is_clear() -> None:
    run = Run()
    quorum = run.add("count(spike_ratio(x[50]) > 8) >= 5")
    for step in range(1, 20):
        run.write(step, "x", [1.0] * 20)
    assert verdicts(quorum, 19) == ["clear"]
    run.write(20, "x", [9.0] * 5 + [1.0] * 15)
    assert verdicts(quorum, 20) == ["breach"]
    assert kept(quorum, 20) == {(): 5.0}


def test_r4_nan_is_no_data_for_a_comparison_and_a_breach_for_nonfinite() -> None:
    run = Run()
    above, bad = run.add("loss > 5"), run.add("nonfinite(loss)")
    for step, value in enumerate([9, math.nan, 9, 1, math.inf], start=1):
        run.write(step, "loss", [value])
    assert [verdicts(above, step)[0] for step in range(1, 6)] == ["breach", "-", "breach", "clear", "breach"]
    assert [verdicts(bad, step)[0] for step in range(1, 6)] == ["clear", "breach", "clear", "clear", "breach"]


def test_r4_finite_samples_can_make_an_infinity_and_that_a_nan() -> None:
    run = Run()
    product, difference = run.add("nonfinite(x * x)"), run.add("x * x - x * x > -1")
    run.write(1, "x", [1e200, 1.0])
    assert verdicts(product, 1) == ["breach", "clear"]
    assert verdicts(difference, 1) == ["-", "breach"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        # a: breach, clear, no data, breach, clear; b: breach, breach, breach, clear, no data (> 1)
        ("a > 1 and b > 1", ["breach", "clear", "-", "clear", "clear"]),
        ("a > 1 unless b > 1", ["clear", "clear", "clear", "breach", "clear"]),
        ("(a > 1) + (b > 1)", ["breach", "clear", "-", "clear", "-"]),
        ("max by (i) (a > 1)", ["breach", "clear", "-", "breach", "clear"]),
        ("abs(a > 1)", ["breach", "clear", "-", "breach", "clear"]),
    ],
)
def test_r4_verdicts_of_operators(text: str, expected: list[str]) -> None:
    run = Run()
    query = run.add(text)
    run.write(1, "a", [2, 0, math.nan, 2, 0])
    run.write(1, "b", [2, 2, 2, 0, math.nan])
    vector = query.evaluate(tick_of(1))
    found = dict(zip([dict(labels)["i"] for labels in vector.labels], verdicts(query, 1), strict=True))
    assert [found[str(i)] for i in range(5)] == expected


def test_r4_or_is_clear_where_every_side_that_has_the_label_set_is() -> None:
    run = Run()
    either = run.add("abs(a) > 5 or abs(b) > 5")
    run.write(1, "a", [9, 1, 1, 1, math.nan])
    run.write(1, "b", [1, 9, 1, math.nan, math.nan])
    assert verdicts(either, 1) == ["breach", "breach", "clear", "-", "-"]


def test_a_spike_is_not_now_once_the_series_is_gone() -> None:
    run = Run()
    spike = run.add("spike_ratio(x[20]) > 8")
    for step in range(1, 11):
        run.write(step, "x", [1.0, 1.0])
    run.write(11, "x", [20.0, 1.0])
    assert verdicts(spike, 11) == ["breach", "clear"]
    run.write(12, "x", [ABSENT, 1.0])
    assert verdicts(spike, 12) == ["-", "clear"]


def test_a_baseline_reaches_sixteen_rows_back_in_a_sparse_log() -> None:
    run = Run()
    score = run.add("robust_zscore(x[128]) > 6")
    run.program.retain()
    for step in range(100, 2000, 100):
        run.write(step, "x", [1.0 + step % 3 / 10])
        expected = "clear" if step > 1600 else "-"
        assert verdicts(score, step) == [expected], step
    run.write(2000, "x", [9.0])
    assert verdicts(score, 2000) == ["breach"]


def test_one_nan_leaves_the_baseline_as_it_was() -> None:
    run = Run()
    spike = run.add("spike_ratio(x[20]) > 8")
    for step in range(1, 30):
        run.write(step, "x", [math.nan if step == 15 else 1.0])
    run.write(30, "x", [9.0])
    assert kept(spike, 30) == {(("i", "0"),): 9.0}


def test_a_median_of_zero_gives_no_ratio() -> None:
    run = Run()
    spike = run.add("spike_ratio(x[20]) > 8")
    for step in range(1, 20):
        run.write(step, "x", [0.0, -1.0, 5e-8])
    run.write(20, "x", [1.0, -10.0, 5e-7])
    assert verdicts(spike, 20) == ["-", "-", "breach"]


def test_names_stay_where_prometheus_keeps_them() -> None:
    run = Run()
    run.write(1, "a", [9.0])
    run.write(1, "b", [9.0])
    run.write(2, "a", [math.inf])
    run.write(2, "b", [math.nan])
    assert len(kept(run.add('nonfinite({__name__=~"a|b"})'), 2)) == 2, "NaN in two metrics are two alerts (R7)"
    assert list(kept(run.add('{__name__=~"a|b"} > 5'), 1)) == [
        (("__name__", "a"), ("i", "0")),
        (("__name__", "b"), ("i", "0")),
    ]
    with pytest.raises(EvaluationError, match="same labelset"):
        run.add('abs({__name__=~"a|b"})').evaluate(tick_of(1))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a * on (g) b", "many-to-many"),
        ("a * on (g) group_left () b", "many-to-many"),
        ("b * on (g) c", "many-to-one matching must be explicit"),
        ("topk(scalar(none), a)", "Parameter value is NaN"),
        ("limit_ratio(scalar(none), a)", "Ratio value is NaN"),
    ],
)
def test_what_has_no_result_is_an_error(text: str, message: str) -> None:
    run = Run()
    pair = [{"g": "0", "i": "0"}, {"g": "0", "i": "1"}]
    run.write(1, "a", [1, 2], pair)
    run.write(1, "b", [1, 2], pair)
    run.write(1, "c", [1], [{"g": "0"}])
    with pytest.raises(EvaluationError, match=message):
        run.add(text).evaluate(tick_of(1))


def test_equal_subexpressions_are_computed_once() -> None:
    run = Run()
    first, second = run.add("avg_over_time(x[5]) > 1"), run.add("2 < (avg_over_time(x[5]))")
    planned = {node.text: node.users for node in first.plan()}
    assert planned["avg_over_time(x[5])"] == 2
    assert planned["x[5]"] == 2
    assert planned["avg_over_time(x[5]) > 1"] == 1
    assert first.vector is not second.vector


def test_labels_are_one_object_until_a_series_is_new() -> None:
    run = Run()
    query = run.add("abs(x) > 1 or y")
    run.write(1, "x", [1, 2])
    before = query.evaluate(tick_of(1)).labels
    run.write(2, "x", [3, 2])
    assert query.evaluate(tick_of(2)).labels is before
    run.write(3, "x", [3, 2, 1])
    after = query.evaluate(tick_of(3)).labels
    assert after is not before
    assert len(after) == 3


def test_rows_are_kept_as_far_back_as_the_rules_look() -> None:
    run = Run()
    query = run.add("x > 2 * x offset 30")
    far = run.add("max_over_time((rate(x[10]))[20:5] offset 7)")
    whole = Run()
    same = [whole.add(each.expression.text) for each in (query, far)]
    run.program.retain()
    for step in range(1, 400):
        for each in (run, whole):
            each.write(step, "x", [step % 37 + 1.0, 5.0])
        for kept_query, whole_query in zip((query, far), same, strict=True):
            assert kept(kept_query, step) == kept(whole_query, step)
    ring = run.history.ring("x")
    assert ring.end - ring.first < 60
