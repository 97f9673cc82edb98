"""Writes rule and test files, and runs them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from healthwatch.ruletest import Report, run_files

RULES = """
groups:
  - name: test
    rules:
      - alert: High
        expr: loss > 5
        labels: {severity: critical}
        annotations: {summary: "loss is {{ $value }}"}
      - alert: NormSpike
        when: {spike_ratio: {metric: micro_norm, window: 20}}
        labels: {severity: warning}
        keep_firing_for: 5
"""

Runner = Callable[..., Report]


@pytest.fixture
def run(tmp_path: Path) -> Runner:
    """Runs the text of a test file, beside rules.yaml."""

    def run(tests: str, rules: str = RULES, head: str = "rule_files: [rules.yaml]\n") -> Report:
        (tmp_path / "rules.yaml").write_text(rules, encoding="utf-8")
        (tmp_path / "x.test.yaml").write_text(f"{head}tests:\n{tests}", encoding="utf-8")
        return run_files([tmp_path / "x.test.yaml"])

    return run


@pytest.fixture
def texts() -> Callable[[Report], list[str]]:
    """What is shown of the failures."""
    return lambda report: [text for file in report.files for case in file.cases for _, text in case.failures]
