from __future__ import annotations

import numpy as np
import pytest

from healthwatch.stream import TICKS_PER_STEP, Frame, SeriesTable


@pytest.fixture
def table() -> SeriesTable:
    return SeriesTable()


def test_columns_come_by_tick_and_keep_their_dtype(table: SeriesTable) -> None:
    loss, norm = table.register("loss", [{}]), table.register("norm", [{"p": "a"}, {"p": "b"}])
    frame = Frame(7)
    frame.add(loss, np.float64(1.5))
    frame.add(norm, np.array([1, 2], dtype=np.float16), micro_step=1)
    frame.add(norm, np.array([3, 4], dtype=np.int32), micro_step=0)
    frame.close()
    assert [(column.tick, column.micro_step) for column in frame.columns] == [
        (6 * TICKS_PER_STEP + TICKS_PER_STEP // 2, 0),
        (7 * TICKS_PER_STEP, None),
        (7 * TICKS_PER_STEP, 1),
    ]
    assert [column.values.dtype for column in frame.columns] == [np.int32, np.float64, np.float16]


def test_values_are_copied(table: SeriesTable) -> None:
    norm, values = table.register("norm", [{"p": "a"}, {"p": "b"}]), np.array([1.0, 2.0])
    frame = Frame(1)
    frame.add(norm, values)
    values[:] = 0
    frame.close()
    assert frame.columns[0].values.tolist() == [1.0, 2.0]


def test_the_number_of_micro_steps_may_be_given(table: SeriesTable) -> None:
    frame = Frame(1)
    frame.add(table.register("loss", [{}]), [1.0], micro_step=0)
    frame.close(micro_steps=4)
    assert frame.columns[0].tick == TICKS_PER_STEP // 4


def test_adding_again_replaces(table: SeriesTable) -> None:
    loss, frame = table.register("loss", [{}]), Frame(1)
    frame.add(loss, [1.0])
    frame.add(loss, [2.0])
    frame.close()
    assert [column.values.tolist() for column in frame.columns] == [[2.0]]


def test_misuse_is_refused(table: SeriesTable) -> None:
    loss, frame = table.register("loss", [{}]), Frame(1)
    with pytest.raises(ValueError, match="2 values for 1 series"):
        frame.add(loss, [1.0, 2.0])
    with pytest.raises(ValueError, match="not numbers"):
        frame.add(loss, ["high"])
    with pytest.raises(ValueError, match="not closed"):
        _ = frame.columns
    frame.add(loss, [1.0], micro_step=3)
    with pytest.raises(ValueError, match="has 4 micro-steps"):
        frame.close(micro_steps=2)
    frame.close()
    with pytest.raises(ValueError, match="is closed"):
        frame.add(loss, [1.0])


def test_flags_are_numbers(table: SeriesTable) -> None:
    frame = Frame(1)
    frame.add(table.register("overflow", [{}]), True)
    frame.close()
    assert frame.columns[0].values.dtype == np.uint8
