"""check --strict and --show-resolved, and rule tests among the files."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner, Result

from healthwatch import resources
from healthwatch.cli import group, resolved
from healthwatch.config import load_all
from healthwatch.promql.plan import shape
from healthwatch.rulefile import Rule, load_rules

RULES = """groups:
  - name: g
    lookback: 7
    labels: {team: training}
    rules:
      - alert: A
        expr: loss > $k
        params: {k: 8}
        for: 10m
        until: loss > 1
        detail: topk(3, loss)
        labels: {severity: warning}
        annotations: {action: look, summary: "{{ $value }}"}
        inhibited_by: [B]
        limit: 3
      - alert: B
        when: {spike_ratio: {metric: loss, above: $r}}
        params: {r: 9}
        for_records: 2
        keep_firing_for: 5
        warmup: 7
        settle: 2
        escalation: night
        mode: shadow
        labels: {severity: critical}
        annotations: {action: look}
"""
TEST = """rule_files: [r.yaml]
tests:
  - input_series: [{series: loss, values: 1x5}]
    alert_rule_test: [{eval_time: 3, alertname: A}]
"""
CONFIG = """
monitor: {train_state: {local_norm: [attn], local_loss: true}, moe_monitor: {target_layers: [0, 5]}}
callbacks: [{type: MaxLogitsMonitor, step_interval: 2}]
profiler: {profiler_level: 1, profiler_rank: [0]}
healthwatch:
  run: r
  rules: [r.yaml]
  override: {A: {params: {k: 3}, labels: {severity: critical}}}
  escalation:
    critical: [{log: error}, {profile: {steps: 2}}, {notify: oncall, repeat: 10m, after: 3, when_state: resolved}]
    night: [{log: info}]
  receivers: {oncall: {urls: ["json://localhost/${TOKEN}"], group_interval: 9}}
  group_by: [rule]
  top_k: 8
  record: {max_size: 2GiB}
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TOKEN", "hunter2")
    for name, text in (("r.yaml", RULES), ("r.test.yaml", TEST), ("train.yaml", CONFIG)):
        (tmp_path / name).write_text(text, encoding="utf-8")
    return tmp_path


def run(*arguments: str) -> Result:
    return CliRunner().invoke(group, ["check", *arguments])


def test_strict_tells_of_each_rule_without_a_test(folder: Path) -> None:
    assert run("r.yaml").exit_code == 0
    result = run("--strict", "r.yaml")
    assert result.exit_code == 1
    assert result.output.splitlines()[:4] == [
        'r.yaml:16:16: warning[HW037]: no test expects anything of the rule "B"',
        "16 |       - alert: B",
        "   |                ^",
        "help: write one into r.test.yaml beside it; healthwatch init shows what it looks like",
    ]
    (folder / "r.test.yaml").write_text(TEST + "    exp_incidents: [{rule: B}]\n", encoding="utf-8")
    assert run("--strict", "r.yaml").exit_code == 0
    (folder / "r.test.yaml").write_text(TEST.replace("r.yaml", "other.yaml"), encoding="utf-8")
    assert run("--strict", "r.yaml", "--output", "json").output.count("HW037") == 2


def test_strict_looks_at_the_rules_of_a_config(folder: Path) -> None:
    assert run("--strict", "train.yaml").output.count("HW037") == 1


@pytest.mark.parametrize("pack", resources.packs())
def test_every_shipped_rule_has_a_test(pack: str) -> None:
    assert run("--strict", f"builtin:{pack}").output == "1 file checked, no problems\n"


def test_a_rule_test_is_checked_as_one(folder: Path) -> None:
    assert run("r.test.yaml").output == "1 file checked, no problems\n"
    (folder / "r.test.yaml").write_text(TEST.replace("eval_time", "evaltime"), encoding="utf-8")
    result = run("r.test.yaml")
    assert result.exit_code == 1
    assert "r.test.yaml:4:" in result.output
    assert 'unknown key "evaltime"' in result.output


def same(ours: Sequence[Rule], theirs: Sequence[Rule]) -> bool:
    """In everything but their places; an expression in what it says."""

    def plain(rule: Rule) -> object:
        trees = [shape(each.tree) for each in (rule.expression, rule.until, rule.detail) if each is not None]
        texts = {key: str(template) for key, template in rule.annotations.items()}
        waits = (rule.for_, rule.for_records, rule.keep_firing_for, rule.warmup, rule.settle, rule.lookback)
        names = (
            rule.name,
            dict(rule.labels),
            rule.inhibited_by,
            rule.escalation,
            rule.mode,
            rule.limit,
            dict(rule.params),
        )
        return trees, texts, waits, names

    return sorted(map(repr, map(plain, ours))) == sorted(map(repr, map(plain, theirs)))


@pytest.fixture
def again(folder: Path) -> Callable[[str], tuple[Rule, ...]]:
    def again(text: str) -> tuple[Rule, ...]:
        (folder / "again.yaml").write_text(text, encoding="utf-8")
        return load_rules([folder / "again.yaml"]).rules

    return again


def test_rules_are_shown_as_rules_that_say_the_same(again: Callable[[str], tuple[Rule, ...]]) -> None:
    rules = load_rules(["r.yaml"]).rules
    assert same(again(resolved.text(None, rules)), rules)
    shipped = load_rules([f"builtin:{pack}" for pack in resources.packs()]).rules
    assert same(again(resolved.text(None, shipped)), shipped)
    assert not same(rules, shipped)


def test_a_config_is_shown_with_its_overrides_and_without_its_secrets(folder: Path) -> None:
    result = run("--show-resolved", "train.yaml")
    assert result.exit_code == 0
    assert "hunter2" not in result.output
    assert "localhost" not in result.output
    shown = yaml.safe_load(result.stdout)
    assert shown["healthwatch"]["receivers"] == {"oncall": {"urls": ["****"], "group_interval": 9}}
    (first, second) = shown["groups"][0]["rules"]
    assert (first["params"], first["labels"]["severity"]) == ({"k": 3}, "critical")
    assert second["expr"] == "spike_ratio(loss[50], 3) > 9"
    assert result.stderr == "1 file checked, no problems\n"


def test_what_is_shown_can_be_loaded_again(folder: Path) -> None:
    before = load_all("train.yaml").config
    (folder / "again.yaml").write_text(run("--show-resolved", "train.yaml").stdout, encoding="utf-8")
    after = load_all("again.yaml").config
    assert before is not None
    assert after is not None
    assert replace(after, digest="", file=None, receivers={}) == replace(before, digest="", file=None, receivers={})


def test_problems_are_told_beside_what_is_shown(folder: Path) -> None:
    (folder / "r.yaml").write_text(RULES.replace("loss > $k", "los > $k"), encoding="utf-8")
    result = run("--show-resolved", "r.yaml")
    assert result.exit_code == 1
    assert "HW012" in result.stderr
    assert [each["alert"] for each in yaml.safe_load(result.stdout)["groups"][0]["rules"]] == ["B"]
    assert json.loads(run("r.yaml", "--output", "json").output)
