from __future__ import annotations

import numpy as np
import pytest

from healthwatch.stream.series import SeriesTable, label_set


def test_the_same_list_gives_the_same_series() -> None:
    table = SeriesTable()
    first = table.register("norm", [{"param": "a"}, {"param": "b"}])
    assert table.register("norm", [{"param": "a"}, {"param": "b"}]) is first
    assert table.version == 1


def test_a_label_set_keeps_its_column() -> None:
    table = SeriesTable()
    table.register("norm", [{"param": "a"}, {"param": "b"}])
    other = table.register("norm", [{"param": "c"}, {"param": "a"}])
    assert other.columns.tolist() == [2, 0]
    assert table.labels("norm") == [(("param", "a"),), (("param", "b"),), (("param", "c"),)]
    assert table.version == 2


def test_metrics_have_columns_of_their_own() -> None:
    table = SeriesTable()
    table.register("a", [{}])
    assert table.register("b", [{}]).columns.tolist() == [0]
    assert table.metrics() == ("a", "b")
    assert table.width("never") == 0


def test_label_sets_are_sorted_and_hold_no_empty_value() -> None:
    assert label_set({"z": "1", "a": "", "b": "2", "__name__": "x"}) == (("b", "2"), ("z", "1"))


def test_columns_side_by_side_are_a_slice() -> None:
    table = SeriesTable()
    assert table.register("a", [{"x": "1"}, {"x": "2"}]).place == slice(0, 2)
    apart = table.register("a", [{"x": "2"}, {"x": "1"}]).place
    assert isinstance(apart, np.ndarray)


@pytest.mark.parametrize("labels", [[{"x": "1"}, {"x": "1"}], [{}, {"x": ""}]])
def test_what_can_not_be_told_apart_is_refused(labels: list[dict[str, str]]) -> None:
    with pytest.raises(ValueError, match="twice"):
        SeriesTable().register("a", labels)
