"""`healthwatch incidents`: what fires in a run that goes on no longer is not taken for news."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

import healthwatch
from healthwatch.cli import group

RULES = """
groups:
  - name: g
    rules: [{alert: LossHigh, expr: sum(loss) > 5, labels: {severity: critical}}]
"""
KILLED = """
import os, signal, sys, healthwatch
hw = healthwatch.load(sys.argv[1])
hw.step(9.0)
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.fixture
def config(tmp_path: Path) -> Path:
    (tmp_path / "rules.yaml").write_text(RULES, encoding="utf-8")
    section = {"output": str(tmp_path / "out"), "rules": ["rules.yaml"]}
    (tmp_path / "c.yaml").write_text(json.dumps({"healthwatch": section}), encoding="utf-8")
    return tmp_path / "c.yaml"


def shown(config: Path) -> list[str]:
    result = CliRunner().invoke(group, ["incidents", str(config.parent / "out")])
    assert result.exit_code == 0, result.output
    return result.output.splitlines()


def test_how_far_a_run_has_come_and_how_it_ended(config: Path) -> None:
    with healthwatch.load(config) as hw:
        hw.step(1.0)
        assert shown(config) == ["last step 1: no end recorded (still running, or killed)", "nothing happened"]
        hw.step(9.0)
    head, incident, told = shown(config)
    assert head.startswith("last step 2: finished 20")
    assert incident.startswith("LossHigh@2 (critical) firing, since step 2, ")
    assert incident.endswith(": 9"), "a sum has no labels"
    assert told == "    no receiver was told"


def fail(config: Path, error: BaseException) -> None:
    with healthwatch.load(config) as hw:
        hw.step(1.0)
        raise error


@pytest.mark.parametrize(
    ("error", "how"),
    [
        (ValueError("no"), "last step 2: failed with ValueError 20"),  # an error has a last frame of its own
        (KeyboardInterrupt(), "last step 1: stopped by KeyboardInterrupt 20"),
        (SystemExit(0), "last step 1: stopped by SystemExit 20"),
    ],
)
def test_what_ended_a_run_is_named(config: Path, error: BaseException, how: str) -> None:
    with pytest.raises(type(error)):
        fail(config, error)
    assert shown(config)[0].startswith(how)


def test_a_rule_that_stopped_the_training_is_named_as_such(config: Path) -> None:
    section = json.loads(config.read_text(encoding="utf-8"))
    section["healthwatch"]["escalation"] = {"critical": [{"stop": True}]}
    config.write_text(json.dumps(section), encoding="utf-8")
    hw = healthwatch.load(config)
    with pytest.raises(healthwatch.TrainingStopped):
        hw.step(9.0)
    hw.close()
    assert shown(config)[0].startswith("last step 1: stopped by a rule 20")


def test_a_killed_attempt_has_no_end_though_the_one_before_had(config: Path) -> None:
    with healthwatch.load(config) as hw:
        hw.step(1.0)
    ended = subprocess.run([sys.executable, "-c", KILLED, str(config)], check=False, timeout=300)
    assert ended.returncode == -signal.SIGKILL
    assert shown(config)[0] == "last step 1, attempt 2: no end recorded (still running, or killed)"
