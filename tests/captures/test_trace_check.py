"""Traces whole, cut, empty and foreign."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from healthwatch.actions.captures import trace as trace_module
from healthwatch.actions.captures.trace import check_trace, read_aside, read_trace

BOUNDARIES = (100.0, 101.0, 102.0, 103.0)


def operator(at: float, **more: Any) -> dict[str, Any]:
    return {"ph": "X", "name": "MatMul", "ts": f"{at * 1e6:.3f}", "dur": "12.5", "args": {}, **more}


GOOD = [{"ph": "M", "name": "process_name"}, operator(100.5), operator(101.0), operator(101.9), operator(102.1)]


def write(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "trace_view.json"
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize("indent", [None, 2])
def test_operators_are_counted_by_step(tmp_path: Path, indent: int | None) -> None:
    check = check_trace(write(tmp_path, json.dumps(GOOD, indent=indent)), BOUNDARIES)
    assert check.whole
    assert (check.events, check.operators) == (5, (1, 2, 1))
    assert check.size == (tmp_path / "trace_view.json").stat().st_size


def test_an_object_with_trace_events_is_read_as_well(tmp_path: Path) -> None:
    assert check_trace(write(tmp_path, json.dumps({"traceEvents": GOOD})), BOUNDARIES).operators == (1, 2, 1)


def test_a_child_process_finds_the_same(tmp_path: Path) -> None:
    path = write(tmp_path, json.dumps(GOOD))
    assert read_aside(path, BOUNDARIES) == read_trace(path, BOUNDARIES)
    path.write_text(json.dumps(GOOD)[:-3])
    assert read_aside(path, BOUNDARIES) == read_trace(path, BOUNDARIES)


def test_operators_outside_the_window_do_not_count(tmp_path: Path) -> None:
    early_and_late = [operator(99.9), operator(103.0), operator(200.0)]
    assert check_trace(write(tmp_path, json.dumps(GOOD + early_and_late)), BOUNDARIES).operators == (1, 2, 1)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "not whole"),
        ("{}", "no list of events"),
        ("[1, 2", "no end"),
        (json.dumps(GOOD) + "x", "something follows"),
        (json.dumps(GOOD)[:-1], "no end"),
        ("[]", "no operators in step 1, 2, 3"),
        (json.dumps(GOOD[:-1]), "no operators in step 3"),
        ('[{"ph": "X", "ts": "now"}]', "not whole"),
    ],
)
def test_what_is_wrong_is_said(tmp_path: Path, text: str, problem: str) -> None:
    check = check_trace(write(tmp_path, text), BOUNDARIES)
    assert not check.whole
    assert problem in (check.problem or "")


def test_a_missing_file(tmp_path: Path) -> None:
    check = check_trace(tmp_path / "nothing.json", BOUNDARIES)
    assert (check.size, check.whole) == (0, False)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=6,
)


@settings(max_examples=60, deadline=None)
@given(events=st.lists(json_values, max_size=8), chunk=st.integers(1, 40), indent=st.sampled_from([None, 1]))
def test_reading_in_pieces_is_reading_at_once(events: list[Any], chunk: int, indent: int | None) -> None:
    import io

    text = json.dumps(events, indent=indent)
    kept, trace_module._CHUNK = trace_module._CHUNK, chunk
    try:
        assert list(trace_module._events(io.StringIO(text))) == events
        with pytest.raises(ValueError, match=r"."):
            list(trace_module._events(io.StringIO(text[:-1])))
    finally:
        trace_module._CHUNK = kept
