"""`healthwatch check`: what it tells apart, what it prints and how it exits."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

import healthwatch
from healthwatch.cli.check import check, command
from healthwatch.diagnostics import Invalid

CLEAN, FINDINGS, COULD_NOT_RUN = 0, 1, 2

RULE = """groups:
  - name: g
    rules:
      - alert: A
        expr: loss > 8
        labels: {severity: warning}
        annotations: {action: look}
"""
CONFIG = "healthwatch: {rules: [./r.yaml]}\n"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "r.yaml").write_text(RULE, encoding="utf-8")
    (tmp_path / "train.yaml").write_text(CONFIG, encoding="utf-8")
    return tmp_path


def run(*arguments: str) -> Result:
    result = CliRunner().invoke(command, list(arguments))
    assert result.exception is None or isinstance(result.exception, SystemExit), result.output
    return result


def test_clean_files(folder: Path) -> None:
    result = run("r.yaml", "train.yaml", "builtin:loss")
    assert (result.exit_code, result.output) == (CLEAN, "3 files checked, no problems\n")


def test_findings_are_shown_with_their_line(folder: Path) -> None:
    (folder / "bad.yaml").write_text(RULE.replace("loss > 8", "los > 8").replace("A", "B"), encoding="utf-8")
    result = run("r.yaml", "bad.yaml")
    assert result.exit_code == FINDINGS
    assert result.output.splitlines() == [
        'bad.yaml:5:15: error[HW012]: no metric is called "los"',
        "5 |         expr: los > 8",
        '  |               ^^^ rule "B"',
        'help: did you mean "loss"?',
        "1 of 2 files without problems, 1 with: 1 error, 0 warnings",
    ]


def test_a_warning_is_a_finding_and_a_note_is_none(folder: Path) -> None:
    (folder / "warn.yaml").write_text(RULE.replace("loss", "my_own").replace("A", "B"), encoding="utf-8")
    assert run("warn.yaml").exit_code == FINDINGS
    note = "monitor: {train_state: {local_norm: [layers.1]}}\n"
    (folder / "note.yaml").write_text(note + CONFIG, encoding="utf-8")
    result = run("note.yaml")
    assert result.exit_code == CLEAN
    assert "info[HW034]" in result.output
    assert result.output.endswith("1 file checked, no problems\n")


def test_a_config_brings_its_rules(folder: Path) -> None:
    (folder / "r.yaml").write_text(RULE.replace("loss > 8", "loss >"), encoding="utf-8")
    result = run("train.yaml")
    assert result.exit_code == FINDINGS
    assert "r.yaml:5:" in result.output


def test_a_folder(folder: Path) -> None:
    """Good, wrongly indented and broken: none passes in silence."""
    rules = folder / "rules.d"
    rules.mkdir()
    (rules / "good.yaml").write_text(RULE, encoding="utf-8")
    indent = RULE.replace("A", "B") + "        params:\n        ratio: 3\n"
    (rules / "bad_indent.yaml").write_text(indent, encoding="utf-8")
    broken = "groups:\n  - name: text; a `{ name: '...' }` option\n      - and more\n"
    (rules / "broken.yaml").write_text(broken, encoding="utf-8")
    (rules / "good.test.yaml").write_text("tests: []", encoding="utf-8")
    result = run("rules.d")
    assert result.exit_code == FINDINGS
    assert "bad_indent.yaml:9:9: error[HW007]" in result.output
    assert 'help: "params" above it is empty: indent "ratio" deeper' in result.output
    assert "broken.yaml:2:" in result.output
    assert "1 of 3 files without problems, 2 with:" in result.output


def test_what_could_not_be_read(folder: Path) -> None:
    result = run("no.yaml", "r.yaml")
    assert result.exit_code == COULD_NOT_RUN
    assert "no.yaml: error[HW001]: there is no such file" in result.output
    assert run().exit_code == COULD_NOT_RUN
    assert run("r.yaml", "--output", "xml").exit_code == COULD_NOT_RUN


@pytest.mark.parametrize("text", ["a: 1\n", "- a\n", "text\n", "", "# comment\n"])
def test_neither_rules_nor_config(folder: Path, text: str) -> None:
    (folder / "x.yaml").write_text(text, encoding="utf-8")
    result = run("x.yaml")
    assert result.exit_code == FINDINGS
    assert "HW021" in result.output


def test_names_cross_files(folder: Path) -> None:
    (folder / "other.yaml").write_text(RULE, encoding="utf-8")
    result = run("r.yaml", "other.yaml")
    assert result.exit_code == FINDINGS
    assert "other.yaml:4:16: error[HW013]" in result.output
    assert "the first one stands at r.yaml:4" in result.output


def test_the_same_file_twice_is_one_file(folder: Path) -> None:
    assert run("r.yaml", "r.yaml").output == "1 file checked, no problems\n"


def test_json(folder: Path) -> None:
    assert json.loads(run("r.yaml", "--output", "json").output) == []
    (folder / "bad.yaml").write_text(RULE.replace("expr", "exrp"), encoding="utf-8")
    result = run("bad.yaml", "--output", "json")
    assert result.exit_code == FINDINGS
    (found,) = json.loads(result.output)
    assert (found["code"], found["span"]["line"], found["span"]["column"]) == ("HW007", 5, 9)
    assert found["source"] == "        exrp: loss > 8"


@pytest.mark.long
def test_as_a_process(folder: Path) -> None:
    command_line = [sys.executable, "-m", "healthwatch.cli", "check"]
    done = subprocess.run([*command_line, "r.yaml"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (CLEAN, "1 file checked, no problems\n"), done.stderr
    (folder / "r.yaml").write_text(RULE.replace("loss", "损失"), encoding="utf-8")
    done = subprocess.run([*command_line, "r.yaml"], capture_output=True, text=True, check=False)
    assert done.returncode == FINDINGS
    assert "Traceback" not in done.stderr


RECEIVERS = """healthwatch:
  rules: [./r.yaml]
  escalation: {warning: [{command: [./no-such, --token, t0ken]}]}
  receivers:
    a: {urls: ["jsn://127.0.0.1/t0ken", "slack://t0ken", "json://${UNSET_URL}/t0ken"], group_interval: 50}
    b: {urls: ['t0ken/of/slack', json://127.0.0.1/], alertmanager: am:t0ken}  # json://t0ken
"""
REFUSED = [
    ("HW604", "./no-such, --token, t0ken"),
    ("HW601", '"jsn://127.0.0.1/t0ken"'),
    ("HW601", '"slack://t0ken"'),
    ("HW030", "${UNSET_URL}"),
    ("HW601", "'t0ken/of/slack'"),
    ("HW601", "am:t0ken"),
]


def places(found: list[dict[str, Any]], text: str) -> list[tuple[str, str]]:
    lines = text.splitlines()
    spans = [(each["code"], each["span"]) for each in found]
    return [(code, lines[at["line"] - 1][at["column"] - 1 : at["end_column"] - 1].strip("[]")) for code, at in spans]


def test_receivers_and_actions_that_a_training_would_refuse(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All of them at once and at their places, a variable that is not set among them; attach says the same."""
    (folder / "train.yaml").write_text(RECEIVERS, encoding="utf-8")
    result = run("train.yaml", "--output", "json")
    assert result.exit_code == FINDINGS
    assert places(json.loads(result.stdout), RECEIVERS) == REFUSED
    with pytest.raises(Invalid) as refused:
        healthwatch.load("train.yaml")
    assert refused.value.diagnostics == tuple(check(["train.yaml"]).diagnostics)
    monkeypatch.setenv("UNSET_URL", "t0ken")
    assert places(json.loads(run("train.yaml", "--output", "json").stdout), RECEIVERS) == [*REFUSED[:3], *REFUSED[4:]]
    for shown in (result.stdout, run("train.yaml").stdout, str(refused.value)):
        assert "t0ken" not in shown


def test_lines_with_credentials_stay_readable(folder: Path) -> None:
    (folder / "train.yaml").write_text(RECEIVERS, encoding="utf-8")
    lines = run("train.yaml").stdout.splitlines()
    a = '5 |     a: {urls: ["jsn://***************", "slack://*****", "json://${UNSET_URL}******"], group_interval: 50}'
    b = "6 |     b: {urls: ['**************', json://**********], alertmanager: ********}  # json://*****"
    assert [line for line in lines if line.startswith(("5 |", "6 |"))] == [a] * 3 + [b] * 2


def test_urls_are_left_to_the_training_where_apprise_is_missing(folder: Path) -> None:
    (folder / "train.yaml").write_text(RECEIVERS, encoding="utf-8")
    program = "import sys; sys.modules['apprise'] = None; from healthwatch.cli import main; main()"
    ended = subprocess.run(
        [sys.executable, "-c", program, "check", "train.yaml", "--output", "json"],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert places(json.loads(ended.stdout), RECEIVERS) == [REFUSED[0], REFUSED[3], REFUSED[5]], ended.stderr
