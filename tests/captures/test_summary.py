"""Where the time of a trace went, and the page that compares two."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from capture_bench import Bench
from hypothesis import given
from hypothesis import strategies as st

from healthwatch.actions.captures.shelf import healthy_reference, shelf, stored
from healthwatch.actions.captures.summary import differences, tables
from healthwatch.actions.captures.trace import Breakdown, Share, read_trace

BEGIN = 1_795_986_375.0


def event(name: str, begin_ms: float, ms: float, pid: int = 2, tid: int = 0) -> dict[str, Any]:
    return {
        "ph": "X",
        "name": name,
        "pid": pid,
        "tid": tid,
        "ts": f"{BEGIN * 1e6 + begin_ms * 1e3:.3f}",
        "dur": f"{ms * 1e3:.3f}",
    }


def track(name: str, pid: int) -> dict[str, Any]:
    return {"ph": "M", "name": "process_name", "pid": pid, "args": {"name": name}}


def breakdown(tmp_path: Path, events: list[dict[str, Any]], ends_ms: tuple[float, ...] = (100.0, 200.0)) -> Breakdown:
    path = tmp_path / "trace.json"
    path.write_text(json.dumps(events))
    return read_trace(path, (BEGIN, *(BEGIN + end / 1e3 for end in ends_ms)))[1]


def by_name(found: Breakdown) -> dict[str, tuple[float, ...]]:
    return {one.name: tuple(round(ms, 2) for ms in one.ms) for one in found.shares}


def test_times_are_added_up_by_type_and_step(tmp_path: Path) -> None:
    events = [
        track("CPU OP", 2),
        event("Default/layer/MatMul-op1", 10, 5),
        event("MatMul", 20, 7),
        event("Default/TopK-op0", 30, 2),
        event("MatMul", 150, 4),
    ]
    found = breakdown(tmp_path, events)
    assert by_name(found) == {"MatMul": (12.0, 4.0), "TopK": (2.0, 0.0)}
    assert found.shares[0].calls == (2, 1)
    assert {one.track for one in found.shares} == {"CPU OP"}
    assert found.step_ms == (100.0, 100.0)


def test_an_operator_is_not_charged_with_what_runs_inside_it(tmp_path: Path) -> None:
    events = [
        event("Outer", 10, 50),
        event("Inner", 20, 10),
        event("Innermost", 22, 3),
        event("Inner", 40, 5),
        event("Behind", 60, 8),
    ]
    assert by_name(breakdown(tmp_path, events)) == {
        "Outer": (35.0, 0.0),
        "Inner": (12.0, 0.0),
        "Innermost": (3.0, 0.0),
        "Behind": (8.0, 0.0),
    }


def test_threads_do_not_lie_within_each_other(tmp_path: Path) -> None:
    found = breakdown(tmp_path, [event("A", 10, 50, tid=0), event("B", 20, 10, tid=1)])
    assert by_name(found) == {"A": (50.0, 0.0), "B": (10.0, 0.0)}
    assert found.busy[0].ms == (50.0, 0.0), "together they run for 50 ms"


def test_derived_tracks_are_left_out_wherever_they_are_named(tmp_path: Path) -> None:
    events = [event("Default", 0, 200, pid=3), event("MatMul", 10, 5), track("CPU OP", 2), track("Scope Layer", 3)]
    found = breakdown(tmp_path, events)
    assert by_name(found) == {"MatMul": (5.0, 0.0)}
    assert [one.track for one in found.busy] == ["CPU OP"]


def test_what_runs_on_over_the_end_of_a_step_is_busy_in_both(tmp_path: Path) -> None:
    found = breakdown(tmp_path, [event("A", 90, 30), event("B", 95, 5), event("C", 300, 5)])
    assert tuple(round(ms, 1) for ms in found.busy[0].ms) == (10.0, 20.0)


spans = st.lists(st.tuples(st.integers(0, 299), st.integers(0, 60)), max_size=30)


@given(spans=spans)
def test_busy_time_is_that_of_every_millisecond_looked_at(tmp_path_factory: pytest.TempPathFactory, spans: Any) -> None:
    path = tmp_path_factory.mktemp("busy")
    events = [event("A", begin, length, tid=place) for place, (begin, length) in enumerate(spans)]
    found = breakdown(path, events, (100.0, 200.0))
    taken = {ms for begin, length in spans for ms in range(begin, begin + length)}
    expected = [sum(ms // 100 == step for ms in taken) for step in range(2)]
    busy = found.busy[0].ms if found.busy else (0.0, 0.0)
    assert [round(ms, 1) for ms in busy] == pytest.approx(expected, abs=0.2)


def test_the_largest_difference_comes_first_whichever_way_it_goes() -> None:
    here = Breakdown((10.0, 10.0), (Share("CPU", "A", (5.0, 5.0), (1, 1)), Share("CPU", "New", (2.0, 0.0), (1, 0))))
    there = Breakdown((9.0,), (Share("CPU", "A", (4.5,), (1,)), Share("CPU", "Gone", (3.0,), (2,))))
    found = differences(here, there)
    assert [(one.name, one.ms) for one in found] == [("Gone", -3.0), ("New", 1.0), ("A", 0.5)]
    assert [one.measured.steps for one in found] == [0, 1, 2]
    text = "\n".join(tables(here, there, "here", "reference"))
    assert "| New | CPU | +1 | 1 (0 to 2) | 0 | 0.5 | 0 | 1 of 2 | 0 of 1 |" in text


def test_without_a_reference_the_page_says_how_to_get_one(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    bench.alert(100)
    bench.run(100, 103)
    bench.settle(104)
    text = (bench.captures.notes["Spike@100"].folder / "summary.md").read_text()
    assert "reference_at: STEP" in text
    assert "| MatMul | 2 |" in text
    assert "Spike@100 (critical), since step 99, told at step 100; value +Inf on layer=1, param=w" in text


def with_reference(tmp_path: Path) -> Bench:
    bench = Bench(tmp_path, reference_at=20)
    bench.captures.start(1)
    bench.run(1, 23)
    bench.settle(24)
    return bench


def test_a_reference_that_came_too_late_is_named_as_one(tmp_path: Path) -> None:
    bench = with_reference(tmp_path)  # taken now; the incidents of this bench are since 1970
    bench.alert(30)
    bench.run(30, 33)
    bench.settle(34)
    text = (bench.captures.notes["Spike@30"].folder / "summary.md").read_text()
    assert "healthy reference of steps 20 to 22, 3 steps; it was taken when this had begun already" in text


def test_the_last_reference_before_the_breach_is_taken(tmp_path: Path) -> None:
    with_reference(tmp_path)
    folder = tmp_path / "captures" / "rank_0"
    (found,) = shelf(folder)
    later = found.boundaries[-1] + 1
    assert healthy_reference([found], before=later) == (found, True)
    assert healthy_reference([found], before=found.boundaries[0]) == (found, False)
    assert healthy_reference([], before=later) is None
    spoilt = found.amend(healthy=False)
    assert healthy_reference([spoilt], before=later) is None


@pytest.mark.parametrize("text", ["", "{}", "[]", '{"state": 3}', '{"state": "armed", "joined": [1], "steps": {}}'])
def test_a_folder_with_a_broken_manifest_is_no_capture(tmp_path: Path, text: str) -> None:
    (tmp_path / "manifest.json").write_text(text)
    assert stored(tmp_path) is None
    assert stored(tmp_path / "nothing") is None
