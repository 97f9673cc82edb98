"""A real training in which one operator becomes slow: a rule sees it, and the profile names the operator."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from cores import one_core

from healthwatch.cli import group

pytest.importorskip("mindspore", reason="needs the mindspore extra")
pytestmark = [pytest.mark.mindspore, pytest.mark.long]

REPOSITORY = Path(__file__).resolve().parents[2]
SLOW_FROM, STEPS = 22, 28
LIMIT = 600  # seconds, on a machine that does other things as well


def healthwatch(*arguments: str) -> str:
    done = CliRunner().invoke(group, arguments)
    assert done.exit_code == 0, done.output
    return done.output


@dataclass(frozen=True)
class Slow:
    """The finished training, and what the command said that asked it for a profile at step 3."""

    output: Path
    asked: str

    def listed(self) -> list[dict[str, Any]]:
        listed: list[dict[str, Any]] = json.loads(healthwatch("captures", str(self.output), "--output", "json"))
        return listed

    def capture(self, kind: str) -> dict[str, Any]:
        (found,) = (row for row in self.listed() if row["kind"] == kind)
        return found


@pytest.fixture(scope="module")
def slow(tmp_path_factory: pytest.TempPathFactory) -> Slow:
    folder = tmp_path_factory.mktemp("slow")
    options = ("--slow-from", SLOW_FROM, "--steps", STEPS, "--config", REPOSITORY / "examples/moe_pretrain/slow.yaml")
    output, asked = folder / "output" / "moe_slow", ""
    with one_core():
        training = subprocess.Popen(
            [sys.executable, "-m", "examples.moe_pretrain.train", *map(str, options)],
            cwd=folder,
            env={**os.environ, "PYTHONPATH": str(REPOSITORY), "PYTHONUNBUFFERED": "1"},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
    with training:
        assert training.stdout is not None
        printed = []
        for line in training.stdout:
            printed.append(line)
            if line.startswith("3 "):
                asked = healthwatch("capture", str(output), "--steps", "2")
        assert training.wait(LIMIT) == 0, "".join(printed)
    finished = Slow(output, asked)
    deadline = time.monotonic() + LIMIT
    while any(row["state"] == "finishing" for row in finished.listed()):
        assert time.monotonic() < deadline
        time.sleep(0.5)
    return finished


def operators(summary: str) -> list[list[str]]:
    """The rows of the operators' table, its head first."""
    table = summary.partition("## Operators")[2].split("\n\n")[1]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()]


def test_the_rule_sees_it_and_the_steps_after_are_profiled(slow: Slow) -> None:
    row = slow.capture("incident")
    assert (row["state"], row["incidents"]) == ("finished", [f"StepsStalling@{SLOW_FROM + 2}"]), row
    assert row["steps"] == {"first": SLOW_FROM + 3, "last": SLOW_FROM + 5, "recorded": 3}
    manifest = json.loads((Path(row["folder"]) / "manifest.json").read_text())
    assert manifest["incident"]["value"] >= 6
    assert manifest["incident"]["measured"] > manifest["incident"]["before"] > 0, "seconds a step, then and before"


def test_the_slow_operator_is_on_top_of_the_differences(slow: Slow) -> None:
    folder = Path(slow.capture("incident")["folder"])
    text = (folder / "summary.md").read_text("utf-8")
    head, _, first, *_ = operators(text)
    top = dict(zip(head, first, strict=True))
    assert top["operator"] == "Erfinv", text
    assert top["difference"].startswith("+")
    assert (top["here"] != "0", top["reference"]) == (True, "0")
    assert float(top["calls"].replace(",", "")) >= 2, "in each of two micro-batches"
    assert top["reference: calls"] == "0"
    assert (top["steps"], top["reference: steps"]) == ("3 of 3", "0 of 3")
    assert "healthy reference of steps 12 to 14, 3 steps." in text


def test_the_reference_is_healthy_and_was_taken_by_itself(slow: Slow) -> None:
    row = slow.capture("reference")
    manifest = json.loads((Path(row["folder"]) / "manifest.json").read_text())
    assert manifest["healthy"]
    assert row["steps"] == {"first": 12, "last": 14, "recorded": 3}


def test_two_captures_compared_say_the_same(slow: Slow) -> None:
    folders = [slow.capture(kind)["folder"] for kind in ("incident", "reference")]
    first, *_ = json.loads(healthwatch("captures", "diff", *folders, "--output", "json"))
    assert (first["operator"], first["b"]["steps"], first["a"]["steps"]) == ("Erfinv", 0, 3)
    assert operators(healthwatch("captures", "diff", *folders))[2][0] == "Erfinv"
    assert operators(healthwatch("captures", "diff", *reversed(folders)))[2][2].startswith("-")


def test_a_running_training_took_the_profile_that_it_was_asked_for(slow: Slow) -> None:
    assert slow.asked.startswith("asked rank 0 for the next 2 steps")
    row = slow.capture("request")
    assert (row["state"], row["steps"]["recorded"]) == ("finished", 2)
    assert 5 <= row["steps"]["first"] <= 10, "from the step after the one at which it was asked"


def test_nobody_can_be_asked_after_the_end(slow: Slow) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "healthwatch.cli", "capture", str(slow.output)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert "HW320" in done.stderr
