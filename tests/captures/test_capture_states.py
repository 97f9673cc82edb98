"""The states of a capture, with a profiler that fails on purpose (the real one is in test_mindspore_profiler)."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import Any

import pytest
from capture_bench import GIB, Bench, incident, now

from healthwatch.actions.profile import State


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


def test_the_next_three_steps_are_recorded_and_the_trace_is_checked(bench: Bench) -> None:
    note = bench.alert(100)
    assert (note.first_step, note.last_step, note.trace, note.refused) == (101, 103, None, None)
    assert bench.manifest("Spike@100")["state"] == "armed"
    assert bench.captures.state is State.ARMED
    bench.captures.step_end(100)
    assert bench.captures.state is State.RECORDING
    assert bench.manifest("Spike@100")["state"] == "recording"
    bench.run(101, 103)
    bench.settle(104)
    assert bench.captures.state is State.IDLE
    assert bench.profiler.calls == ["start", "step", "step", "step", "stop"]
    done = bench.captures.notes["Spike@100"]
    assert (done.state, done.first_step, done.last_step, done.refused) == ("finished", 101, 103, None)
    assert done.trace is not None
    assert done.trace.exists()
    manifest = bench.manifest("Spike@100")
    assert manifest["check"]["operators"] == [1, 1, 1]
    assert manifest["steps"] == {"first": 101, "last": 103, "recorded": 3}
    assert manifest["config_digest"] == "abc"
    assert manifest["incident"]["labels"] == {"layer": "1", "param": "w"}
    assert manifest["incident"]["value"] == "+Inf"
    assert manifest["size"] > 0
    assert bench.told == []


def test_every_change_of_a_capture_is_handed_out_once(bench: Bench) -> None:
    def states() -> list[str]:
        return [note.state for note in bench.captures.changed()]

    bench.alert(100)
    assert states() == ["armed"]
    bench.captures.step_end(100)
    assert states() == ["recording"]
    bench.run(101, 102)
    assert states() == []
    bench.run(103, 103)
    bench.settle(104)
    assert states()[-1] == "finished"
    assert states() == []


def test_case_067_second_start_failed_start_and_a_stop_that_hangs(bench: Bench) -> None:
    profiler, captures = bench.profiler, bench.captures
    assert bench.alert(100).state == "armed"
    bench.run(100, 102)
    joined = bench.alert(102, rule="Logits")
    assert joined.incidents == ("Spike@100", "Logits@102")
    bench.run(103, 103)
    bench.settle(104)

    profiler.start_raises = OSError("path not writable")
    bench.alert(110)
    bench.run(110, 110)
    assert captures.state is State.IDLE
    assert captures.notes["Spike@110"].refused == "the profiler did not start: path not writable"
    assert len(bench.told) == 1
    profiler.start_raises = None

    bench.free = 20 * GIB
    assert "20.0 GiB are free" in bench.alert(120).refused
    bench.run(120, 120)
    bench.free = 100 * GIB

    assert bench.alert(130).state == "armed"
    bench.run(130, 132)
    profiler.stop_blocks.clear()
    started = time.monotonic()
    bench.run(133, 133)
    assert time.monotonic() - started < 5, "the step waited for a stop that hangs"
    assert captures.state is State.FINISHING
    time.sleep(bench.stop_limit * 2)
    bench.run(134, 134)
    assert captures.state is State.FAILED
    assert "hanging" in (captures.notes["Spike@130"].refused or "")
    assert bench.manifest("Spike@130")["state"] == "failed"

    assert "all 2 captures" in bench.alert(140).refused
    bench.run(140, 145)
    captures.close()
    assert profiler.calls.count("start") == 3
    assert profiler.calls.count("stop") == 2
    profiler.stop_blocks.set()


def test_after_a_stop_that_hangs_nothing_is_started_again(tmp_path: Path) -> None:
    bench = Bench(tmp_path, max_captures=5)
    bench.profiler.stop_blocks.clear()
    bench.alert(1, steps=1)
    bench.run(1, 2)
    time.sleep(bench.stop_limit * 2)
    bench.run(3, 3)
    assert "never ended" in bench.alert(4).refused
    bench.run(4, 9)
    bench.profiler.stop_blocks.set()
    assert bench.profiler.calls.count("start") == bench.profiler.calls.count("stop") == 1


def test_one_capture_an_incident(bench: Bench) -> None:
    bench.alert(100)
    assert bench.captures.request(incident("Spike", 100), 3, now(101)) is None
    bench.run(100, 103)
    bench.settle(104)
    assert bench.captures.request(incident("Spike", 100), 3, now(110)) is None
    bench.run(110, 115)
    assert bench.profiler.calls.count("start") == 1


def test_incidents_join_while_armed_and_while_recording(bench: Bench) -> None:
    bench.alert(100)
    bench.alert(100, rule="Loss")
    bench.captures.step_end(100)
    bench.run(101, 101)
    bench.alert(102, rule="Logits")
    bench.run(102, 103)
    bench.settle(104)
    assert [each["id"] for each in bench.manifest("Spike@100")["joined"]] == ["Loss@100", "Logits@102"]
    for one in ("Spike@100", "Loss@100", "Logits@102"):
        assert bench.captures.notes[one].trace is not None
        assert bench.captures.notes[one].state == "finished"


def test_cooldown_counts_from_the_last_recorded_step(tmp_path: Path) -> None:
    bench = Bench(tmp_path, cooldown=50, max_captures=9)
    bench.alert(100)
    bench.run(100, 103)
    bench.settle(104)
    assert "50 steps" in bench.alert(152).refused
    assert bench.alert(153).state == "armed"


def test_cooldown_of_a_run_that_went_back(tmp_path: Path) -> None:
    bench = Bench(tmp_path, cooldown=50, max_captures=9)
    bench.alert(100)
    bench.run(100, 103)
    bench.settle(104)
    assert bench.alert(20).refused
    assert bench.alert(69).state == "armed"


def test_all_captures_together_have_a_limit(tmp_path: Path) -> None:
    old = tmp_path / "captures" / "rank_0" / "Old-1"
    old.mkdir(parents=True)
    (old / "trace.json").write_bytes(bytes(2000))
    bench = Bench(tmp_path, max_total_size=2000)
    assert "allowed" in bench.alert(1).refused
    assert [part for part, _ in bench.told] == ["capture refused: max_total_size"]


def test_another_profiler_is_left_alone_and_training_goes_on(bench: Bench) -> None:
    bench.profiler.others_active = True
    note = bench.alert(100)
    assert note.state == "refused"
    assert note.refused == "another profiler is active in this process"
    bench.run(100, 110)
    assert bench.profiler.calls == []
    assert not note.folder.exists()


def test_a_refusal_is_told_for_an_incident_once(bench: Bench) -> None:
    bench.profiler.others_active = True
    assert bench.alert(100) is not None
    assert bench.captures.request(incident("Spike", 100), 3, now(150)) is None
    assert len(bench.told) == 1
    bench.profiler.others_active = False
    assert bench.captures.request(incident("Spike", 100), 3, now(200)).state == "armed"


def test_a_step_that_raises_ends_the_window_and_keeps_what_there_is(bench: Bench) -> None:
    bench.alert(100)
    bench.run(100, 101)
    bench.profiler.step_raises = RuntimeError("lost the device")
    bench.run(102, 102)
    bench.settle(103)
    assert bench.captures.state is State.IDLE
    assert bench.profiler.calls[-1] == "stop"
    assert bench.manifest("Spike@100")["steps"]["recorded"] == 2
    assert any("lost the device" in message for _, message in bench.told)


@pytest.mark.parametrize(
    ("break_it", "problem"),
    [
        ({"stop_raises": RuntimeError("another profiler was set up")}, "another profiler was set up"),
        ({"analysis_raises": RuntimeError("no trace")}, "no trace"),
        ({"spoil": "]"}, "not whole"),
    ],
)
def test_a_trace_that_is_not_right_is_never_announced(bench: Bench, break_it: dict[str, Any], problem: str) -> None:
    for name, value in break_it.items():
        setattr(bench.profiler, name, value)
    bench.alert(100)
    bench.run(100, 103)
    bench.settle(104)
    note = bench.captures.notes["Spike@100"]
    assert note.state == "failed"
    assert note.trace is None
    assert problem in (note.refused or "")
    assert bench.manifest("Spike@100")["problem"] == note.refused
    assert bench.captures.state is State.IDLE
    assert [part for part, _ in bench.told] == ["capture"]


def test_a_step_without_operators_is_found(bench: Bench) -> None:
    bench.alert(100)
    bench.run(100, 101)
    bench.captures.step_end(102)
    bench.run(103, 103)
    bench.settle(104)
    assert bench.captures.notes["Spike@100"].refused == "no operators in step 2 of the window"


def test_the_end_of_the_run_keeps_what_was_recorded(bench: Bench) -> None:
    bench.alert(100, steps=5)
    bench.run(100, 102)
    bench.captures.close()
    bench.captures.close()
    note = bench.captures.notes["Spike@100"]
    assert (note.state, note.first_step, note.last_step) == ("finished", 101, 102)
    assert bench.profiler.calls.count("stop") == 1
    assert bench.alert(110) is None


def test_the_end_of_the_run_before_the_window(bench: Bench) -> None:
    bench.alert(100)
    bench.captures.close()
    assert bench.captures.notes["Spike@100"].state == "cancelled"
    assert bench.manifest("Spike@100")["state"] == "cancelled"
    assert bench.profiler.calls == []


def test_an_analysis_that_outlives_the_run(bench: Bench) -> None:
    bench.profiler.analysed = False
    bench.alert(100)
    bench.run(100, 103)
    bench.captures.close(timeout=0.2)
    assert bench.captures.notes["Spike@100"].state == "finishing"
    assert bench.told == []
    bench.profiler.analysed = True
    assert bench.captures._endings._under_way[0].done.wait(20)
    assert bench.manifest("Spike@100")["state"] == "finished"


def test_a_stop_that_must_stay_on_the_training_thread(bench: Bench) -> None:
    bench.profiler.concurrent_stop = False
    stopped_on: list[threading.Thread] = []
    stop = bench.profiler.stop

    def watched() -> None:
        stopped_on.append(threading.current_thread())
        stop()

    bench.profiler.stop = watched  # type: ignore[method-assign]
    bench.alert(100)
    bench.run(100, 103)
    assert stopped_on == [threading.current_thread()]
    bench.settle(104)
    assert bench.captures.notes["Spike@100"].state == "finished"
    assert bench.manifest("Spike@100")["stop_seconds"] >= 0


def test_a_folder_that_an_earlier_run_has_left_is_not_written_into(tmp_path: Path) -> None:
    left = tmp_path / "captures" / "rank_0" / "Spike-100"
    left.mkdir(parents=True)
    bench = Bench(tmp_path)
    assert bench.alert(100).folder.name == "Spike-100-2"
    assert list(left.iterdir()) == []


def test_a_folder_that_cannot_be_made_is_refused(tmp_path: Path) -> None:
    (tmp_path / "captures").write_text("a file where the folder should be")
    bench = Bench(tmp_path)
    assert "can't be written" in bench.alert(100).refused
    bench.run(100, 105)
    assert bench.profiler.calls == []


def test_after_the_last_step_nobody_gets_a_profile(bench: Bench) -> None:
    bench.alert(100)
    bench.captures.no_more()
    assert bench.manifest("Spike@100")["state"] == "cancelled"
    assert bench.alert(101, rule="Logits").refused == "no step comes after it"
    assert bench.profiler.calls == []


def test_a_profile_under_way_is_joined_and_kept_to_the_end(bench: Bench) -> None:
    bench.alert(100)
    bench.run(100, 101)
    bench.captures.no_more()
    assert bench.alert(102, rule="Logits").incidents == ("Spike@100", "Logits@102")
    bench.captures.close()
    assert bench.captures.notes["Logits@102"].state == "finished"
