"""The first files that somebody gets: they are clean, they pass, and an editor finds their schemas."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from jsonschema import Draft202012Validator

from healthwatch import yamlfile
from healthwatch.cli import group
from healthwatch.cli.init import files
from healthwatch.config import load_all
from healthwatch.rulefile.schema import findings


def run(*arguments: str) -> Result:
    return CliRunner().invoke(group, list(arguments))


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    result = run("init", "new")
    assert result.exit_code == 0, result.output
    monkeypatch.chdir(tmp_path / "new")
    return tmp_path / "new"


def test_what_is_written_checks_and_passes(folder: Path) -> None:
    checked = run("check", "--strict", "my-rules.yaml", "my-rules.test.yaml")
    assert (checked.exit_code, checked.output) == (0, "2 files checked, no problems\n")
    assert run("check", "healthwatch.yaml").exit_code == 0
    tested = run("test", ".")
    assert (tested.exit_code, tested.output.splitlines()[-1]) == (0, "3 passed, 0 failed")


def test_the_tests_test_something(folder: Path) -> None:
    """Each rule changed so that it is never, or always, true: its test says so."""
    rules = (folder / "my-rules.yaml").read_text(encoding="utf-8")
    for old, new in (("ratio: 4", "ratio: 6"), ("for_records: 2", "for_records: 1"), ("least: 0.001", "least: 0"),
                     ("warmup: 60", "warmup: 0")):  # fmt: skip
        assert old in rules
        (folder / "my-rules.yaml").write_text(rules.replace(old, new), encoding="utf-8")
        assert run("test", ".").exit_code == 1, new


def test_what_is_commented_out_is_valid_too(folder: Path) -> None:
    """Whoever takes a # away gets a config that works."""
    text = (folder / "healthwatch.yaml").read_text(encoding="utf-8")
    body = text[text.index("healthwatch:\n") :].replace("override: {}", "override:")
    full = re.sub(r"(?m)^(\s*)# (?=\s*(?:-|[A-Za-z_]+:))", r"\1", body)
    assert full.count("#") < body.count("#") - 10
    (folder / "full.yaml").write_text(full, encoding="utf-8")
    (folder / "mail").write_text("json://localhost", encoding="utf-8")
    mended = full.replace("/run/secrets/mail_url", "mail")
    (folder / "full.yaml").write_text(mended, encoding="utf-8")
    checked = load_all(folder / "full.yaml", {"SLACK_URL": "json://localhost"})
    assert checked.diagnostics == ()
    assert checked.config is not None
    assert checked.config.override["LossSpike"] == {"params": {"ratio": 2}}
    assert checked.config.escalation["critical"][2].argument == "oncall"


def test_the_metrics_that_are_commented_out_are_valid_too(folder: Path) -> None:
    rules = folder / "my-rules.yaml"
    text = rules.read_text(encoding="utf-8")
    rules.write_text(re.sub(r"(?m)^# (metrics:|  \w+: \{)", r"\1", text), encoding="utf-8")
    assert set(yamlfile.load(rules).data["metrics"]) == {"queue_depth", "card_temperature"}
    assert run("check", "my-rules.yaml").exit_code == 0


def test_every_file_names_a_schema_that_is_there_and_fits(folder: Path) -> None:
    for name in (name for name in files() if name.endswith(".yaml")):
        document = yamlfile.load(folder / name)
        found = re.match(r"# yaml-language-server: \$schema=(\S+)\n", document.text.text)
        assert found is not None
        schema = json.loads((folder / found[1]).read_text(encoding="utf-8"))
        assert list(Draft202012Validator(schema).iter_errors(document.data)) == []
        assert findings(document, Path(found[1]).name.removesuffix(".schema.json")) == []


def test_nothing_is_overwritten(folder: Path) -> None:
    (folder / "my-rules.yaml").write_text("mine", encoding="utf-8")
    result = run("init")
    assert result.exit_code == 2
    assert "already there, nothing written" in result.output
    assert (folder / "my-rules.yaml").read_text(encoding="utf-8") == "mine"
