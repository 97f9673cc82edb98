"""Whole logs of the real trainer: what is read, and what rules say of it."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path

import jsonschema
import pytest
from click.testing import CliRunner
from log_reading import FAULTY, HEALTHY, frames_of, samples

from healthwatch import resources
from healthwatch.alerting.model import Transition
from healthwatch.cli import group
from healthwatch.readers import Options, open_log
from healthwatch.replay import load_replay

EXCERPT = Path(__file__).parent / "excerpt.yaml"
PACKS = [f"builtin:{pack}" for pack in resources.packs()]


def fired(log: Path, rules: list[str]) -> list[Transition]:
    replay = load_replay(log, rules)
    return [each for outcome in replay.outcomes() for each in outcome.transitions if each.reason == "fired"]


def rules_fired(log: Path, rules: list[str]) -> set[tuple[str, int]]:
    return {(each.rule, each.now.step) for each in fired(log, rules)}


@pytest.mark.parametrize("name", [*HEALTHY, *FAULTY])
def test_every_record_of_a_log_is_read(logs: Path, name: str):
    log = open_log(logs / name)
    frames = list(log.frames())
    text = (logs / name).read_text()
    assert [frame.step for frame in frames] == [int(step) for step in re.findall(r"\{ step:\[ *(\d+)/", text)]
    assert (log.passed.unreadable, log.passed.late) == (0, 0)
    read = [key[3] for each in samples(frames) for key in each]
    assert read.count("loss") == len(frames)
    assert read.count("local_norm") == text.count('{ "local_norm"')
    assert read.count("device_norm") == text.count('{ "device_norm"')
    assert read.count("local_loss") == text.count('"local_loss": ') - text.count('    "local_loss": ')
    assert read.count("tokens_per_expert") == 4 * text.count('"tpe"')


@pytest.mark.parametrize("name", HEALTHY)
def test_shipped_packs_are_silent_on_healthy_logs(logs: Path, name: str):
    assert fired(logs / name, PACKS) == []


@pytest.mark.parametrize("name", HEALTHY)
def test_rules_for_excerpts_are_silent_on_healthy_logs(logs: Path, name: str):
    assert fired(logs / name, [str(EXCERPT)]) == []


def test_a_training_that_an_error_ended_is_told(logs: Path, tmp_path: Path):
    whole = (logs / HEALTHY[0]).read_text()
    (tmp_path / "crashed.log").write_text(f"{whole}Traceback (most recent call last):\nRuntimeError: device lost\n")
    last = max(frame.step for frame in open_log(logs / HEALTHY[0]).frames())
    assert rules_fired(tmp_path / "crashed.log", PACKS) == {("RunFailed", last + 1)}


def test_divergence_is_found(logs: Path):
    assert ("LossJump", 2) in rules_fired(logs / "diverge_lr.head.info.log", [str(EXCERPT)])


def test_nan_is_found_where_it_was_planted(logs: Path):
    log = logs / "nan_injected.head.info.log"
    found = rules_fired(log, [str(EXCERPT)])
    assert found >= {("LossNonFinite", 12), ("NormNonFinite", 12), ("LogitNonFinite", 13)}
    assert min(step for _, step in found) == 12
    assert ("LossNonFinite", 12) in rules_fired(log, PACKS)


@pytest.mark.row(45)
def test_row_045_imbalance_is_found(logs: Path):
    found = fired(logs / "moe_imbalance.head.stdout.log", [str(EXCERPT)])
    collapsed = [each for each in found if each.rule == "ExpertCollapse"]
    assert {each.now.step for each in collapsed} == {6}
    assert {dict(each.labels)["layer"] for each in collapsed} == {"1", "2"}
    saturated = [each for each in found if each.rule == "ExpertSaturated"]
    assert {each.now.step for each in saturated} == {8}
    assert {each.value for each in saturated} == {1.0}  # times top-k, or it could not exceed a half


def test_a_rule_on_what_the_trainer_does_not_print_has_no_data(logs: Path):
    log = logs / "moe_expert_bias_head.2.1.0.info.log"
    outcomes = list(load_replay(log, ["builtin:moe"]).outcomes())
    assert not any(outcome.transitions for outcome in outcomes)
    assert not any(key[3] == "tokens_per_expert" for each in samples(list(open_log(log).frames())) for key in each)


@pytest.mark.parametrize("name", ["healthy.head.info.log", "nan_injected.head.info.log", "healthy.2.0.0.info.log"])
def test_console_and_file_give_the_same_frames(logs: Path, name: str):
    text = (logs / name).read_text()
    console = re.sub(
        r"^\[(\w+)\] (\S+ \S+) \[(\S+)\] \w+: ", r"\2 - mindformers/out/log[\3] - \1 - ", text, flags=re.MULTILINE
    )
    assert console != text
    assert repr(samples(frames_of(console.splitlines()))) == repr(samples(frames_of(text.splitlines())))


@pytest.mark.parametrize("name", ["nan_injected.head.info.log", "moe_imbalance.head.stdout.log"])
def test_monitors_before_or_after_the_step_line_give_the_same_frames(logs: Path, name: str):
    """As 2.1.0 and as 2.0.0 order them."""
    lines = (logs / name).read_text().splitlines()
    first = next(place for place, line in enumerate(lines) if "{ step:[" in line)
    steps: list[list[str]] = []
    for line in lines[first:]:
        if "{ step:[" in line:
            steps.append([])
        steps[-1].append(line)
    turned = lines[:first] + [line for step in steps for line in (*step[1:], step[0])]
    assert turned != lines
    ours, theirs = samples(frames_of(turned)), samples(frames_of(lines))
    assert [sorted(map(repr, each.items())) for each in ours] == [sorted(map(repr, each.items())) for each in theirs]


@pytest.mark.parametrize("name", ["nan_injected.head.info.log", "moe_imbalance.head.stdout.log"])
def test_a_log_that_ends_anywhere(logs: Path, name: str):
    text = (logs / name).read_text()
    whole = samples(frames_of(text.splitlines()))
    start = text.index("{ step:[")
    for end in range(start, len(text), 997):
        cut = samples(frames_of(text[:end].splitlines()))
        assert repr(cut[:-1]) == repr(whole[: max(len(cut) - 1, 0)])


def test_top_k_of_the_log_and_of_the_caller(logs: Path):
    log = logs / "moe_imbalance.head.stdout.log"

    def top_k(options: Options) -> set[float]:
        found = samples(list(open_log(log, options=options).frames()))
        return {value for each in found for key, value in each.items() if key[3] == "router_topk"}

    assert top_k(Options()) == {2.0}
    assert top_k(Options(top_k=1)) == {1.0}


@pytest.mark.row(10)
@pytest.mark.parametrize("name", [*HEALTHY, *FAULTY])
def test_row_010_read_gives_one_object_a_sample(logs: Path, name: str):
    result = CliRunner().invoke(group, ["read", str(logs / name), "--output", "jsonl"])
    assert result.exit_code == 0
    records = [json.loads(line) for line in result.stdout.splitlines()]
    validator = jsonschema.Draft202012Validator(json.loads(resources.read_text("schemas/record.schema.json")))
    assert [error.message for record in records for error in validator.iter_errors(record)] == []
    expected = samples(list(open_log(logs / name).frames()))
    assert len(records) == sum(map(len, expected))
    non_finite = sum(not math.isfinite(value) for each in expected for value in each.values())
    assert sum(isinstance(record["value"], str) for record in records) == non_finite


@pytest.mark.parametrize("name", [*HEALTHY, *FAULTY])
def test_records_are_read_back_to_the_same_frames(logs: Path, name: str, tmp_path: Path):
    result = CliRunner().invoke(group, ["read", str(logs / name), "--output", "jsonl"])
    (tmp_path / "records.jsonl").write_text(result.stdout)
    log = open_log(tmp_path / "records.jsonl")
    assert log.format.name == "records"
    assert repr(samples(list(log.frames()))) == repr(samples(list(open_log(logs / name).frames())))


def test_read_prints_a_table(logs: Path):
    result = CliRunner().invoke(group, ["read", str(logs / "nan_injected.head.info.log")])
    rows = [line.split() for line in result.stdout.splitlines()]
    assert rows[0] == ["step", "attempt", "metric", "series", "value"]
    assert ["12", "1", "loss", "1", "NaN"] in rows
    assert ["11.1", "1", "local_norm", "10", "0.000566", "..", "0.716458"] in rows
    assert ["12.1", "1", "local_norm", "10", "10", "not", "finite"] in rows


def test_read_tells_what_it_passed_over(tmp_path: Path):
    log = tmp_path / "log.txt"
    log.write_text("{ step:[    1/   20], loss: 2.5 }\n{ step:[    2/   20], loss: 2.5, per_ste\n")
    result = CliRunner().invoke(group, ["read", str(log)])
    assert result.exit_code == 0
    assert f"{log.as_posix()}:2: 1 record can't be read" in result.stderr


@pytest.mark.parametrize("arguments", [["--format", "mindformer"], []])
def test_read_refuses_what_no_format_knows(tmp_path: Path, arguments: list[str]):
    log = tmp_path / "log.txt"
    log.write_text("hello\n")
    result = CliRunner().invoke(group, ["read", str(log), *arguments])
    assert result.exit_code != 0
    assert "HW305" in str(result.exception)
    assert "mindformers" in str(result.exception)


def test_formats_are_listed():
    result = CliRunner().invoke(group, ["read", "--formats"])
    assert {line.partition(":")[0] for line in result.stdout.splitlines()} >= {"mindformers", "records"}


def test_replay_of_a_log_says_what_its_samples_say(logs: Path):
    result = CliRunner().invoke(
        group, ["replay", str(logs / "moe_imbalance.head.stdout.log"), "--rules", str(EXCERPT), "--output", "json"]
    )
    said = json.loads(result.stdout)
    assert result.exit_code == 1
    assert {each["rule"] for each in said["open"]} == {"ExpertCollapse", "ExpertSaturated"}
