"""MindSpore's own profiler on the CPU, armed in the middle of a training."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from healthwatch.actions.profile import Captures
from healthwatch.alerting.model import Incident, Now, Sample
from healthwatch.config import CaptureSettings, ProfilerSection

mindspore = pytest.importorskip("mindspore", reason="needs the mindspore extra")
pytestmark = [pytest.mark.mindspore, pytest.mark.long]

from mindspore import Tensor, nn  # noqa: E402
from mindspore.profiler import profile, schedule, tensorboard_trace_handler  # noqa: E402
from mindspore.profiler.profiler_interface import ProfilerInterface  # noqa: E402

from healthwatch.integrations.mindspore.profiler import MindSporeProfiler, ProfilerError, arguments  # noqa: E402

CPU = mindspore.profiler.ProfilerActivity.CPU
PATIENCE = 600.0  # seconds for an analysis, which a busy machine may take over a minute for


class Training:
    """A small network really trained; `step` is one optimizer step."""

    def __init__(self) -> None:
        mindspore.runtime.launch_blocking()
        layers = [layer for _ in range(3) for layer in (nn.Dense(16, 16), nn.ReLU())]
        self.net = nn.SequentialCell([*layers, nn.Dense(16, 1)])
        self.optimizer = nn.Adam(self.net.trainable_params(), 1e-3)
        self.forward_backward = mindspore.value_and_grad(
            lambda x, y: ((self.net(x) - y) ** 2).mean(), None, self.net.trainable_params()
        )
        rng = np.random.default_rng(0)
        self.batch = [Tensor(rng.normal(size=shape).astype(np.float32)) for shape in ((8, 16), (8, 1))]
        self.loss = float("nan")

    def step(self) -> None:
        loss, grads = self.forward_backward(*self.batch)
        self.optimizer(grads)
        self.loss = float(loss)


@pytest.fixture(scope="module")
def training() -> Training:
    training = Training()
    training.step()
    return training


@pytest.fixture(autouse=True)
def _nobody_records_before_or_after() -> Iterator[None]:
    assert not ProfilerInterface.is_initialized
    yield
    assert not ProfilerInterface.is_initialized


@pytest.fixture
def told() -> list[tuple[str, str]]:
    return []


@pytest.fixture
def captures(tmp_path: Path, told: list[tuple[str, str]]) -> Captures:
    profiler = MindSporeProfiler()
    profiler.prepare()
    return Captures(
        profiler,
        CaptureSettings(max_captures=9, cooldown=0, min_free_disk=0),
        tmp_path / "captures" / "rank_0",
        {"run": "test", "rank": 0, "config_digest": "0"},
        ProfilerSection(with_stack=False),
        lambda part, message: told.append((part, message)),
    )


def ask(captures: Captures, step: int, steps: int = 3) -> Any:
    at = Now(step, time.time())
    sample = Sample((("param", "w"),), 9.0)
    incident = Incident(f"Spike@{step}", "Spike", "critical", at, at, 1, (sample,), 1, 1)
    return captures.request(incident, steps, at)


def run(training: Training, captures: Captures, first: int, last: int) -> None:
    for step in range(first, last + 1):
        training.step()
        captures.step_end(step)


def operators(folder: Path) -> int:
    """Complete events of the one trace below a folder, which must be whole JSON."""
    (trace,) = folder.rglob("trace_view.json")
    return sum(event.get("ph") == "X" for event in json.loads(trace.read_text()))


def wait_for_analyses() -> None:
    from mindspore.profiler.common.process_pool import MultiProcessPool

    MultiProcessPool().wait_all_job_finished()


def own_profile(folder: Path, **more: Any) -> Any:
    """A profiler as a user sets it up."""
    ready = tensorboard_trace_handler(str(folder), async_mode=True)
    return profile(activities=[CPU], on_trace_ready=ready, **more)


def test_three_steps_give_a_whole_trace_with_operators(
    training: Training, captures: Captures, told: list[tuple[str, str]]
) -> None:
    assert ask(captures, 4).state == "armed"
    run(training, captures, 4, 7)
    captures.close(timeout=PATIENCE)
    note = captures.notes["Spike@4"]
    assert (note.state, note.first_step, note.last_step) == ("finished", 5, 7), note
    assert note.trace is not None
    manifest = json.loads((note.folder / "manifest.json").read_text())
    per_step = manifest["check"]["operators"]
    assert len(per_step) == 3
    assert min(per_step) >= 14, "7 layers forward and backward make at least 14 operators a step"
    assert max(per_step) - min(per_step) <= 2, "each step runs the same operators"
    names = {event["name"] for event in json.loads(note.trace.read_text())}
    assert any("Adam" in name for name in names)
    assert told == []


def test_windows_one_after_the_other_each_with_a_trace_of_its_own(training: Training, captures: Captures) -> None:
    counts = []
    for step in (10, 20, 30):
        ask(captures, step, steps=2)
        run(training, captures, step, step + 5)
        assert captures.notes[f"Spike@{step}"].state == "finishing", "no step waits for an analysis"
    captures.close(timeout=PATIENCE)
    for step in (10, 20, 30):
        note = captures.notes[f"Spike@{step}"]
        assert note.state == "finished", note
        counts.append(operators(note.folder))
    assert max(counts) - min(counts) <= 2


def test_an_active_profiler_survives_and_the_capture_is_refused(
    training: Training, captures: Captures, told: list[tuple[str, str]], tmp_path: Path
) -> None:
    theirs = own_profile(tmp_path / "theirs", schedule=schedule(wait=0, warmup=0, active=4, repeat=1))
    training.step()
    theirs.step()
    note = ask(captures, 2)
    assert note.refused == "another profiler is active in this process"
    for step in range(2, 6):
        training.step()
        captures.step_end(step)
        theirs.step()
    theirs.stop()
    captures.close()
    wait_for_analyses()
    assert operators(tmp_path / "theirs") >= 4 * 14
    assert [part for part, _ in told] == ["capture refused: busy"]
    assert not note.folder.exists()


def test_a_profiler_that_waits_for_its_turn_is_seen(training: Training, captures: Captures, tmp_path: Path) -> None:
    theirs = own_profile(tmp_path / "theirs", schedule=schedule(wait=4, warmup=0, active=2, repeat=1))
    assert not ProfilerInterface.is_initialized
    assert ask(captures, 1).refused
    for step in range(1, 7):
        training.step()
        captures.step_end(step)
        theirs.step()
    theirs.stop()
    wait_for_analyses()
    assert operators(tmp_path / "theirs") >= 2 * 14
    assert ask(captures, 8).state == "armed", "theirs has finished"
    run(training, captures, 8, 11)
    captures.close(timeout=PATIENCE)
    assert captures.notes["Spike@8"].state == "finished"


def test_a_profiler_that_will_record_much_later_gets_its_own_folder_back(
    training: Training, captures: Captures, tmp_path: Path
) -> None:
    theirs = own_profile(tmp_path / "theirs", schedule=schedule(wait=12, warmup=0, active=2, repeat=1))
    assert ask(captures, 1, steps=2).state == "armed"
    for step in range(1, 15):
        training.step()
        captures.step_end(step)
        theirs.step()
    theirs.stop()
    captures.close(timeout=PATIENCE)
    wait_for_analyses()
    assert captures.notes["Spike@1"].state == "finished"
    ours = operators(captures.notes["Spike@1"].folder)
    assert ours >= 2 * 14
    assert abs(operators(tmp_path / "theirs") - ours) <= 2, "two steps each"


def test_one_set_up_before_and_started_after_a_capture_is_whole(
    training: Training, captures: Captures, tmp_path: Path
) -> None:
    theirs = own_profile(
        tmp_path / "theirs", start_profile=False, schedule=schedule(wait=0, warmup=0, active=2, repeat=1)
    )
    ask(captures, 1)
    run(training, captures, 1, 4)
    theirs.start()
    for _ in range(2):
        training.step()
        theirs.step()
    theirs.stop()
    captures.close(timeout=PATIENCE)
    wait_for_analyses()
    assert captures.notes["Spike@1"].state == "finished"
    assert operators(tmp_path / "theirs") >= 2 * 14


def test_one_set_up_inside_a_window_gets_it(
    training: Training, captures: Captures, tmp_path: Path, told: list[tuple[str, str]]
) -> None:
    ask(captures, 1, steps=6)
    run(training, captures, 1, 2)
    theirs = own_profile(tmp_path / "theirs", schedule=schedule(wait=0, warmup=0, active=4, repeat=1))
    for step in range(3, 7):
        training.step()
        captures.step_end(step)
        theirs.step()
    theirs.stop()
    captures.close(timeout=PATIENCE)
    wait_for_analyses()
    assert operators(tmp_path / "theirs") >= 3 * 14, "theirs records from the step at which it was noticed"
    note = captures.notes["Spike@1"]
    assert (note.state, note.first_step, note.last_step) == ("finished", 2, 3), note
    assert [part for part, _ in told] == ["capture step"]


def test_one_set_up_before_and_started_inside_a_window_gets_it(
    training: Training, captures: Captures, tmp_path: Path, told: list[tuple[str, str]]
) -> None:
    theirs = own_profile(
        tmp_path / "theirs", start_profile=False, schedule=schedule(wait=0, warmup=0, active=3, repeat=1)
    )
    ask(captures, 1, steps=6)
    run(training, captures, 1, 2)
    theirs.start()
    for step in range(3, 6):
        training.step()
        captures.step_end(step)
        theirs.step()
    theirs.stop()
    captures.close(timeout=PATIENCE)
    wait_for_analyses()
    assert operators(tmp_path / "theirs") >= 2 * 14
    assert told[0][0] == "capture step"


def test_a_start_that_fails_silently_is_noticed(training: Training) -> None:
    profiler = MindSporeProfiler()
    with pytest.raises(ProfilerError, match="did not start"):
        profiler.start(Path("/proc/1/healthwatch"), 3, ProfilerSection())
    training.step()
    assert not profiler.busy(3)


def test_a_path_that_mindspore_refuses_is_said_before_anything_is_constructed(
    training: Training, tmp_path: Path
) -> None:
    profiler = MindSporeProfiler()
    with pytest.raises(ProfilerError, match="takes no path like"):
        profiler.start(tmp_path / "lr=0.1", 3, ProfilerSection())


@pytest.mark.row(100)
def test_memory_recording_does_not_stick(training: Training, tmp_path: Path) -> None:
    for name, memory in (("with", True), ("without", False)):
        profiler = MindSporeProfiler()
        profiler.start(tmp_path / name, 1, ProfilerSection(profile_memory=memory))
        training.step()
        profiler.step()
        profiler.stop()
        while (trace := profiler.trace(tmp_path / name)) is None:
            time.sleep(0.1)
        assert trace.is_relative_to(tmp_path / name)
        assert operators(tmp_path / name) >= 14
    assert not list((tmp_path / "without").rglob("*memory_record*"))


def test_an_analysis_can_be_ended_and_then_there_is_no_trace(training: Training, tmp_path: Path) -> None:
    profiler = MindSporeProfiler()
    profiler.start(tmp_path / "window", 1, ProfilerSection())
    training.step()
    profiler.step()
    profiler.stop()
    assert profiler.trace(tmp_path / "window") is None
    profiler.abandon(tmp_path / "window")
    with pytest.raises(ProfilerError, match="without a trace"):
        profiler.trace(tmp_path / "window")


def test_the_end_of_the_run_inside_a_window_keeps_it(training: Training, captures: Captures) -> None:
    ask(captures, 1, steps=5)
    run(training, captures, 1, 3)
    captures.close(timeout=PATIENCE)
    note = captures.notes["Spike@1"]
    assert (note.state, note.first_step, note.last_step) == ("finished", 2, 3), note
    assert operators(note.folder) >= 2 * 14


def test_preparing_looks_through_no_folder_and_leaves_the_environment_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from mindspore.profiler.common import path_manager, profiler_info

    walked: list[str] = []
    walk = path_manager.PathManager.walk_with_depth
    monkeypatch.setattr(
        path_manager.PathManager, "walk_with_depth", lambda path, **more: walked.append(path) or walk(path, **more)
    )
    monkeypatch.delenv("ASCEND_HOME_PATH", raising=False)
    monkeypatch.setattr(profiler_info.ProfilerInfo, "_instance", {})
    MindSporeProfiler().prepare()
    assert walked == [os.devnull]
    assert "ASCEND_HOME_PATH" not in os.environ
    assert profiler_info.ProfilerInfo._instance != {}


@pytest.mark.row(99)
@pytest.mark.row(102)
def test_the_section_reaches_mindspore(training: Training, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given: dict[str, Any] = {}
    construct = mindspore.profiler.profile

    def spy(**arguments: Any) -> Any:
        given.update(arguments)
        return construct(**arguments)

    monkeypatch.setattr(mindspore.profiler, "profile", spy)
    profiler = MindSporeProfiler()
    profiler.start(tmp_path / "window", 2, ProfilerSection(profiler_level=1, mstx=True, with_stack=True))
    for _ in range(2):
        training.step()
        profiler.step()
    profiler.stop()
    config = given["experimental_config"]
    assert (config.profiler_level.name, config.mstx, given["with_stack"]) == ("Level1", True, True)
    assert given["activities"] == [CPU]
    assert not given["profile_memory"]
    actions = [given["schedule"](step).name for step in range(3)]
    assert actions == ["RECORD", "RECORD_AND_SAVE", "NONE"]


def test_the_section_as_arguments_of_mindspore() -> None:
    from mindspore.profiler import ProfilerActivity, ProfilerLevel

    section = ProfilerSection(profiler_level=2, mstx=True, profile_memory=True, with_stack=True, profile_cpu=False)
    asked = arguments(section, "Ascend")
    assert asked["activities"] == [ProfilerActivity.NPU]
    assert (asked["with_stack"], asked["profile_memory"]) == (True, True)
    assert asked["experimental_config"].profiler_level is ProfilerLevel.Level2
    assert asked["experimental_config"].mstx is True
    assert arguments(section, "CPU")["activities"] == [ProfilerActivity.CPU]
    assert arguments(ProfilerSection(), "Ascend")["activities"] == [ProfilerActivity.CPU, ProfilerActivity.NPU]
    odd = arguments(ProfilerSection(profiler_level=7), "Ascend")
    assert odd["experimental_config"].profiler_level is ProfilerLevel.LevelNone
