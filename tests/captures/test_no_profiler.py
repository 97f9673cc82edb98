"""A loop without a framework that has a profiler: whoever asks for a profile hears that there is none, and why."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

import healthwatch
from healthwatch.actions.captures.requests import put
from healthwatch.cli import group
from healthwatch.recording import Run

RULES = """
groups:
  - name: g
    rules: [{alert: LossHigh, expr: loss > 5, labels: {severity: critical}, annotations: {action: look}}]
"""
WHY = "there is no profiler here: no model of a framework that has one is attached"


@pytest.fixture
def config(tmp_path: Path) -> Path:
    (tmp_path / "rules.yaml").write_text(RULES, "utf-8")
    return tmp_path / "train.yaml"


def written(config: Path, ladder: list[dict[str, Any]], **more: Any) -> Path:
    section = {"run": "plain", "output": str(config.parent / "output"), "rules": ["rules.yaml"]}
    section |= {"escalation": {"critical": ladder}, "receivers": {"a": {"urls": ["json://127.0.0.1:9/"]}}}
    profiler = {"profiler": more.pop("profiler", {})}
    config.write_text(yaml.safe_dump({"healthwatch": {**section, **more}, **profiler}), "utf-8")
    return config


def remarks(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.message for record in caplog.records if "profile" in record.message]


def test_a_ladder_that_asks_for_a_profile(config: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Once in the log, in the message, and in what `captures` lists."""
    caplog.set_level(logging.INFO, "healthwatch")
    with healthwatch.load(written(config, [{"profile": {"steps": 2}}, {"notify": "a"}])) as hw:
        hw.attach()
        assert remarks(caplog) == ["no profiler here: ladders that ask for a profile get none"]
        for loss in (1.0, 9.0, 1.0, 9.0, 1.0):
            hw.step(loss)
        assert remarks(caplog) == ["no profiler here: ladders that ask for a profile get none"]
    output = config.parent / "output"
    with Run.open(output) as run:
        bodies = {each.notice.reason: each.notice.body for each in run.pending()}
    assert f"\n- No profile: {WHY}\n" in bodies["opened"]
    listed = json.loads(CliRunner().invoke(group, ["captures", str(output), "--output", "json"]).stdout)
    assert [(each["incidents"], each["state"], each["problem"]) for each in listed] == [
        (["LossHigh@2"], "refused", WHY),
        (["LossHigh@4"], "refused", WHY),
    ]
    assert not (output / "captures").exists()


def test_all_that_asks_in_vain_is_said_at_the_start(config: Path, caplog: pytest.LogCaptureFixture) -> None:
    window = {"enable_profiling": True, "start_step": 2, "end_step": 3}
    with healthwatch.load(written(config, [{"log": "error"}], capture={"reference_at": 2}, profiler=window)) as hw:
        for _ in range(5):
            hw.step(1.0)
    said = "no profiler here: there is no healthy reference, the window of the profiler section is not recorded"
    assert remarks(caplog) == [said]
    with Run.open(config.parent / "output") as run:
        assert run.captures() == []


def test_nobody_asks(config: Path, caplog: pytest.LogCaptureFixture) -> None:
    with healthwatch.load(written(config, [{"log": "error"}])) as hw:
        hw.step(1.0)
    assert remarks(caplog) == []


def test_a_person_who_asks_is_answered(config: Path, caplog: pytest.LogCaptureFixture) -> None:
    with healthwatch.load(written(config, [{"log": "error"}])) as hw:
        hw.step(1.0)
        put(config.parent / "output", 3, [0])
        hw.step(1.0)
    assert remarks(caplog)[0] == f"request@2 is not profiled: {WHY} (told once)"
    with Run.open(config.parent / "output") as run:
        assert [(each["kind"], each["refused"]) for each in run.captures()] == [("request", WHY)]
