"""Random expressions over random series: the engine and the naive evaluator must say the same."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from naive_promql import Failure, Naive

from healthwatch.promql import EvaluationError, Program, Query, parse
from healthwatch.stream import ABSENT, STALE, TICKS_PER_STEP, History, SeriesTable
from healthwatch.stream.series import LabelSet

Written = dict[LabelSet, dict[int, "float | str"]]

SERIES: list[dict[str, str]] = [
    {"__name__": "a", "g": "0", "e": "0"},
    {"__name__": "a", "g": "0", "e": "1"},
    {"__name__": "a", "g": "1", "e": "0"},
    {"__name__": "a", "g": "1", "e": "1"},
    {"__name__": "b", "g": "0"},
    {"__name__": "b", "g": "1"},
    {"__name__": "c"},
]
VALUES = st.one_of(
    st.integers(-4, 12).map(lambda v: v / 2),
    st.sampled_from([math.nan, math.inf, -math.inf, 0.0, 1e-3, 1e6]),
)
HUGE = st.one_of(VALUES, st.sampled_from([1e200, -1e300]))
"""Whose products overflow, so that finite samples make infinities, and these NaN."""
LAST = 24


@st.composite
def histories(draw: st.DrawFn, values: st.SearchStrategy[float] = VALUES) -> Written:
    """Every series with gaps, some late, some ended; ticks on the half step for a few."""
    sample = st.one_of(values, values, values, values, st.none(), st.none(), st.just("stale"))
    written: Written = {}
    for labels in SERIES:
        first = draw(st.integers(0, 12))
        every = draw(st.sampled_from([TICKS_PER_STEP, TICKS_PER_STEP, TICKS_PER_STEP // 2, 3 * TICKS_PER_STEP]))
        samples = draw(st.lists(sample, max_size=LAST))
        written[tuple(sorted(labels.items()))] = {
            first * TICKS_PER_STEP + i * every: sample for i, sample in enumerate(samples) if sample is not None
        }
    return written


SELECTORS = ["a", "b", "c", 'a{g="0"}', 'a{e!="0"}', '{__name__=~"a|b"}', 'a{g=~"0|1", e!~"1.*"}', "a offset 2", "none"]
WINDOWS = ["[2]", "[5]", "[12]", "[5] offset 3"]
selector = st.sampled_from(SELECTORS)
plain_selector = st.sampled_from([each for each in SELECTORS if "offset" not in each])
window = st.builds("{}{}".format, plain_selector, st.sampled_from(WINDOWS))
number = st.sampled_from(["0", "1", "2.5", "-1", "NaN", "Inf"])
comparison = st.sampled_from([">", "<", ">=", "<=", "==", "!="])
grouping = st.sampled_from(["", "by (g)", "without (e)", "by (g, e)", "by (__name__)"])
matching = st.sampled_from(["", "on (g)", "ignoring (e)", "on ()"])
exact_over_time = st.sampled_from(
    [
        "max_over_time",
        "min_over_time",
        "last_over_time",
        "first_over_time",
        "count_over_time",
        "present_over_time",
        "changes",
        "resets",
        "ts_of_first_over_time",
        "ts_of_last_over_time",
        "ts_of_max_over_time",
        "ts_of_min_over_time",
    ]
)


def _extended(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    """Expressions whose values both evaluators compute exactly, so that no comparison hangs on the last bit."""
    return st.one_of(
        st.builds("({} {} {})".format, inner, comparison, number),
        st.builds("({} {} bool {})".format, inner, comparison, number),
        st.builds("({} {} {})".format, number, comparison, inner),
        st.builds("({} {} {} {})".format, inner, comparison, matching, inner),
        st.builds("({} {} {} {})".format, inner, st.sampled_from(["and", "or", "unless"]), matching, inner),
        st.builds("({} {} {} {})".format, inner, st.sampled_from("+-*"), matching, inner),
        st.builds("({} - ignoring (e) group_left () {})".format, inner, inner),
        st.builds("({} * on (g) group_right () {})".format, inner, inner),
        st.builds("{} {} ({})".format, st.sampled_from(["max", "min", "count", "group"]), grouping, inner),
        st.builds("{} {} ({}, {})".format, st.sampled_from(["topk", "bottomk"]), grouping, st.just("1"), inner),
        st.builds("{}({})".format, st.sampled_from(["abs", "-", "sgn", "nonfinite", "absent"]), inner),
        st.builds("clamp_min({}, {})".format, inner, number),
        st.builds("{}(({})[{}:{}])".format, exact_over_time, inner, st.sampled_from("46"), st.sampled_from("12")),
        st.builds("{} > scalar({})".format, inner, inner).map("({})".format),
    )


exact = st.recursive(
    st.one_of(
        selector,
        st.builds("{}({})".format, exact_over_time, window),
        st.builds("{}(finite({}))".format, exact_over_time, window),
    ),
    _extended,
    max_leaves=3,
)
inexact = st.one_of(
    st.builds(
        "{}({})".format,
        st.sampled_from(
            [
                "sum_over_time",
                "avg_over_time",
                "stddev_over_time",
                "stdvar_over_time",
                "mad_over_time",
                "deriv",
                "rate",
                "increase",
                "delta",
                "irate",
                "idelta",
            ]
        ),
        window,
    ),
    st.builds("quantile_over_time({}, {})".format, st.sampled_from(["0.5", "0.1", "1", "-1", "NaN"]), window),
    st.builds("predict_linear({}, 3)".format, window),
    st.builds("double_exponential_smoothing({}, 0.5, 0.25)".format, window),
    st.builds("{} {} ({})".format, st.sampled_from(["sum", "avg", "stddev", "stdvar"]), grouping, exact),
    st.builds("quantile {} ({}, {})".format, grouping, st.sampled_from(["0.5", "0.9"]), exact),
    st.builds("({} / {} {})".format, exact, matching, exact),
)
OURS = st.sampled_from(["spike_ratio", "robust_zscore", "zscore", "ema", "ema_ratio", "growth"])
ours = st.one_of(
    st.builds("{}({}, {})".format, OURS, window, st.sampled_from("135")),
    st.builds("{}({})".format, OURS, window),
    st.builds("{}((a - 1)[6:1], 2)".format, OURS),
    st.builds("{}(finite({}), 2)".format, OURS, window),
)


def history_of(written: Written) -> History:
    table = SeriesTable()
    history = History(table)
    sets = {name: [labels for labels in written if dict(labels)["__name__"] == name] for name in "abc"}
    series = {name: table.register(name, [dict(labels) for labels in each]) for name, each in sets.items()}
    for tick in sorted({tick for samples in written.values() for tick in samples}):
        for name, each in sets.items():
            found = [written[labels].get(tick, ABSENT) for labels in each]
            values = np.array([STALE if v == "stale" else v for v in found], dtype=np.float64)
            if any(tick in written[labels] for labels in each):
                history.append(tick, series[name], values)
    return history


def close(left: float, right: float) -> bool:
    if math.isnan(left) or math.isnan(right):
        return math.isnan(left) and math.isnan(right)
    return left == right or math.isclose(left, right, rel_tol=1e-7, abs_tol=1e-9)


def compare(text: str, query: Query, naive: Naive, tick: int, same: Callable[[float, float], bool]) -> None:
    tree = query.expression.tree
    try:
        wanted_kept, wanted_clear = naive.result(tree, tick)
    except Failure:
        with pytest.raises(EvaluationError):
            query.evaluate(tick)
        return
    vector = query.evaluate(tick)
    kept = {frozenset(vector.labels[i]): float(vector.values[i]) for i in np.flatnonzero(vector.kept)}
    clear = {frozenset(vector.labels[i]) for i in np.flatnonzero(vector.known & ~vector.kept)}
    assert kept.keys() == wanted_kept.keys(), f"{text} at {tick}"
    for labels, value in wanted_kept.items():
        assert same(kept[labels], value), f"{text} at {tick}: {sorted(labels)}: {kept[labels]} is not {value}"
    assert clear == wanted_clear, f"{text} at {tick}: clear"
    assert (vector.known | ~vector.kept).all(), "what is kept is known"


TICKS = [0, 3, 7, 7.5, 12, 13, 20, 36, 60]


def check(text: str, written: Written, lookback: int | None) -> None:
    parsed = parse(text, rule=False)
    assert parsed.expression is not None, (text, parsed.problems)
    samples = {frozenset(labels): each for labels, each in written.items()}
    naive = Naive(samples, None if lookback is None else lookback * TICKS_PER_STEP)
    query = Program(history_of(written)).add(parsed.expression, lookback)
    for at in TICKS:
        compare(text, query, naive, round(at * TICKS_PER_STEP), close)


common = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])


@pytest.mark.long
@given(written=histories(HUGE), text=exact, lookback=st.sampled_from([None, None, 4]))
@settings(parent=common, max_examples=150)
def test_exact_expressions(written: Written, text: str, lookback: int | None) -> None:
    check(text, written, lookback)


@given(written=histories(), text=inexact)
@settings(parent=common, max_examples=300)
def test_inexact_expressions(written: Written, text: str) -> None:
    check(text, written, None)


@given(written=histories(), text=ours)
@settings(parent=common, max_examples=300)
def test_functions_of_our_own(written: Written, text: str) -> None:
    check(text, written, None)
