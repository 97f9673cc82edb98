"""What is left to do once a trace is there, whoever does it: the training, one that goes on, processes of their own."""

from __future__ import annotations

import json
import multiprocessing
import time
from pathlib import Path
from typing import Any

import pytest
from capture_bench import Bench

from healthwatch.actions.captures import afterwards
from healthwatch.actions.captures.afterwards import UNWRITTEN, conclude, interrupt
from healthwatch.actions.captures.shelf import shelf
from healthwatch.actions.captures.window import StaticWindow

PATTERN = "trace.json"
COMPARED = "Compared with the healthy reference of steps 20 to 22"


def root(tmp_path: Path) -> Path:
    return tmp_path / "captures" / "rank_0"


def manifests(tmp_path: Path) -> dict[str, dict[str, Any]]:
    return {one.folder.name: one.manifest for one in shelf(root(tmp_path))}


def summary(tmp_path: Path, name: str) -> str:
    return (root(tmp_path) / name / "summary.md").read_text()


def wait_until_over(tmp_path: Path) -> None:
    deadline = time.monotonic() + 60
    while any(one["state"] == "finishing" for one in manifests(tmp_path).values()):
        assert time.monotonic() < deadline
        time.sleep(0.05)


@pytest.fixture
def left(tmp_path: Path):
    """A run that ends before any of its three captures is analysed: the reference and two incidents."""
    bench = Bench(tmp_path, reference_at=20, max_captures=9)
    bench.profiler.analysed = False
    bench.captures.start(1)
    bench.run(1, 23)
    for step in (30, 40):
        bench.alert(step)
        bench.run(step, step + 3)
    while bench.captures._endings.stopping:
        time.sleep(0.01)
    yield bench
    for each in bench.captures._endings._under_way:
        each.given_up = True
    bench.profiler.analysed = True


@pytest.mark.usefixtures("left")
@pytest.mark.parametrize("order", [("reference-19", "Spike-30"), ("Spike-30", "reference-19")])
def test_a_reference_analysed_after_the_run_is_one_all_the_same(tmp_path: Path, order: tuple[str, str]) -> None:
    for name in order:
        assert manifests(tmp_path)[name]["state"] == "finishing"
        assert conclude(root(tmp_path) / name, PATTERN)
    assert manifests(tmp_path)["reference-19"]["healthy"]
    assert COMPARED in summary(tmp_path, "Spike-30")


@pytest.mark.usefixtures("left")
def test_a_reference_that_failed_is_none(tmp_path: Path) -> None:
    one = next(one for one in shelf(root(tmp_path)) if one.kind == "reference")
    assert one.healthy
    assert not interrupt(one).healthy
    assert not manifests(tmp_path)["reference-19"]["healthy"]


def _conclude(folder: Path, barrier: Any) -> None:
    looked = afterwards.read_aside

    def read(*arguments: Any) -> Any:
        found = looked(*arguments)
        barrier.wait(60)  # what comes now is written by all at once
        return found

    afterwards.read_aside = read
    conclude(folder, PATTERN)


@pytest.mark.usefixtures("left")
@pytest.mark.parametrize("names", [("reference-19",) * 3, ("reference-19", "Spike-30", "Spike-40")])
def test_processes_that_conclude_at_once_take_turns(tmp_path: Path, names: tuple[str, ...]) -> None:
    context = multiprocessing.get_context("spawn")  # a fork would inherit locks of threads that it does not have
    barrier = context.Barrier(len(names))
    processes = [context.Process(target=_conclude, args=(root(tmp_path) / name, barrier)) for name in names]
    for process in processes:
        process.start()
    for process in processes:
        process.join(60)
    assert [process.exitcode for process in processes] == [0] * len(names)
    for name in set(names):
        manifest = json.loads((root(tmp_path) / name / "manifest.json").read_text())
        assert (manifest["state"], manifest["remark"]) == ("finished", None)
        assert manifest["stop_seconds"] is not None
        json.loads((root(tmp_path) / name / "operators.json").read_text())
        assert (COMPARED in summary(tmp_path, name)) == (name != "reference-19")
    assert not list(root(tmp_path).rglob("*.tmp"))


@pytest.mark.usefixtures("left")
def test_a_neighbour_that_cannot_be_written_is_no_matter_of_the_reference(tmp_path: Path) -> None:
    for name in ("Spike-30", "Spike-40"):
        conclude(root(tmp_path) / name, PATTERN)
    (root(tmp_path) / "Spike-30" / "summary.md").unlink()
    (root(tmp_path) / "Spike-30" / "summary.md").mkdir()
    conclude(root(tmp_path) / "reference-19", PATTERN)
    assert COMPARED in summary(tmp_path, "Spike-40")
    assert (root(tmp_path) / "reference-19" / "summary.md").exists()
    assert manifests(tmp_path)["reference-19"]["remark"] is None


@pytest.mark.usefixtures("left")
def test_a_summary_that_was_written_after_all_does_not_say_that_it_could_not(tmp_path: Path) -> None:
    page = root(tmp_path) / "Spike-30" / "summary.md"
    page.mkdir()
    conclude(page.parent, PATTERN)
    assert manifests(tmp_path)["Spike-30"]["state"] == "finished", "a capture without a summary is one all the same"
    assert str(manifests(tmp_path)["Spike-30"]["remark"]).startswith(UNWRITTEN)
    page.rmdir()
    conclude(root(tmp_path) / "reference-19", PATTERN)
    assert COMPARED in page.read_text()
    assert UNWRITTEN not in page.read_text()
    assert manifests(tmp_path)["Spike-30"]["remark"] is None


def test_a_summary_names_its_trace_and_a_manifest_is_whole_once_it_is_finished(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    bench.alert(3)
    bench.run(3, 6)
    bench.settle(7)
    assert "- Trace: `trace.json`" in summary(tmp_path, "Spike-3")
    manifest = manifests(tmp_path)["Spike-3"]
    assert manifest["state"] == "finished"
    assert all(manifest[name] is not None for name in ("trace", "check", "size", "stop_seconds"))


def test_a_manifest_with_odd_fields_harms_no_other_capture(tmp_path: Path) -> None:
    bench = Bench(tmp_path, reference_at=20, max_captures=9)
    bench.captures.start(1)
    for step in (3, 10):
        bench.alert(step)
        bench.run(step, step + 3)
        bench.settle(step + 4)
    labels, asked = (manifests(tmp_path)[name] for name in ("Spike-3", "Spike-10"))
    labels["incident"]["labels"] = ["a"]
    asked.update(boundaries=[], asked="x")
    for name, odd in (("Spike-3", labels), ("Spike-10", asked)):
        (root(tmp_path) / name / "manifest.json").write_text(json.dumps(odd))
    bench.run(19, 22)
    bench.settle(23)
    assert manifests(tmp_path)["reference-19"]["state"] == "finished"
    assert Bench(tmp_path).captures.notes["Spike@3"].state == "finished"


def test_another_runs_captures_are_not_compared(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    bench.alert(3)
    bench.run(3, 6)
    bench.settle(7)
    page = root(tmp_path) / "Spike-3" / "manifest.json"
    page.write_text(json.dumps({**json.loads(page.read_text()), "run": "another"}))
    later = Bench(tmp_path, reference_at=20)
    later.captures.start(8)
    later.run(8, 23)
    later.settle(24)
    assert manifests(tmp_path)["reference-19"]["healthy"]
    assert "There is no healthy reference of this run" in summary(tmp_path, "Spike-3")


def test_of_a_window_nothing_had_begun(tmp_path: Path) -> None:
    bench = Bench(tmp_path, window=StaticWindow(5, 7, tmp_path / "profile" / "rank_0"), reference_at=20)
    bench.captures.start(1)
    bench.run(1, 8)
    bench.settle(9)
    bench.run(10, 23)
    bench.settle(24)
    assert f"{COMPARED}, 3 steps; it was taken later." in summary(tmp_path, "window-5-7")


# A run that goes on


@pytest.mark.usefixtures("left")
def test_an_analysis_that_is_still_at_work_when_the_run_goes_on_is_waited_for(tmp_path: Path) -> None:
    trace = root(tmp_path) / "reference-19" / "trace.json"
    whole = trace.read_text()
    trace.write_text(whole[: len(whole) // 2])
    again = Bench(tmp_path, reference_at=20)
    again.captures.start(44)
    again.run(44, 80)
    assert again.profiler.calls == [], "the reference is there, but for its analysis"
    assert manifests(tmp_path)["reference-19"]["state"] == "finishing"
    trace.write_text(whole)
    wait_until_over(tmp_path)
    assert {one["state"] for one in manifests(tmp_path).values()} == {"finished"}
    again.run(81, 120)
    assert again.profiler.calls == []


@pytest.mark.usefixtures("left")
def test_a_reference_whose_trace_never_comes_is_taken_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(afterwards, "LIMIT", 0.0)
    (root(tmp_path) / "reference-19" / "trace.json").unlink()
    again = Bench(tmp_path, reference_at=20)
    again.captures.start(44)
    wait_until_over(tmp_path)
    deadline = time.monotonic() + 60
    while again.captures._reference.under_way:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    again.run(44, 80)
    assert again.profiler.calls[:1] == ["start"]


def test_what_cannot_be_written_is_told_and_stops_nobody(tmp_path: Path) -> None:
    Bench(tmp_path).alert(200)
    manifest = root(tmp_path) / "Spike-200" / "manifest.json"
    before = manifest.read_text()

    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("healthwatch.actions.captures.shelf.write_json", full)
        again = Bench(tmp_path)
    assert [part for part, _ in again.told] == ["capture manifest"]
    assert "No space left" in again.told[0][1]
    assert again.captures.notes["Spike@200"].state == "failed"
    assert manifest.read_text() == before
