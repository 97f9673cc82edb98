"""A test file that promtool runs too: both say the same, of what is as expected and of what is not."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from healthwatch.ruletest import run_files

FOLDER = Path(__file__).parent / "promtool"
WRONG = [
    ("{eval_time: 3s, alertname: High}", "{eval_time: 4s, alertname: High}"),
    ("eval_time: 8s", "eval_time: 9s"),
    ("{eval_time: 9s, alertname: High}", "{eval_time: 8s, alertname: High}"),
    ("summary: loss of train is 9", "summary: loss of train is 8"),
    ("{eval_time: 6s, alertname: Sum}", "{eval_time: 7s, alertname: Sum}"),
    ('exp_labels: {severity: warning, layer: "0"}', 'exp_labels: {layer: "0"}'),
    ("value: 8}", "value: 9}"),
    ("labels: 'loss{split=\"train\"}'", "labels: '{split=\"train\"}'"),
    ('alertstate="pending"', 'alertstate="firing"'),
    ("expr: tokens_per_expert > 100", "expr: tokens_per_expert > 3"),
]


def files(tmp_path: Path, before: str = "", after: str = "") -> Path:
    text = (FOLDER / "passes.test.yaml").read_text(encoding="utf-8")
    assert before in text
    (tmp_path / "rules.yaml").write_text((FOLDER / "rules.yaml").read_text(encoding="utf-8"), encoding="utf-8")
    changed = tmp_path / "changed.test.yaml"
    changed.write_text(text.replace(before, after, 1) if before else text, encoding="utf-8")
    return changed


def test_what_passes_there_passes_here(tmp_path):
    assert run_files([files(tmp_path)]).exit_code == 0


@pytest.mark.parametrize(("before", "after"), WRONG)
def test_what_fails_there_fails_here(tmp_path, before, after):
    assert run_files([files(tmp_path, before, after)]).exit_code == 1


@pytest.mark.parametrize(("before", "after", "code"), [("", "", 0), *((*each, 1) for each in WRONG)])
def test_promtool_says_so(promtool, tmp_path, before, after, code):
    said = subprocess.run([promtool, "test", "rules", files(tmp_path, before, after)], capture_output=True, check=False)
    assert said.returncode == code
