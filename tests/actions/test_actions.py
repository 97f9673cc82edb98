"""Built-in and foreign actions through one door; stop and command."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

import pytest
import yaml

import healthwatch
from healthwatch.actions import action
from healthwatch.actions.command import Commands
from healthwatch.diagnostics import Invalid
from healthwatch.recording import Run

RULES = """
groups:
  - name: losses
    rules:
      - alert: LossHigh
        expr: loss > 5
        labels: {severity: critical}
        annotations: {summary: "the loss is {{ $value }}", action: "look"}
"""


@pytest.fixture
def session_of(tmp_path):
    def open_(*ladder, **more):
        (tmp_path / "rules.yaml").write_text(RULES)
        section = {"run": "r", "output": str(tmp_path / "output"), "rules": ["rules.yaml"], **more}
        config = tmp_path / "train.yaml"
        config.write_text(yaml.safe_dump({"healthwatch": {**section, "escalation": {"critical": list(ladder)}}}))
        return healthwatch.load(config)

    return open_


def program(tmp_path: Path, text: str) -> str:
    path = tmp_path / "program"
    path.write_text(f"#!{sys.executable}\n{text}\n")
    path.chmod(0o755)
    return str(path)


def wait_for(done, seconds=20.0):
    end = time.monotonic() + seconds
    while not done():
        assert time.monotonic() < end
        time.sleep(0.01)


def test_stop_ends_the_training_at_the_step_boundary(session_of, tmp_path):
    steps: list[int] = []
    hw = session_of({"stop": True, "after": 2})

    def loop() -> None:
        with hw:
            for step in range(1, 100):
                hw.step(9.0 if step >= 5 else 2.0)
                steps.append(step)

    with pytest.raises(healthwatch.TrainingStopped, match="LossHigh") as stopped:
        loop()
    assert isinstance(stopped.value, SystemExit)
    assert steps[-1] == 6
    with Run.open(tmp_path / "output") as run:
        assert run.steps == (1, 7), "the step itself is recorded"
        assert run.attempts()[0].reason == "stopped"
    hw.step(1.0)  # a loop that goes on all the same is no longer watched


@pytest.mark.parametrize("ladder", [({"stop": False},), ({"log": "error"},)])
def test_nobody_is_stopped_who_did_not_ask_for_it(session_of, ladder):
    with session_of(*ladder) as hw:
        for _ in range(5):
            hw.step(9.0)


def test_a_dry_run_stops_nothing(session_of, tmp_path):
    marker = tmp_path / "ran"
    command = {"command": [program(tmp_path, f"open({str(marker)!r}, 'w')")]}
    with session_of({"stop": True}, command, dry_run=True) as hw:
        hw.step(9.0)
        hw.step(9.0)
    assert not marker.exists()
    assert hw.guard.failures == {"stop": 1, "command": 1}


def test_a_command_gets_the_incident_and_no_step_waits(session_of, tmp_path):
    out = tmp_path / "out $(touch pwned) ; x"
    stepped = tmp_path / "stepped"
    slow = program(
        tmp_path,
        "import os, sys, time\n"
        f"while not os.path.exists({str(stepped)!r}): time.sleep(0.01)\n"
        "open(sys.argv[1], 'w').write(sys.stdin.read())",
    )
    with session_of({"command": [slow, str(out)]}, {"command": [slow, str(out) + "2"], "when_state": "resolved"}) as hw:
        hw.step(2.0)
        hw.step(9.0)
        stepped.touch()
        hw.step(2.0)
        wait_for(Path(str(out) + "2").exists)
    told = json.loads(out.read_text())
    assert (told["run"], told["rank"], told["state"], told["now"]["step"]) == ("r", 0, "firing", 2)
    assert told["incident"]["id"] == "LossHigh@2"
    assert told["incident"]["firing"][0]["value"] == 9.0
    assert json.loads(Path(str(out) + "2").read_text())["state"] == "resolved"
    assert not (tmp_path / "pwned").exists()
    assert not hw.guard.failures


def test_a_command_has_a_time_limit_and_its_children_go_with_it(session_of, tmp_path):
    child = tmp_path / "child"
    text = "import subprocess, sys, time\np = subprocess.Popen(['sleep', '60'])\n"
    text += f"open({str(child)!r}, 'w').write(str(p.pid))\ntime.sleep(60)"
    with session_of({"command": {"run": [program(tmp_path, text)], "timeout": "2s"}}) as hw:
        hw.step(9.0)
        wait_for(lambda: hw.guard.failures["command"])
    pid = int(child.read_text())

    def gone():
        try:
            return Path(f"/proc/{pid}/stat").read_text().split()[2] == "Z"
        except FileNotFoundError:
            return True

    wait_for(gone)


def test_a_command_that_fails_is_told_once(session_of, tmp_path, caplog):
    with session_of({"command": [program(tmp_path, "raise SystemExit(3)")], "repeat": 1}) as hw:
        for _ in range(3):
            hw.step(9.0)
    assert hw.guard.failures["command"] == 3
    assert caplog.text.count("exit code 3") == 1


@pytest.mark.parametrize(
    ("argument", "problem"),
    [
        ("no-such-program-here", "there is no program"),
        ([], "name a program"),
        ({"run": ["true"], "timeout": "20"}, "timeout"),
        ({"run": ["true"], "timeout": 5}, "timeout"),
        (["true", ""], "name a program"),
        (["true", "x"], ""),
        ({"run": "true", "timeout": "20s"}, ""),
    ],
)
def test_arguments_of_a_command(argument, problem):
    assert problem in Commands.check(argument)
    assert bool(problem) == bool(Commands.check(argument))


def test_a_program_that_is_not_there_is_refused_before_step_1(session_of):
    with pytest.raises(Invalid, match=r'HW604.*ladder "critical": command: there is no program ./no-such') as refused:
        session_of({"log": "error"}, {"command": ["./no-such", "--token", "t0ken"]})
    (found,) = refused.value.diagnostics
    config = Path(found.span.file).read_text().splitlines()
    assert config[found.span.line - 1][found.span.column - 1 :].startswith("- ./no-such")
    assert "t0ken" not in str(refused.value)


PLUG_IN = """
class Light:
    order = None
    def check(self, argument):
        return "" if argument in ("red", "green") else f"there is no colour {argument}"
    def open(self, site):
        self.site, self.seen = site, []
        return self
    def perform(self, intent):
        self.seen.append((intent.argument, intent.reason, intent.incidents[0].id))
        if intent.reason == "repeat":
            raise RuntimeError("burnt out")
    def close(self, timeout):
        self.seen.append("closed")
LIGHT = Light()
"""


@pytest.fixture
def light(tmp_path, monkeypatch):
    """An installed distribution that offers the action `light`."""
    site = tmp_path / "site"
    info = site / "light-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: light\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[healthwatch.actions]\nlight = lightplug:LIGHT\nstop = lightplug:LIGHT\n")
    (site / "lightplug.py").write_text(PLUG_IN)
    monkeypatch.syspath_prepend(str(site))
    from healthwatch.config.escalation import plug_ins

    plug_ins.cache_clear()
    yield
    plug_ins.cache_clear()
    sys.modules.pop("lightplug", None)


@pytest.mark.usefixtures("light")
def test_a_plug_ins_action_comes_through_the_same_door(session_of):
    with session_of({"light": "red", "repeat": 2}) as hw:
        for _ in range(4):
            hw.step(9.0)
    import lightplug

    assert lightplug.LIGHT.seen == [("red", "opened", "LossHigh@1"), ("red", "repeat", "LossHigh@1"), "closed"]
    assert hw.guard.failures == {"light": 1}


@pytest.mark.usefixtures("light")
def test_a_plug_in_refuses_its_argument_and_takes_over_no_built_in(session_of):
    with pytest.raises(Invalid, match="there is no colour blue"):
        session_of({"light": "blue"})
    assert type(action.find("stop")).__name__ == "_Stop"


def test_an_action_that_nobody_offers_is_an_unknown_key(session_of):
    with pytest.raises(Invalid, match="HW007"):
        session_of({"light": "red"})


def test_every_built_in_action_is_an_entry_point():
    from importlib.metadata import entry_points

    offered = {entry.name: entry.value for entry in entry_points(group="healthwatch.actions")}
    if not offered:
        pytest.skip("healthwatch is not installed here")
    assert offered == {entry.name: entry.value for entry in action.BUILTIN}
