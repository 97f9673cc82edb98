"""`healthwatch captures` and `healthwatch capture` on what a run has left."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from capture_bench import Bench
from click.testing import CliRunner

from healthwatch.actions.captures.requests import folder_of
from healthwatch.cli import group
from healthwatch.recording import Recording


def run(*arguments: object) -> str:
    done = CliRunner().invoke(group, [str(each) for each in arguments])
    assert done.exit_code == 0, done.output
    return done.output


def failing(*arguments: object) -> str:
    command = [sys.executable, "-m", "healthwatch.cli", *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2, done.stdout
    return done.stderr


@pytest.fixture
def recording(tmp_path: Path) -> Recording:
    return Recording.create(tmp_path / "rank_0.sqlite", {"run": "test", "rank": 0})


@pytest.fixture
def output(tmp_path: Path, recording: Recording) -> Path:
    """A reference, a capture that two incidents share, and one that was refused."""
    bench = Bench(tmp_path, reference_at=5, max_captures=1)
    bench.captures.start(1)
    bench.run(1, 9)
    bench.alert(10)
    bench.run(10, 11)
    bench.alert(12, rule="Logits")
    bench.profiler.operator("Sort", ms=40.0)
    bench.run(12, 13)
    bench.settle(14)
    bench.alert(20)
    recording.keep(bench.captures.changed(), 20)
    return tmp_path


def listed(output: Path) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = json.loads(run("captures", output, "--output", "json"))
    return rows


def test_the_list_has_all_kinds_and_what_was_refused(output: Path, recording: Recording) -> None:
    recording.close()
    first, second, third = listed(output)
    assert (first["kind"], first["state"], first["incidents"]) == ("reference", "finished", [])
    assert (second["kind"], second["incidents"]) == ("incident", ["Spike@10", "Logits@12"])
    assert second["steps"] == {"first": 11, "last": 13, "recorded": 3}
    assert Path(second["trace"]).exists()
    assert (third["state"], third["incidents"], third["folder"]) == ("refused", ["Spike@20"], None)
    assert third["problem"] == "all 1 captures of this run are taken"
    assert run("captures", "-o", "json", output) == run("captures", output / "rank_0.sqlite", "--output", "json")


def test_the_list_as_text(output: Path, recording: Recording) -> None:
    recording.close()
    lines = run("captures", output).splitlines()
    assert [line.split()[:5] for line in lines] == [
        ["rank", "0", "steps", "5", "to"],
        ["rank", "0", "steps", "11", "to"],
        ["rank", "0", "step", "20", "refused"],
    ]
    assert "Spike@10, Logits@12: " in lines[1]
    assert lines[2].endswith("all 1 captures of this run are taken")


def test_a_run_without_captures(tmp_path: Path, recording: Recording) -> None:
    recording.close()
    assert run("captures", tmp_path) == "no captures\n"


def test_two_captures_compared(output: Path, recording: Recording) -> None:
    recording.close()
    reference, capture, _ = (row["folder"] for row in listed(output))
    first, second = json.loads(run("captures", "diff", capture, reference, "--output", "json"))
    assert (first["operator"], second["operator"]) == ("Sort", "MatMul")
    assert first["difference_ms"] == pytest.approx(40 / 3, abs=0.01)
    assert (first["a"]["steps"], first["b"]["steps"]) == (1, 0)
    (back, _) = json.loads(run("captures", "diff", reference, capture, "--output", "json"))
    assert back["difference_ms"] == -first["difference_ms"]
    assert "| Sort | 2 | +13.3 |" in run("captures", "diff", capture, reference)


def test_one_whose_times_are_gone_is_read_from_its_trace(output: Path, recording: Recording) -> None:
    recording.close()
    reference, capture = (Path(row["folder"]) for row in listed(output) if row["folder"])
    before = run("captures", "diff", capture, reference)
    (capture / "operators.json").unlink()
    assert run("captures", "diff", capture, reference) == before


def test_what_is_no_capture_cannot_be_compared(output: Path) -> None:
    assert "holds no capture" in failing("captures", "diff", output, output)
    (folder,) = (Path(row["folder"]) for row in listed(output) if row["kind"] == "reference")
    (folder / "operators.json").unlink()
    manifest = folder / "manifest.json"
    manifest.write_text(manifest.read_text().replace('"state": "finished"', '"state": "failed"'))
    assert "HW321" in failing("captures", "diff", folder, folder)


def test_no_run_no_captures(tmp_path: Path) -> None:
    assert "HW301" in failing("captures", tmp_path)


def test_a_request_names_steps_and_ranks(tmp_path: Path, recording: Recording) -> None:
    said = run("capture", tmp_path, "--steps", "4", "--rank", "1", "--rank", "3")
    assert "asked ranks 1, 3 for the next 4 steps" in said
    (file,) = folder_of(tmp_path).glob("*.json")
    assert json.loads(file.read_text()) == {"steps": 4, "ranks": [1, 3]}


def test_a_run_that_has_ended_is_not_asked(tmp_path: Path, recording: Recording) -> None:
    recording.close("end")
    assert "HW320" in failing("capture", tmp_path)
    assert not folder_of(tmp_path).exists()
