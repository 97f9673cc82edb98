"""Prometheus' notation of test series."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from healthwatch.ruletest.notation import MOST_VALUES, Trouble, read_labels, read_series, read_step, read_values


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("", ()),
        ("1 2 -3.5 1e3 .5", (1, 2, -3.5, 1000, 0.5)),
        ("0x3", (0, 0, 0, 0)),
        ("0+10x3", (0, 10, 20, 30)),
        ("5-2x2", (5, 3, 1)),
        ("1+-2x1", None),
        ("-1+0.5x2", (-1, -0.5, 0)),
        ("7x2", (7, 7, 7)),
        ("7x0", (7,)),
        ("_ _x3 1", (None, None, None, None, 1)),
        ("stale stalex1", ("stale", "stale", "stale")),
        ("Inf -inf +Inf", (math.inf, -math.inf, math.inf)),
        ("  1\n  2 ", (1, 2)),
    ],
)
def test_values(text, values):
    found = read_values(text)
    if values is None:
        assert isinstance(found, Trouble)
    else:
        assert found == values


def test_nan():
    (found,) = read_values("NaN")
    assert math.isnan(found)


@given(st.integers(-50, 50), st.integers(-9, 9), st.integers(0, 40))
def test_a_run_is_as_long_and_as_steep_as_it_says(first, slope, times):
    assert read_values(f"{first}{slope:+d}x{times}") == tuple(first + slope * n for n in range(times + 1))


@given(st.text(max_size=30))
def test_any_text_is_values_or_trouble_at_a_place_in_it(text):
    found = read_values(text)
    if isinstance(found, Trouble):
        assert 0 <= found.start < found.end <= len(text)


def test_trouble_is_at_the_word():
    found = read_values("1 2 1+2y3 4")
    assert isinstance(found, Trouble)
    assert (found.start, found.end) == (4, 9)
    assert '"1+2y3"' in found.message


def test_a_slip_does_not_eat_the_memory():
    assert isinstance(read_values(f"1x{MOST_VALUES}"), Trouble)


def test_series():
    assert read_series('norm{param="a.b", layer="3"}') == ("norm", (("layer", "3"), ("param", "a.b")))
    assert read_series('{__name__="loss"}') == ("loss", ())


@pytest.mark.parametrize("text", ["", "norm{", 'norm{a=~"b"}', "norm[5]", "norm offset 3", "1", '{a="b"}'])
def test_no_series(text):
    assert isinstance(read_series(text), Trouble)


def test_labels_of_samples():
    assert read_labels("{}") == read_labels("") == ()
    assert read_labels('{a="b"}') == (("a", "b"),)
    assert read_labels('norm{a="b"}') == (("__name__", "norm"), ("a", "b"))


@pytest.mark.parametrize(
    ("written", "step"), [(5, 5), ("5s", 5), ("2m", 120), ("1h1s", 3601), ("500ms", None), ("x", None)]
)
def test_steps(written, step):
    assert read_step(written) == step
