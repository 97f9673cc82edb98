"""`healthwatch replay` of a log: a healthy one, one of which nothing could be read and one that is not there differ."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from healthwatch.cli import group
from healthwatch.recording import Recording

START = "[INFO] 2026-11-29 18:59:02,450 [mindformers/pynative/trainer/trainer.py:487] _init_config: Current\n"
RULES = """
groups:
  - name: g
    rules:
      - {alert: High, expr: loss > 5, for_records: 2, labels: {severity: warning}}
      - {alert: NoNorm, expr: grad_norm > 5, labels: {severity: warning}}
      - {alert: NoRate, expr: lr > 5, labels: {severity: warning}}
"""


@pytest.fixture
def rules(tmp_path: Path) -> Path:
    (tmp_path / "rules.yaml").write_text(RULES)
    return tmp_path / "rules.yaml"


def log_of(path: Path, *losses: float) -> Path:
    lines = [json.dumps({"step": step, "metric": "loss", "value": loss}) for step, loss in enumerate(losses, start=1)]
    path.write_text("".join(f"{line}\n" for line in lines))
    return path


def ask(command: str, *arguments: object) -> Result:
    return CliRunner().invoke(group, [command, *map(str, arguments)])


def refused(command: str, *arguments: object) -> str:
    said = ask(command, *arguments)
    assert said.exception is not None
    return str(said.exception)


@pytest.mark.parametrize("command", ["read", "replay"])
def test_a_log_without_samples_is_no_healthy_one(tmp_path: Path, command: str) -> None:
    log = tmp_path / "cut.log"
    log.write_text(START)
    said = ask(command, log)
    assert (said.exit_code, said.stdout, said.stderr) == (1, "", f"{log.as_posix()} holds no samples\n")


def test_nothing_but_json_goes_to_stdout(tmp_path: Path, rules: Path) -> None:
    (tmp_path / "cut.log").write_text(START)
    said = ask("replay", tmp_path / "cut.log", "-o", "json")
    assert (said.exit_code, json.loads(said.stdout)["transitions"]) == (1, [])
    assert "holds no samples" in said.stderr
    said = ask("replay", log_of(tmp_path / "log", 1.0, 9.0, 9.0), "-r", rules, "-o", "json")
    assert [found["reason"] for found in json.loads(said.stdout)["transitions"]] == ["breach", "fired"]


def test_a_run_without_samples_is_no_healthy_one(tmp_path: Path, rules: Path) -> None:
    Recording.create(tmp_path / "rank_0.sqlite", {}).close()
    said = ask("replay", tmp_path, "-r", rules)
    assert (said.exit_code, said.stdout) == (1, "")
    assert said.stderr == f"{tmp_path.as_posix()}/rank_0.sqlite holds no samples\n"


@pytest.mark.parametrize(
    ("losses", "told"),
    [
        ([1.0, 1.0, 1.0], "3 steps, 3 rules: no alert fired\n"),
        ([1.0, 9.0, 1.0], "3 steps, 3 rules: no alert fired\n"),  # one was pending
        ([1.0, 9.0, 9.0, 1.0], "4 steps, 3 rules: 1 alert fired\n"),
        ([9.0, 9.0, 1.0, 9.0, 9.0], "5 steps, 3 rules: 2 alerts fired\n"),
    ],
)
def test_how_much_was_looked_at_is_said_at_the_end(tmp_path: Path, rules: Path, losses: list[float], told: str) -> None:
    said = ask("replay", log_of(tmp_path / "log", *losses), "-r", rules)
    assert said.stderr == told
    assert said.stdout.count("(fired)") == (0 if "no alert" in told else int(told.split()[4]))


def test_a_step_that_comes_again_is_one(tmp_path: Path, rules: Path) -> None:
    log = log_of(tmp_path / "log", 1.0, 1.0, 1.0, 1.0)
    log.write_text(log.read_text() + log.read_text())
    assert ask("replay", log, "-r", rules).stderr.startswith("4 steps, ")


@pytest.mark.parametrize("command", ["read", "replay"])
def test_what_was_passed_over_is_told_with_each_reason(tmp_path: Path, command: str) -> None:
    log = log_of(tmp_path / "log", 1.0, 1.0, 1.0)
    lines = log.read_text().splitlines()
    log.write_text("\n".join([*lines[:2], '{"step": 3, "metric": "loss", "value": "n/a"}', lines[2]]))
    first = f"{log.as_posix()}:3: 1 record can't be read: not a number: 'n/a'"
    assert ask(command, log).stderr.splitlines()[0] == first
    log.write_text("\n".join([*lines, '{"step": 4, "metric": "loss"}', lines[1], '{"step": 4}']))
    assert ask(command, log).stderr.splitlines()[:3] == [
        f'{log.as_posix()}:4: 2 records can\'t be read, for several reasons: no key "value"',
        f'{log.as_posix()}:6: no key "metric"',
        "left out: 1 sample of a step that was over",
    ]
    log.write_text("\n".join([*lines, *['{"step": 4}'] * 3]))
    assert ask(command, log).stderr.splitlines()[0] == f'{log.as_posix()}:4: 3 records can\'t be read: no key "metric"'


def test_rules_without_data_share_one_line(tmp_path: Path, rules: Path) -> None:
    said = ask("replay", log_of(tmp_path / "log", *[1.0] * 201), "-r", rules)
    assert said.stdout == "no data in 200 steps: NoNorm, NoRate\n"
    found = json.loads(ask("replay", tmp_path / "log", "-r", rules, "-o", "json").stdout)["problems"]
    assert [each["rule"] for each in found] == ["NoNorm", "NoRate"]


def test_a_format_may_be_named(tmp_path: Path, rules: Path) -> None:
    log = log_of(tmp_path / "log", 9.0, 9.0)
    log.write_text("# from the night of the third\n" + log.read_text())
    assert "HW305" in refused("replay", log, "-r", rules)
    said = ask("replay", log, "-r", rules, "--format", "records")
    assert "step 2: High loss pending -> firing (fired), 9\n" in said.stdout
    assert 'did you mean "records"?' in refused("replay", log, "-r", rules, "--format", "record")


def test_how_many_experts_a_token_goes_to_may_be_named(tmp_path: Path, rules: Path) -> None:
    tokens = '{"iter": 2, "step": 1, "micro_step": 1, "block": "decoder", "layer": 1, "tpe": [[9, 19, 15, 21]]}\n'
    (tmp_path / "log").write_text(tokens)
    rules.write_text(RULES.replace("loss > 5", "router_topk == 4").replace("for_records: 2, ", ""))
    assert "(fired)" not in ask("replay", tmp_path / "log", "-r", rules).stdout
    assert "firing (fired), 4" in ask("replay", tmp_path / "log", "-r", rules, "--top-k", 4).stdout
    Recording.create(tmp_path / "rank_0.sqlite", {}).close()
    said = ask("replay", tmp_path, "-r", rules, "--top-k", 4)
    assert (said.exit_code, "--top-k is for logs" in said.output) == (2, True)


def test_a_log_in_no_known_format_says_what_would_be_one(tmp_path: Path) -> None:
    (tmp_path / "log").write_text('{"step": 3, "loss": 2.1}\n')
    told = refused("replay", tmp_path / "log")
    assert "docs/readers.md" in told
    (line,) = (part for part in told.splitlines() if part.startswith("help: "))
    example = line[line.index("{") : line.index("}") + 1]
    (tmp_path / "log").write_text(example)
    said = ask("replay", tmp_path / "log")
    assert (said.exit_code, said.stderr[:7]) == (0, "1 step,")
    (tmp_path / "log").write_text("\n")
    assert "is empty" in refused("replay", tmp_path / "log")


@pytest.mark.parametrize("command", [["replay"], ["query", "loss"], ["incidents"]])
def test_a_file_that_is_not_there_is_said_to_be_missing(tmp_path: Path, command: list[str]) -> None:
    told = refused(command[0], tmp_path / "nope.log", *command[1:])
    assert f"{tmp_path.as_posix()}/nope.log is no recorded run: there is no such file" in told


@pytest.mark.parametrize("command", [["query", "loss"], ["incidents"], ["captures"]])
def test_a_log_is_for_read_and_replay(tmp_path: Path, command: list[str]) -> None:
    for losses in ([1.0], [1.0] * 1000):
        told = refused(command[0], log_of(tmp_path / "log", *losses), *command[1:])
        assert "can't be read as a recorded run" in told
        assert "a log can only be read and replayed: healthwatch read LOG, healthwatch replay LOG" in told


def test_transitions_of_some_kinds_alone(tmp_path: Path, rules: Path) -> None:
    log = log_of(tmp_path / "log", 1.0, 9.0, 9.0, 1.0, 9.0, 9.0)
    fired = ["step 3: High loss pending -> firing (fired), 9", "step 6: High loss pending -> firing (fired), 9"]
    whole, some = (ask("replay", log, "-r", rules, *only) for only in ([], ["--only", "fired", "--only", "resolved"]))
    assert [line for line in whole.stdout.splitlines() if "(breach)" not in line] == some.stdout.splitlines()
    assert {*fired, "step 4: High loss firing -> inactive (resolved)"} < {*some.stdout.splitlines()}
    assert (some.exit_code, some.stderr) == (whole.exit_code, whole.stderr) == (1, "6 steps, 3 rules: 2 alerts fired\n")
    said = json.loads(ask("replay", log, "-r", rules, "--only", "fired", "-o", "json").stdout)
    assert [(found["now"]["step"], found["reason"]) for found in said["transitions"]] == [(3, "fired"), (6, "fired")]
    assert [incident["rule"] for incident in said["open"]] == ["High"]
