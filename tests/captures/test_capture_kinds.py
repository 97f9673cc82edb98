"""What else is recorded beside incidents: the static window, the healthy reference, and what people ask for."""

from __future__ import annotations

import json
import time
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from capture_bench import Bench, incident, now

from healthwatch.actions.captures import reference
from healthwatch.actions.captures.requests import Requests, folder_of, put
from healthwatch.actions.captures.shelf import shelf
from healthwatch.actions.captures.window import StaticWindow, static_window
from healthwatch.actions.profile import State
from healthwatch.alerting.model import Now
from healthwatch.config import ProfilerSection


def windowed(tmp_path: Path, first: int = 5, last: int = 7, **limits: Any) -> Bench:
    return Bench(tmp_path, window=StaticWindow(first, last, tmp_path / "profile" / "rank_0"), **limits)


def manifests(tmp_path: Path) -> dict[str, dict[str, Any]]:
    return {one.folder.name: one.manifest for one in shelf(tmp_path / "captures" / "rank_0")}


def spans(tmp_path: Path) -> list[tuple[int, int]]:
    return sorted((one.steps for one in shelf(tmp_path / "captures" / "rank_0")), key=lambda span: span[0])


# The static window


@pytest.mark.row(90)
def test_the_static_window_records_its_steps_and_no_others(tmp_path: Path) -> None:
    bench = windowed(tmp_path)
    bench.captures.start(1)
    bench.run(1, 3)
    assert bench.profiler.calls == []
    bench.run(4, 4)
    assert bench.profiler.calls == ["start"]
    assert bench.profiler.steps == 3
    bench.run(5, 7)
    bench.settle(8)
    assert bench.profiler.calls == ["start", "step", "step", "step", "stop"]
    manifest = manifests(tmp_path)["window-5-7"]
    assert (manifest["kind"], manifest["state"], manifest["incident"]) == ("window", "finished", None)
    assert manifest["steps"] == {"first": 5, "last": 7, "recorded": 3}
    assert Path(manifest["trace"]) == tmp_path / "profile" / "rank_0" / "trace.json"


@pytest.mark.row(91)
def test_outside_the_window_nothing_is_called(tmp_path: Path) -> None:
    bench = windowed(tmp_path)
    bench.captures.start(1)
    bench.run(1, 8)
    calls = list(bench.profiler.calls)
    bench.run(9, 40)
    assert bench.profiler.calls == calls
    assert bench.told == []


@pytest.mark.row(93)
def test_a_window_from_step_1_on_is_open_before_step_1(tmp_path: Path) -> None:
    bench = windowed(tmp_path, 1, 2)
    bench.captures.start(1)
    assert bench.profiler.calls == ["start"]
    bench.run(1, 2)
    bench.settle(3)
    assert manifests(tmp_path)["window-1-2"]["steps"] == {"first": 1, "last": 2, "recorded": 2}


@pytest.mark.row(94)
@pytest.mark.parametrize(("first", "last"), [(5, 5), (5, 6), (2, 9)])
def test_end_minus_start_plus_one_steps(tmp_path: Path, first: int, last: int) -> None:
    bench = windowed(tmp_path, first, last)
    bench.captures.start(1)
    bench.run(1, 12)
    bench.settle(13)
    steps = manifests(tmp_path)[f"window-{first}-{last}"]["steps"]
    assert steps == {"first": first, "last": last, "recorded": last - first + 1}


def test_a_run_that_goes_on_inside_the_window_records_what_is_left(tmp_path: Path) -> None:
    bench = windowed(tmp_path)
    bench.captures.start(6)
    bench.run(6, 8)
    bench.settle(9)
    assert manifests(tmp_path)["window-5-7"]["steps"] == {"first": 6, "last": 7, "recorded": 2}


def test_a_run_that_goes_on_behind_the_window_says_so(tmp_path: Path) -> None:
    bench = windowed(tmp_path)
    bench.captures.start(101)
    bench.run(101, 120)
    assert bench.profiler.calls == []
    assert "lies before step 101" in bench.told[0][1]


def test_limits_of_captures_are_not_those_of_the_static_window(tmp_path: Path) -> None:
    bench = windowed(tmp_path, max_captures=0)
    bench.free = 0
    bench.captures.start(1)
    bench.run(1, 8)
    bench.settle(9)
    assert manifests(tmp_path)["window-5-7"]["state"] == "finished"


def test_a_window_that_cannot_start_is_told_once_and_training_goes_on(tmp_path: Path) -> None:
    bench = windowed(tmp_path)
    bench.profiler.start_raises = OSError("read-only")
    bench.captures.start(1)
    bench.run(1, 12)
    assert [part for part, _ in bench.told] == ["capture start"]
    assert bench.profiler.calls == ["start"]


@pytest.mark.row(96)
@pytest.mark.parametrize("rank", [0, 3])
def test_where_a_static_window_goes(tmp_path: Path, rank: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    section = ProfilerSection(enable_profiling=True, start_step=5, end_step=7)
    assert static_window(section, rank) == StaticWindow(5, 7, tmp_path / "profile" / f"rank_{rank}")
    there = static_window(replace(section, output_path="./output/profile"), rank)
    assert there is not None
    assert there.folder == Path("output/profile") / f"rank_{rank}"


@pytest.mark.row(89)
@pytest.mark.row(92)
@pytest.mark.row(97)
def test_on_which_ranks_there_is_a_static_window() -> None:
    on = ProfilerSection(enable_profiling=True, start_step=5, end_step=7)
    assert static_window(ProfilerSection(), 0) is None
    assert static_window(replace(on, enable_profiling=False, profiler_rank=(0,)), 0) is None
    assert all(static_window(on, rank) for rank in range(4)), "None is every rank"
    some = replace(on, profiler_rank=(0, 2))
    assert [static_window(some, rank) is not None for rank in range(4)] == [True, False, True, False]


# Never both at once


def test_a_capture_that_would_run_into_the_window_is_cut_short(tmp_path: Path) -> None:
    bench = windowed(tmp_path, 10, 12)
    bench.captures.start(1)
    bench.run(1, 6)
    bench.alert(7, steps=5)
    bench.run(7, 13)
    bench.settle(14)
    assert spans(tmp_path) == [(8, 9), (10, 12)]
    assert "cut short" in manifests(tmp_path)["Spike-7"]["remark"]
    assert {one["state"] for one in manifests(tmp_path).values()} == {"finished"}


@pytest.mark.parametrize("step", [9, 10, 11])
def test_an_incident_at_the_window_joins_it(tmp_path: Path, step: int) -> None:
    bench = windowed(tmp_path, 10, 12)
    bench.captures.start(1)
    bench.run(1, step - 1)
    note = bench.alert(step)
    assert note.incidents == (f"Spike@{step}",)
    bench.run(step, 13)
    bench.settle(14)
    (name,) = manifests(tmp_path)
    assert name == "window-10-12"
    assert bench.captures.notes[f"Spike@{step}"].trace == tmp_path / "profile" / "rank_0" / "trace.json"
    assert bench.profiler.calls.count("start") == 1


@pytest.mark.parametrize("asked", [2, *range(4, 13)])
def test_whenever_an_incident_comes_windows_never_overlap(tmp_path: Path, asked: int) -> None:
    bench = windowed(tmp_path, 8, 11, reference_at=6, max_captures=9)
    bench.captures.start(1)
    for step in range(1, 30):
        if step == asked:
            bench.alert(step, steps=4)
        bench.run(step, step, firing=step == asked)
    bench.settle(31)
    found = spans(tmp_path)
    assert (8, 11) in found
    assert all(one[1] < other[0] for one, other in pairwise(found)), found


# The healthy reference


def test_the_reference_is_taken_by_itself_and_counts_for_nothing(tmp_path: Path) -> None:
    bench = Bench(tmp_path, reference_at=20, max_captures=1, cooldown=500)
    bench.captures.start(1)
    bench.run(1, 23)
    bench.settle(24)
    manifest = manifests(tmp_path)["reference-19"]
    assert manifest["steps"] == {"first": 20, "last": 22, "recorded": 3}
    assert (manifest["kind"], manifest["healthy"]) == ("reference", True)
    assert bench.alert(25).state == "armed"
    bench.run(25, 100)
    assert bench.profiler.calls.count("start") == 2


def test_while_something_fires_there_is_no_reference(tmp_path: Path) -> None:
    bench = Bench(tmp_path, reference_at=20)
    bench.captures.start(1)
    bench.run(1, 18)
    bench.run(19, 30, firing=True)
    assert bench.profiler.calls == []
    bench.run(31, 36)
    bench.settle(37)
    assert spans(tmp_path) == [(32, 34)]


def test_a_reference_during_which_something_fires_is_taken_again(tmp_path: Path) -> None:
    bench = Bench(tmp_path, reference_at=20)
    bench.captures.start(1)
    bench.run(1, 20)
    bench.alert(21)
    bench.run(21, 22, firing=True)
    bench.settle(23)
    assert not manifests(tmp_path)["reference-19"]["healthy"]
    bench.run(24, 30)
    bench.settle(31)
    assert [one["healthy"] for one in manifests(tmp_path).values()] == [False, True]
    bench.run(32, 60)
    assert bench.profiler.calls.count("start") == 2


def test_a_run_that_never_gets_through_a_reference_gives_up(tmp_path: Path) -> None:
    bench = Bench(tmp_path, reference_at=20)
    bench.captures.start(1)
    bench.run(1, 19)
    for step in range(20, 200):
        bench.run(step, step, firing=step % 4 == 2)
        if step % 4 == 3:
            bench.settle(step)
    assert bench.profiler.calls.count("start") == reference.TRIES


def test_a_rank_that_captures_nothing_takes_no_reference(tmp_path: Path) -> None:
    bench = Bench(tmp_path, reference_at=20, ranks=(1, 2))
    bench.captures.start(1)
    bench.run(1, 60)
    assert bench.profiler.calls == []


# Ranks


@pytest.mark.row(107)
@pytest.mark.parametrize(
    ("ranks", "captured"),
    [(("culprit",), True), (("peers",), True), (("all",), True), ((0,), True), ((1, 2), False), ((1, "culprit"), True)],
)
def test_on_which_ranks_an_incident_is_captured(tmp_path: Path, ranks: tuple[Any, ...], captured: bool) -> None:
    note = Bench(tmp_path, ranks=ranks).alert(100)
    assert (note.refused is None) == captured
    if not captured:
        assert "ranks 1, 2 alone" in note.refused


# People


def test_what_a_person_asks_for_begins_with_the_next_step(tmp_path: Path) -> None:
    requests = Requests(tmp_path, 0, since=time.time())
    bench = Bench(tmp_path, requests=requests, max_captures=0, cooldown=500)
    bench.run(1, 6)
    put(tmp_path, 4, [0])
    bench.run(7, 12)
    bench.settle(13)
    manifest = manifests(tmp_path)["request-7"]
    assert (manifest["kind"], manifest["state"]) == ("request", "finished")
    assert manifest["steps"] == {"first": 8, "last": 11, "recorded": 4}


def test_a_request_during_a_capture_is_refused_aloud(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    bench.alert(1)
    bench.run(1, 2)
    note = bench.captures.ask(3, now(2))
    assert note is not None
    assert note.refused == "a profile is being recorded already"
    assert bench.told[0][0] == "capture refused: active"


def test_requests_are_read_once_by_each_rank_that_is_asked(tmp_path: Path) -> None:
    began = time.time()
    ranks = [Requests(tmp_path, rank, since=began) for rank in range(3)]
    assert [one.poll() for one in ranks] == [[], [], []]
    put(tmp_path, 3, [0, 2])
    put(tmp_path, 5, [2])
    assert [[request.steps for request in one.poll()] for one in ranks] == [[3], [], [3, 5]]
    assert [one.poll() for one in ranks] == [[], [], []]
    assert Requests(tmp_path, 0, since=time.time()).poll() == [], "asked of an earlier attempt"


@pytest.mark.parametrize(
    "text", ["", "{", "[]", '{"steps": "many", "ranks": [0]}', '{"steps": 0, "ranks": [0]}', "null"]
)
def test_a_file_that_is_no_request_is_passed_over(tmp_path: Path, text: str) -> None:
    requests = Requests(tmp_path, 0, since=0.0)
    folder_of(tmp_path).mkdir(parents=True)
    (folder_of(tmp_path) / f"{time.time_ns()}-1.json").write_text(text)
    (folder_of(tmp_path) / "notes.json").write_text('{"steps": 3, "ranks": [0]}')
    put(tmp_path, 2, [0])
    assert [one.steps for one in requests.poll()] == [2]


# The run goes on


def test_a_resumed_run_counts_the_captures_of_earlier_attempts(tmp_path: Path) -> None:
    first = Bench(tmp_path, max_captures=2, cooldown=50)
    first.alert(100)
    first.run(100, 103)
    first.settle(104)
    again = Bench(tmp_path, max_captures=2, cooldown=50)
    assert again.captures.notes["Spike@100"].trace is not None, "messages can still name it"
    assert again.captures.request(incident("Spike", 100), 3, now(110)) is None, "one capture an incident"
    assert "50 steps" in again.alert(120).refused
    assert again.alert(160).state == "armed"
    again.run(160, 163)
    again.settle(164)
    assert "all 2 captures" in Bench(tmp_path, max_captures=2, cooldown=50).alert(300).refused


def test_a_reference_of_an_earlier_attempt_is_still_one(tmp_path: Path) -> None:
    first = Bench(tmp_path, reference_at=20)
    first.captures.start(1)
    first.run(1, 23)
    first.settle(24)
    again = Bench(tmp_path, reference_at=20)
    again.captures.start(24)
    again.run(24, 80)
    assert again.profiler.calls == []


def test_what_a_killed_run_has_left_is_concluded(tmp_path: Path) -> None:
    killed = Bench(tmp_path)
    killed.profiler.analysed = False
    killed.alert(100)
    killed.run(100, 103)
    folder = killed.captures.notes["Spike@100"].folder
    armed = Bench(tmp_path)
    armed.alert(200)
    armed_folder = armed.captures.notes["Spike@200"].folder

    again = Bench(tmp_path)
    assert "ended before" in (again.captures.notes["Spike@200"].refused or "")
    assert json.loads((armed_folder / "manifest.json").read_text())["state"] == "failed"
    deadline = time.monotonic() + 20
    while (state := json.loads((folder / "manifest.json").read_text())["state"]) == "finishing":
        assert time.monotonic() < deadline
        time.sleep(0.05)
    assert state == "finished"
    assert again.captures.state is State.IDLE
    killed.profiler.analysed = True
    killed.captures.close(20)


def test_an_analysis_that_outlives_the_run_is_concluded_beside_it(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    bench.profiler.analysed = False
    bench.alert(100)
    bench.run(100, 103)
    bench.captures.close(timeout=0.05)
    deadline = time.monotonic() + 60
    while (state := manifests(tmp_path)["Spike-100"]["state"]) == "finishing":
        assert time.monotonic() < deadline
        time.sleep(0.1)
    assert state == "finished"
    assert (bench.captures.notes["Spike@100"].folder / "summary.md").exists(), "who is finished has been explained"
    bench.profiler.analysed = True


def test_an_incident_of_an_interrupted_capture_may_ask_again(tmp_path: Path) -> None:
    Bench(tmp_path).alert(200)
    again = Bench(tmp_path)
    note = again.captures.request(incident("Spike", 200), 3, Now(210, time.time(), 2))
    assert note is not None
    assert note.folder.name == "Spike-200-2"
