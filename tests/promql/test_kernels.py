"""The array kernels beneath the functions, each against the obvious way."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from healthwatch.promql import Program, parse, sums
from healthwatch.promql.ordered import loops, places
from healthwatch.stream import History, SeriesTable, tick_of

WINDOWED = [
    "sum_over_time(x[30])",
    "avg_over_time(x[30])",
    "max_over_time(x[30])",
    "min_over_time(finite(x[30]))",
    "first_over_time(x[30])",
    "last_over_time(x[30])",
    "deriv(x[30])",
    "predict_linear(finite(x[30]), 5)",
    "stddev_over_time(x[30])",
    "quantile_over_time(0.3, x[30])",
]


@pytest.mark.parametrize("size", [3, 3000])
@pytest.mark.parametrize("low", [0.0, -1.0])
@pytest.mark.parametrize("text", WINDOWED)
def test_a_ring_that_wraps_changes_nothing(text: str, low: float, size: int) -> None:
    """The rows of a window lie in two pieces in one history and in one in the other."""
    expression = parse(text).expression
    assert expression is not None
    table, rng = SeriesTable(), np.random.default_rng(1)
    series = table.register("x", [{"i": str(i)} for i in range(size)])
    wrapping, whole = History(table), History(table)
    program = Program(wrapping)
    short, long = program.add(expression), Program(whole).add(expression)
    program.retain()
    for step in range(1, 110):
        values = rng.random(size) + low
        for history in (wrapping, whole):
            history.append(tick_of(step), series, values)
        if step % 7 == 0:
            left, right = short.evaluate(tick_of(step)), long.evaluate(tick_of(step))
            assert left.values.tobytes() == right.values.tobytes()
    assert wrapping.nbytes() < whole.nbytes()


numbers = st.floats(-1e3, 1e3, allow_subnormal=False)
extremes = st.one_of(numbers, st.sampled_from([1e308, -1e308, np.inf, -np.inf, np.nan, 1e100, -1e100, 1.0]))


@given(rows=hnp.arrays(np.float64, hnp.array_shapes(min_dims=2, max_dims=2, max_side=8), elements=numbers))
def test_a_sum_of_rows_does_not_depend_on_the_columns_beside_it(rows: np.ndarray) -> None:
    together = sums.add_rows(rows)
    alone = [sums.add_rows(np.ascontiguousarray(rows[:, i : i + 1]))[0] for i in range(rows.shape[1])]
    assert together.tobytes() == np.array(alone).tobytes()


def neumaier(values: list[float]) -> float:
    """Prometheus' `kahanSumInc`, one value after the other."""
    total = rest = 0.0
    for value in values:
        new = total + value
        if np.isinf(new):
            rest = 0.0
        elif abs(total) >= abs(value):
            rest += (total - new) + value
        else:
            rest += (value - new) + total
        total = new
    return total if np.isinf(total) else total + rest


@given(values=st.lists(extremes, min_size=1, max_size=12))
def test_sums_are_those_of_prometheus(values: list[float]) -> None:
    with np.errstate(all="ignore"):
        expected = neumaier(values)
        column = sums.sum_rows((np.array(values)[:, None],))[0]
        grouped = sums.sum_groups(np.array(values), np.array([0]))[0]
    for found in (column, grouped):
        assert np.isclose(found, expected, rtol=1e-9, atol=1e-300, equal_nan=True)


@given(values=st.lists(st.sampled_from([1.5e308, 1e308, -1e308, 3.0]), min_size=1, max_size=9))
def test_means_of_huge_values_do_not_overflow(values: list[float]) -> None:
    with np.errstate(all="ignore"):
        found = sums.mean_rows((np.array(values)[:, None],), np.array([float(len(values))]))[0]
        grouped = sums.mean_groups(np.array(values), np.array([0]), np.array([len(values)]))[0]
    expected = float(sum(map(Fraction, values)) / len(values))
    assert np.isclose(found, expected, rtol=1e-9, atol=1e293)
    assert np.isclose(grouped, expected, rtol=1e-9, atol=1e293)


@pytest.mark.extras
@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_the_compiled_exchange_keeps_windows_sorted(kind: type[np.floating]) -> None:
    pytest.importorskip("numba", reason="needs the fast extra")
    compiled = loops()
    assert compiled is not None
    rng = np.random.default_rng(3)
    for rows, size in ((1, 5), (2, 700), (50, 1300)):
        window = rng.integers(0, 9, (rows, size)).astype(kind)
        ordered = np.sort(window, axis=0)
        for index in range(3 * rows):
            fresh = rng.integers(0, 9, size).astype(kind)
            found, limits, factors = np.empty(size), np.empty(size), (1.4826, 1e-3, 6.0)
            compiled.exchange(ordered, window[index % rows].copy(), fresh, places(rows, 0), factors, found)
            window[index % rows] = fresh
            assert np.array_equal(ordered, np.sort(window, axis=0))
            compiled.limits(ordered, places(rows, 0), factors, limits)
            assert np.array_equal(found, limits)


@pytest.mark.extras
@pytest.mark.parametrize("rows", [1, 2, 3, 16, 49, 50])
@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_the_compiled_limits_are_below_the_sharper_ones_which_are_those_of_the_score(
    rows: int, kind: type[np.floating]
) -> None:
    pytest.importorskip("numba", reason="needs the fast extra")
    compiled = loops()
    assert compiled is not None
    rng = np.random.default_rng(rows)
    window = np.concatenate((rng.lognormal(0, 0.5, (rows, 200)), rng.integers(-3, 4, (rows, 200))), axis=1).astype(kind)
    ordered = np.sort(window, axis=0)
    centre = np.median(window.astype(float), axis=0)
    deviation = np.median(np.abs(window.astype(float) - centre), axis=0)
    divisor = np.maximum(1.4826 * deviation, 1e-3 * np.abs(centre))
    expected = np.where(divisor > 0, centre + 6 * divisor, -np.inf)
    sharp, found = np.empty(400), np.empty(400)
    compiled.sharper(ordered, np.arange(400), (1.4826, 1e-3, 6.0), sharp)
    compiled.limits(ordered, places(rows, 0), (1.4826, 1e-3, 6.0), found)
    np.testing.assert_allclose(sharp, expected, rtol=1e-12)
    assert ((found <= sharp) | np.isclose(found, sharp, rtol=1e-12)).all()
    assert rows < 49 or np.median((found / sharp)[:200]) > 0.9  # and not far below


@pytest.mark.extras
@pytest.mark.parametrize("rows", [8, 16, 50, 51])
def test_pairs_of_places_hold_in_windows_with_gaps(rows: int) -> None:
    """A gap stands in the ordered window as any value at all."""
    pytest.importorskip("numba", reason="needs the fast extra")
    compiled = loops()
    assert compiled is not None
    rng = np.random.default_rng(rows)
    for gaps in range(rows // 8 + 1):
        values = rng.lognormal(0, 0.5, (rows, 300))
        ordered = np.sort(np.concatenate((values[gaps:], rng.choice([0.0, 1.0, 9.0], (gaps, 300)))), axis=0)
        sharp, found = np.empty(300), np.empty(300)
        finite = np.sort(values[gaps:], axis=0)
        compiled.sharper(finite, np.arange(300), (1.4826, 1e-3, 6.0), sharp)
        compiled.limits(ordered, places(rows, gaps), (1.4826, 1e-3, 6.0), found)
        assert ((found <= sharp) | np.isclose(found, sharp, rtol=1e-12)).all()
