"""A replay says what the live run said, from its samples alone."""

from __future__ import annotations

import json
import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from healthwatch.cli import group
from healthwatch.cli.replay import listen, transition_line
from healthwatch.diagnostics import Invalid, errors
from healthwatch.recording import Run
from healthwatch.replay import load_replay

pytestmark = pytest.mark.long


@pytest.fixture
def samples_alone(recorded, tmp_path) -> Path:
    """A copy of the run without anything that was said about it."""
    shutil.copytree(recorded.folder, tmp_path / "run")
    connection = sqlite3.connect(tmp_path / "run" / "rank_0.sqlite")
    for table in ("changes", "incidents", "captures", "outbox"):
        connection.execute(f"DELETE FROM {table}")
    connection.commit()
    connection.close()
    return tmp_path / "run"


def live(recorded) -> list[str]:
    with Run.open(recorded.folder) as run:
        return [repr(found) for found in run.transitions()]


def replayed(folder, **options) -> list[str]:
    return [repr(found) for found in listen(load_replay(folder, **options)).transitions]


def test_every_pack_found_its_fault(recorded):
    with Run.open(recorded.folder) as run:
        fired = {found.rule for found in run.transitions() if found.reason == "fired"}
        reasons = {found.reason for found in run.transitions()}
        packs = {Path(rules["source"].removeprefix("builtin:")).name for rules in run.meta["rules"]}
    assert len(packs) == 4
    assert len(fired) >= 6
    assert {"fired", "resolved"} <= reasons


def test_a_replay_says_exactly_what_the_live_run_said(recorded, samples_alone):
    assert replayed(samples_alone) == live(recorded)


def test_the_packs_as_they_are_now_say_the_same(recorded, samples_alone):
    packs = [f"builtin:{pack}" for pack in ("loss", "gradients", "moe", "attention")]
    assert replayed(samples_alone, sources=packs) == live(recorded)


def test_a_changed_parameter_changes_what_it_says(recorded, samples_alone):
    rule, name, value = _some_threshold(recorded)
    said = replayed(samples_alone, params={rule: {name: value * 1e6}})
    assert not [line for line in said if f"rule='{rule}'" in line]
    assert [line for line in live(recorded) if f"rule='{rule}'" not in line] == said


def _some_threshold(recorded) -> tuple[str, str, float]:
    """A parameter of a rule on attention logits that fired; raising it silences the rule."""
    with Run.open(recorded.folder) as run:
        fired = {found.rule for found in run.transitions() if found.reason == "fired"}
    for rule in load_replay(recorded.folder).rules:
        if rule.name in fired and "Attention" in rule.name:
            name, value = next(iter(rule.params.items()))
            return rule.name, name, value
    raise LookupError("no rule on attention logits has fired")


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"LossSpiek": {"ratio": 2.0}}, 'no rule is called "LossSpiek"'),
        ({"LossSpike": {"no": 1.0}}, 'no parameter "no"'),
    ],
)
def test_a_parameter_that_no_rule_has_is_refused(samples_alone, params, message):
    with pytest.raises(Invalid, match=message):
        load_replay(samples_alone, params=params)


@pytest.mark.parametrize("sources", [(), ("builtin:loss",)])
def test_what_a_parameter_brings_about_is_told_of_the_parameter(samples_alone, sources):
    with pytest.raises(Invalid) as refused:
        load_replay(samples_alone, sources, params={"LossSpike": {"window": -5.0}})
    found = errors(refused.value.diagnostics)
    assert found
    assert all(each.message.startswith("with LossSpike.window = -5: ") and each.span is None for each in found)


def test_a_run_of_no_rules_needs_some(samples_alone):
    connection = sqlite3.connect(samples_alone / "rank_0.sqlite")
    connection.execute("UPDATE attempts SET meta = '{}'")
    connection.commit()
    connection.close()
    with pytest.raises(Invalid, match="--rules"):
        load_replay(samples_alone)


def run_cli(*arguments: object):
    return CliRunner().invoke(group, ["replay", *map(str, arguments)])


def test_the_command_prints_one_line_a_transition(recorded, samples_alone):
    said = run_cli(samples_alone)
    with Run.open(recorded.folder) as run:
        lines = [transition_line(found) for found in run.transitions()]
    assert said.output.splitlines()[: len(lines)] == lines
    assert said.exit_code == (1 if "open at the end" in said.output else 0)


def test_the_command_prints_json(recorded, samples_alone):
    said = json.loads(run_cli(samples_alone, "--output", "json").output)
    with Run.open(recorded.folder) as run:
        places = [(found.rule, found.reason, found.now.step, found.now.attempt) for found in run.transitions()]
    assert [
        (found["rule"], found["reason"], found["now"]["step"], found["now"]["attempt"]) for found in said["transitions"]
    ] == places


RULES = """
groups:
  - name: g
    rules:
      - alert: {name}
        expr: loss > $bound
        params: {{bound: {bound}}}
        labels: {{severity: warning}}
"""


def test_the_exit_code_says_whether_incidents_are_open(samples_alone, tmp_path):
    rules = tmp_path / "own.yaml"
    rules.write_text(RULES.format(name="Always", bound=-1))
    said = run_cli(samples_alone, "--rules", rules)
    assert said.exit_code == 1
    assert "open at the end: Always (warning) since step" in said.output
    silent = run_cli(samples_alone, "--rules", rules, "--param", "Always.bound=1e9")
    assert (silent.exit_code, silent.stdout) == (0, "")
    assert silent.stderr == "344 steps, 1 rule: no alert fired\n"


@pytest.mark.parametrize("arguments", [["--param", "Always"], ["--param", "A.b=nan"], ["--rules", "nowhere.yaml"]])
def test_what_could_not_run_exits_with_2_and_without_a_traceback(samples_alone, arguments):
    command = [sys.executable, "-m", "healthwatch.cli", "replay", str(samples_alone), *arguments]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ended.returncode == 2
    assert ended.stderr
    assert "Traceback" not in ended.stderr


def test_no_run_exits_with_2(tmp_path):
    command = [sys.executable, "-m", "healthwatch.cli", "replay", str(tmp_path)]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stdout) == (2, "")
    assert "no recorded run" in ended.stderr
