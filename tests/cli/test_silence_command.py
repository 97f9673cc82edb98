"""`healthwatch silence add`: what is asked for is kept, and a name that nothing has is remarked upon."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

import healthwatch
from healthwatch.cli import group
from healthwatch.session.control import all_of

RULES = """
groups:
  - name: g
    rules:
      - {alert: LossHigh, expr: loss > 5, labels: {severity: warning, team: vision}}
      - {alert: CardHot, expr: heat > 90, labels: {severity: warning}}
"""


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One step of a run."""
    folder = tmp_path_factory.mktemp("run")
    (folder / "rules.yaml").write_text(RULES, encoding="utf-8")
    section = {"output": str(folder / "out"), "rules": ["rules.yaml"]}
    (folder / "c.yaml").write_text(json.dumps({"healthwatch": section}), encoding="utf-8")
    with healthwatch.load(folder / "c.yaml") as hw:
        hw.log_values("heat", [50.0], [{"card": "0"}])
        hw.step(1.0)
    return folder / "out"


def add(run: Path, *matchers: str) -> str:
    """What is remarked; the silence stands whatever that is."""
    before = len(all_of(run))
    result = CliRunner().invoke(group, ["silence", "add", str(run), *matchers, "--for", "1h"])
    assert result.exit_code == 0, result.output
    silences = all_of(run)
    assert len(silences) == before + 1
    assert result.stdout.strip() in {each.id for each in silences}
    return result.stderr


@pytest.mark.parametrize(
    ("matcher", "remark"),
    [
        ("alertname=LossHihg", 'no rule of this run is called "LossHihg"; did you mean "LossHigh"?\n'),
        ("rule=LossHihg", 'no rule of this run is called "LossHihg"; did you mean "LossHigh"?\n'),
        ("alertname!=LossHihg", 'no rule of this run is called "LossHihg"; did you mean "LossHigh"?\n'),
        (
            "alertname=~Grad.*",
            "no rule of this run fits alertname=~Grad.*; rules: CardHot, LossHigh, ReceiverFailing\n",
        ),
        ("crad=0", 'nothing in this run has the label "crad"; did you mean "card"?\n'),
        ("alertname=LossHigh", ""),
        ("alertname=ReceiverFailing", ""),
        ("alertname=~Loss.*", ""),
        ("card=~[0-3]", ""),
        ("team=vision", ""),
        ("rank=0", ""),
        ("severity!=critical", ""),
    ],
)
def test_a_name_that_nothing_has_is_remarked_upon(run: Path, matcher: str, remark: str) -> None:
    assert add(run, matcher) == remark


def test_of_a_run_that_has_not_begun_nothing_is_known(tmp_path: Path) -> None:
    assert add(tmp_path, "alertname=Anything") == ""


def test_no_silence_is_said(tmp_path: Path) -> None:
    result = CliRunner().invoke(group, ["silence", "list", str(tmp_path)])
    assert (result.exit_code, result.output) == (0, "there is no silence\n")
