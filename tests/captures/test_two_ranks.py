"""Two ranks under `msrun`: the static window on the one that the section names, a capture on the one that saw it."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from ranks import LIMIT, two_ranks

from healthwatch.cli import group

pytest.importorskip("mindspore", reason="needs the mindspore extra")
pytestmark = [pytest.mark.mindspore, pytest.mark.long]

PROGRAM = Path(__file__).with_name("two_ranks_training.py")
OVER = "the training is over"  # what each rank says last
RULES = """
groups:
  - name: test
    rules:
      - alert: LossLeaps
        expr: loss > 50
        labels: {severity: critical}
"""
CONFIG = """
healthwatch:
  run: two-ranks
  output: OUTPUT
  rules: [rules.yaml]
  escalation:
    critical:
      - log: error
      - profile: {steps: 3}
  capture: {cooldown: 0, min_free_disk: 0}
profiler: {enable_profiling: true, start_step: 3, end_step: 4, profiler_rank: [1], output_path: PROFILE}
"""


@dataclass(frozen=True)
class Training:
    folder: Path

    @property
    def profile(self) -> Path:
        return self.folder / "profile"

    def captures(self, rank: int) -> list[dict[str, Any]]:
        listed = CliRunner().invoke(group, ["captures", str(self.folder / "out"), "--output", "json"])
        assert listed.exit_code == 0, listed.output
        return [row for row in json.loads(listed.output) if row["rank"] == rank]


@pytest.fixture(scope="module")
def training(tmp_path_factory: pytest.TempPathFactory) -> Training:
    found = Training(tmp_path_factory.mktemp("ranks"))
    config = found.folder / "train.yaml"
    (found.folder / "rules.yaml").write_text(RULES)
    config.write_text(CONFIG.replace("OUTPUT", str(found.folder / "out")).replace("PROFILE", str(found.profile)))
    done = two_ranks(found.folder, PROGRAM, config)
    ended = [OVER in log.read_text(errors="replace") for log in (found.folder / "log").glob("worker_*")]
    assert ended == [True, True], done.stderr[-2000:] + done.stdout  # MindSpore may crash as it leaves its cluster
    deadline = time.monotonic() + LIMIT
    while any(row["state"] == "finishing" for rank in (0, 1) for row in found.captures(rank)):
        assert time.monotonic() < deadline
        time.sleep(0.5)
    return found


@pytest.mark.row(89)
@pytest.mark.row(97)
@pytest.mark.row(105)
def test_the_static_window_is_recorded_on_the_named_rank_alone(training: Training) -> None:
    assert [folder.name for folder in training.profile.iterdir()] == ["rank_1"]
    (window,) = (row for row in training.captures(1) if row["kind"] == "window")
    assert window["steps"] == {"first": 3, "last": 4, "recorded": 2}
    assert window["state"] == "finished", window
    assert Path(window["trace"]).is_relative_to(training.profile / "rank_1")
    assert all(row["kind"] != "window" for row in training.captures(0))


def test_the_rank_that_saw_the_incident_captures_it(training: Training) -> None:
    (capture,) = training.captures(0)
    assert capture["incidents"] == ["LossLeaps@8"]
    assert capture["steps"] == {"first": 9, "last": 11, "recorded": 3}
    assert capture["state"] == "finished", capture
    assert Path(capture["trace"]).is_relative_to(training.folder / "out" / "captures" / "rank_0")
    events = json.loads(Path(capture["trace"]).read_text("utf-8"))
    assert any("Adam" in event["name"] for event in events)
    assert [row["kind"] for row in training.captures(1)] == ["window"], "rank 1 saw nothing"
