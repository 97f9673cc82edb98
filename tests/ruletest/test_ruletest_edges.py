"""The edges of rule semantics as rule tests, and the example of the page on rule tests."""

from __future__ import annotations

import re
from pathlib import Path

from healthwatch.ruletest import run_files

EDGES = Path(__file__).parent / "edges" / "edges.test.yaml"
PAGE = Path(__file__).resolve().parents[2] / "docs" / "rule-tests.md"
RULES = """
groups:
  - name: page
    rules:
      - alert: GradNormSpike
        when: {spike_ratio: {metric: micro_norm, window: 50, above: 8}}
        keep_firing_for: 10
        labels: {severity: critical}
        annotations: {summary: "{{ $labels.param }}: gradient norm is {{ $value }} times its own median"}
"""


def test_edges():
    report = run_files([EDGES])
    assert [text for file in report.files for case in file.cases for _, text in case.failures] == []
    assert report.exit_code == 0, report.files[0].diagnostics


def test_the_example_of_the_page(tmp_path):
    example = re.findall(r"```yaml\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)[0]
    (tmp_path / "my-rules.yaml").write_text(RULES, encoding="utf-8")
    (tmp_path / "my.test.yaml").write_text(example, encoding="utf-8")
    report = run_files([tmp_path / "my.test.yaml"])
    assert [text for file in report.files for case in file.cases for _, text in case.failures] == []
    assert report.exit_code == 0, report.files[0].diagnostics
