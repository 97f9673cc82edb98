"""The array kernels beneath the functions, each against the obvious way."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from healthwatch.promql import Program, fast, parse, sums
from healthwatch.promql.bounds import of_deviation, of_median
from healthwatch.promql.limits import limit_of
from healthwatch.promql.moving import Span
from healthwatch.promql.select import Selection
from healthwatch.promql.training import TRAINING, evaluate
from healthwatch.stream import TICKS_PER_STEP, Frame, History, SeriesTable, tick_of

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


@given(
    values=hnp.arrays(np.float64, st.integers(2, 40), elements=st.one_of(numbers, st.sampled_from([1.7e308, np.nan]))),
    seed=st.integers(0, 99),
)
def test_a_slope_does_not_depend_on_whether_other_series_have_gaps(values: np.ndarray, seed: int) -> None:
    ticks = np.sort(np.random.default_rng(seed).choice(100, len(values), replace=False)) + 1
    for text in ("deriv(x[60])", "predict_linear(x[60], 7)"):
        found = []
        for others in ([], [{"i": "1"}]):
            table = SeriesTable()
            series = table.register("x", [{"i": "0"}])
            table.register("x", [{"i": "0"}, *others])
            history = History(table)
            expression = parse(text).expression
            assert expression is not None
            query = Program(history).add(expression)
            for step, value in zip(ticks.tolist(), values, strict=True):
                history.append(tick_of(step), series, np.array([value]))
            vector = query.evaluate(tick_of(int(ticks[-1])))
            found.append((vector.kept[0], vector.values[:1].tobytes()))
        assert found[0] == found[1]


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
@pytest.mark.parametrize(("rows", "size"), [(1, 5), (2, 700), (42, 1300), (63, 257), (128, 40), (300, 3)])
@pytest.mark.parametrize("unknown", [0, 1, 9])
def test_the_compiled_bounds_are_those_of_numpy(
    kind: type[np.float32] | type[np.float64], rows: int, size: int, unknown: int
) -> None:
    pytest.importorskip("numba", reason="needs the fast extra")
    from healthwatch.promql import compiled

    by_loops, rng = fast.deviation(), np.random.default_rng(3)
    assert by_loops is not of_deviation
    values = rng.lognormal(0, 1, (rows, size)).astype(np.float32).astype(np.float64)
    values[:, -1] = np.round(values[:, -1])
    together, width = (2, size) if rows > 128 else (1, compiled.COLUMNS)  # so long windows are numpy's
    for few in (0, rows // 8):
        values[rng.permutation(rows)[:few], 0] = np.nan
        values[rng.permutation(rows)[:few], size // 2] = np.inf
        irregular = np.array([0, size // 2] if few else [], np.intp)
        for cut in (0, rows // 3, rows):
            blocks = tuple(block for block in (values[:cut], values[cut:]) if len(block))
            with np.errstate(invalid="ignore"):
                found = by_loops(blocks, kind, irregular, unknown)
                for begin in range(0, size, width):  # columns that are worked on together have their gaps together
                    part, some = slice(begin, begin + width), irregular[irregular // width == begin // width]
                    beside = tuple(block[:, part] for block in blocks)
                    expected = of_deviation(beside, kind, some - begin, unknown, together)
                    for one, other in zip(found, expected, strict=True):
                        assert one is not None
                        assert other is not None
                        assert np.array_equal(one[part], other)


@pytest.mark.extras
@pytest.mark.parametrize(("rows", "size"), [(1, 1), (2, 33), (15, 5), (50, 98), (101, 64), (128, 3), (200, 7)])
def test_the_compiled_scores_are_those_of_numpy(rows: int, size: int) -> None:
    pytest.importorskip("numba", reason="needs the fast extra")
    plain = TRAINING["robust_zscore"]
    scores, rng = fast.scores(plain), np.random.default_rng(rows)
    assert scores is not None
    assert fast.scores(TRAINING["ema_ratio"]) is None
    for scale in (1.0, -1e-310, 1e308, -1e308):
        table = SeriesTable()
        series, history = table.register("x", [{"i": str(i)} for i in range(size)]), History(table)
        selection = Selection(history, "x", ())
        history.retain(lambda _: lambda newest: newest - (rows + 1) * TICKS_PER_STEP)
        for step in range(1, 3 * rows + 40):  # so the ring goes round
            frame, values = Frame(step), rng.lognormal(0, 1, size)
            values[size // 2] = 3.0 if step % 3 else 5.0
            values[size // 3] = 0.0
            with np.errstate(all="ignore"):
                frame.add(series, np.clip(values * scale, -1.7e308, 1.7e308))
            frame.close()
            history.extend(frame)
        frame = Frame(step + 1)
        frame.add(series, rng.choice([1.0, np.inf, np.nan], size))
        frame.close()
        history.extend(frame)
        ring = history.ring("x")
        part = selection.parts[0]
        assert ring.first > 0
        span = Span(part, ring.end - 1 - rows, ring.end - 1, tick_of(step + 1), rows * TICKS_PER_STEP)
        which = np.flatnonzero(rng.random(size) < 0.8)
        with np.errstate(all="ignore"):
            found = scores(span, which)
            expected, defined = evaluate(plain, span.baseline(which), min_samples=1)
        if rows > 128:
            assert found is None
        else:
            assert found is not None
            assert (found == found).tolist() == (defined & (expected == expected)).tolist()
            assert found[found == found].tobytes() == expected[found == found].tobytes()


@pytest.mark.extras
@given(
    bounds=hnp.arrays(np.float64, (2, 12), elements=st.sampled_from([0.0, -1.0, 1e-40, 3.5, 1e300]) | st.floats()),
    times=st.sampled_from([0.01, 6.0, 1e6]),
)
def test_the_compiled_limits_are_those_of_numpy(bounds: np.ndarray, times: float) -> None:
    pytest.importorskip("numba", reason="needs the fast extra")
    quick = fast.limit_of()
    assert quick is not limit_of
    with np.errstate(all="ignore"):
        assert quick(bounds[0], bounds[1], times).tobytes() == limit_of(bounds[0], bounds[1], times).tobytes()
        assert quick(None, bounds[1], times).tobytes() == limit_of(None, bounds[1], times).tobytes()


def score_limits(window: np.ndarray, bound: float) -> tuple[np.ndarray, np.ndarray]:
    """Median and `median + bound * divisor` of each column's finite values, by numpy's own functions."""
    held = np.where(np.isfinite(window), window, np.nan)
    centre = np.nanmedian(held, axis=0)
    deviation = np.nanmedian(np.abs(held - centre), axis=0)
    return centre, centre + bound * np.maximum(1.4826 * deviation, 1e-3 * np.abs(centre))


@st.composite
def partly_known(draw: st.DrawFn) -> tuple[np.ndarray, np.ndarray, int]:
    """Known values, all values of the window, and how many unknown ones there may be. One series may have gaps."""
    known, most = draw(st.integers(1, 40)), draw(st.integers(0, 12))
    unknown = draw(st.integers(0, most))
    levels = st.sampled_from([-3.0, -1.0, 0.0, 0.5, 1.0, 1.1, 1.2, 1.3, 2.0, 9.0])
    values = draw(hnp.arrays(np.float64, (known + unknown, 6), elements=levels | st.floats(0.5, 1.5, width=32)))
    values = values.astype(np.float32).astype(np.float64)
    values[: draw(st.integers(0, known // 4)), draw(st.integers(0, 5))] = draw(st.sampled_from([np.inf, np.nan]))
    return values[:known], values, most


@pytest.mark.parametrize("compiled", [False, pytest.param(True, marks=pytest.mark.extras)])
@given(case=partly_known(), limit=st.sampled_from([0.5, 3.0, 6.0]), kind=st.sampled_from([np.float32, np.float64]))
def test_bounds_hold_whatever_the_unknown_values_are(
    compiled: bool, case: tuple[np.ndarray, np.ndarray, int], limit: float, kind: type[np.float32] | type[np.float64]
) -> None:
    known, window, unknown = case
    gaps = (~np.isfinite(known)).sum(axis=0)
    held = gaps <= (len(known) + unknown) // 8
    known, window = known[:, held], window[:, held]
    irregular = (gaps[held] > 0).nonzero()[0]
    centre, exact = score_limits(window, limit)
    _, median = of_median((known,), kind, irregular, unknown)
    assert ((median <= centre) | (median <= 0)).all()
    with np.errstate(invalid="ignore"):  # as wherever rules are evaluated
        low, divisor = (fast.deviation() if compiled else of_deviation)((known,), kind, irregular, unknown)
    assert low is not None
    proven = divisor > 0
    assert (low[proven] <= centre[proven]).all()
    assert (low + limit * divisor <= exact + 1e-12 * np.abs(exact))[proven].all()


def test_bounds_are_close_enough_to_exclude_nearly_everybody() -> None:
    values, none = np.random.default_rng(1).lognormal(0, 0.1, (50, 5000)), np.zeros(0, np.intp)
    _, limit = score_limits(values, 6.0)
    for unknown, least in ((0, 0.9), (8, 0.75)):
        low, divisor = of_deviation((values[unknown:],), np.float64, none, unknown)
        assert low is not None
        assert np.median((low + 6.0 * divisor) / limit) > least
    _, median = of_median((values[8:],), np.float64, none, 8)
    assert np.median(median / np.median(values, axis=0)) > 0.9
