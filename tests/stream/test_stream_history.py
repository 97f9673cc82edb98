from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from healthwatch.stream import ABSENT, STALE, History, SeriesTable
from healthwatch.stream.ring import DENSE, FINITE, POSITIVE, SPARSE, is_absent, is_sample, is_stale

WRITES = st.lists(
    st.tuples(st.integers(0, 40), st.sampled_from([(0,), (1,), (0, 1), (2, 0), (0, 1, 2)]), st.floats(0, 9)),
    max_size=60,
)


@given(writes=WRITES, horizon=st.one_of(st.none(), st.integers(1, 12)))
def test_rows_are_what_was_written(writes: list[tuple[int, tuple[int, ...], float]], horizon: int | None) -> None:
    table, model = SeriesTable(), dict[int, dict[int, float]]()
    history = History(table)
    if horizon is not None:
        writes = sorted(writes, key=lambda write: write[0])
        history.retain(lambda _: lambda newest: newest - horizon)
    for tick, columns, value in writes:
        series = table.register("m", [{"c": str(column)} for column in columns])
        history.append(tick, series, np.full(len(columns), value))
        for label in series.labels:
            model.setdefault(tick, {})[int(label[0][1])] = value
    if not writes:
        return
    ring = history.ring("m")
    kept = ring.ticks(ring.first, ring.end)
    oldest = min(model) if horizon is None else max(model) - horizon
    assert [tick for tick in sorted(model) if tick >= oldest] == [tick for tick in kept if tick >= oldest]
    names = [int(label[0][1]) for label in table.labels("m")]
    for offset, tick in enumerate(kept):
        row = ring.row(ring.first + offset)
        got = {name: float(v) for name, v, there in zip(names, row, is_sample(row), strict=True) if there}
        assert got == model[tick]
        assert np.array_equal(ring.rows(ring.first, ring.end)[offset].view(np.int64), row.view(np.int64))


def test_a_ring_holds_little_more_than_its_rules_need() -> None:
    table = SeriesTable()
    history, series = History(table), table.register("m", [{"c": str(c)} for c in range(100)])
    history.retain(lambda _: lambda newest: newest - 99)
    for tick in range(2000):
        history.append(tick, series, np.zeros(100))
    assert history.nbytes() <= 1.25 * 100 * 100 * 8


def test_rewind_drops_later_rows() -> None:
    table = SeriesTable()
    history, series = History(table), table.register("m", [{}])
    for tick in range(10):
        history.append(tick, series, np.array([float(tick)]))
    before = history.changes
    history.rewind(4)
    ring = history.ring("m")
    assert ring.ticks(ring.first, ring.end) == [0, 1, 2, 3, 4]
    assert history.changes > before
    history.append(5, series, np.array([50.0]))
    assert ring.row(5).tolist() == [50.0]


def test_the_three_kinds_of_nan() -> None:
    values = np.array([ABSENT, STALE, np.nan, 1.0])
    assert is_absent(values).tolist() == [True, False, False, False]
    assert is_stale(values).tolist() == [False, True, False, False]
    assert is_sample(values).tolist() == [False, False, True, True]
    assert np.isnan(values).tolist() == [True, True, True, False]


def test_states_tell_whether_a_row_needs_a_mask() -> None:
    table = SeriesTable()
    history, both = History(table), table.register("m", [{"c": "0"}, {"c": "1"}])
    history.append(1, both, np.array([1.0, 2.0]))
    history.append(2, both, np.array([1.0, np.nan]))
    history.append(3, table.register("m", [{"c": "0"}]), np.array([1.0]))
    history.append(4, both, np.array([1.0, -2.0]))
    ring = history.ring("m")
    assert [ring.state(row) for row in (0, 1, 2, 3)] == [POSITIVE, DENSE, SPARSE, FINITE]
    assert ring.worst_state(0, 2) == DENSE
    history.append(3, table.register("m", [{"c": "1"}]), np.array([1.0]))
    assert ring.worst_state(2, 3) == POSITIVE


def test_new_series_have_no_sample_in_old_rows() -> None:
    table = SeriesTable()
    history = History(table)
    history.append(1, table.register("m", [{"c": "0"}]), np.array([1.0]))
    assert history.ring("m").state(0) == POSITIVE
    history.append(2, table.register("m", [{"c": "1"}]), np.array([2.0]))
    ring = history.ring("m")
    assert is_sample(ring.rows(0, 2)).tolist() == [[True, False], [False, True]]
    assert ring.state(0) == SPARSE
