"""Rule files to rules, and one mistake after the other to its message."""
# ruff: noqa: E501 - the table of mistakes has one line for each

from __future__ import annotations

from collections.abc import Callable
from dataclasses import FrozenInstanceError
from pathlib import Path

import pytest

from healthwatch.cli.check import check
from healthwatch.config import load_config
from healthwatch.diagnostics import errors, render_text
from healthwatch.recording.origin import describe
from healthwatch.rulefile import Loaded, load_rules
from healthwatch.stream.ticks import Duration

Load = Callable[..., Loaded]

HEAD = "groups:\n  - name: g\n    rules:\n"


@pytest.fixture
def load(tmp_path: Path) -> Load:
    def load(*texts: str, **overrides: dict[str, object]) -> Loaded:
        files = []
        for number, text in enumerate(texts):
            files.append(tmp_path / f"rules{number}.yaml")
            files[-1].write_text(text, encoding="utf-8")
        return load_rules(files, overrides)

    return load


def rule(*lines: str, name: str = "A", expr: str = "loss > 8", severity: str = "warning") -> str:
    """A sound rule on lines 4 to 6, and more keys from line 7 on."""
    own = [
        f"- alert: {name}",
        f"  expr: {expr}",
        f"  labels: {{severity: {severity}}}",
        *(f"  {line}" for line in lines),
        *([] if any("annotations" in line for line in lines) else ["  annotations: {action: look}"]),
    ]
    return HEAD + "".join(f"      {line}\n" for line in own)


def test_every_key(load: Load) -> None:
    loaded = load("""
metrics:
  queue_depth: {unit: "1", cadence: step, help: waiting batches}
  other:
groups:
  - name: first
    limit: 7
    lookback: 5
    labels: {team: training, severity: info}
    rules:
      - alert: Deep
        expr: queue_depth > $most
        for: 3
        keep_firing_for: 10m
        until: queue_depth > 1
        detail: topk(3, queue_depth)
        labels: {severity: critical, tier: 1}
        annotations:
          summary: "{{ $labels.queue }} is {{ $value }} deep"
          action: Give the loader more workers.
        params: {most: 8}
        warmup: 60
        settle: 5
        inhibited_by: [Other]
        escalation: night
        mode: shadow
      - alert: Other
        expr: other > 1
        for_records: 2
        limit: 3
        annotations: {action: look}
""")
    assert loaded.diagnostics == ()
    deep, other = loaded.rules
    assert (deep.name, deep.group, deep.severity, deep.ladder) == ("Deep", "first", "critical", "night")
    assert deep.expression.text == "queue_depth > $most"
    assert deep.until is not None
    assert deep.detail is not None
    assert (deep.until.text, deep.detail.text) == ("queue_depth > 1", "topk(3, queue_depth)")
    assert (deep.for_, deep.keep_firing_for, deep.for_records) == (Duration(steps=3), Duration(seconds=600.0), None)
    assert deep.labels == {"team": "training", "severity": "critical", "tier": "1"}
    assert deep.annotations["summary"].render({"queue": "q"}, 9.0) == "q is 9 deep"
    assert (deep.warmup, deep.settle, deep.inhibited_by, deep.mode) == (60, 5, ("Other",), "shadow")
    assert (deep.limit, deep.lookback, deep.params) == (7, 5, {"most": 8})
    assert deep.span.line == 11
    assert (other.for_records, other.limit, other.severity, other.ladder, other.mode) == (
        2,
        3,
        "info",
        "info",
        "active",
    )
    assert set(loaded.metrics) == {"queue_depth", "other"}
    assert loaded.parameters == {"Deep": ("most",), "Other": ()}
    with pytest.raises(FrozenInstanceError):
        deep.limit = 1  # type: ignore[misc]


def test_conditions_stand_for_promql(load: Load) -> None:
    text = (
        HEAD
        + """
      - alert: Hot
        when: {spike_ratio: {metric: micro_norm, window: 20, above: $k}}
        params: {k: 9}
        labels: {severity: warning}
      - alert: Collapsed
        when: {saturation: {metric: tokens_per_expert, over: [expert], top_k: router_topk}}
        labels: {severity: critical}
"""
    )
    hot, collapsed = load(text).rules
    assert hot.expression.text == "spike_ratio(micro_norm[20], 3) > 9"
    assert hot.detail is None
    assert collapsed.detail is not None
    (overridden, _) = load(text, Hot={"params": {"k": 12}}).rules
    assert overridden.expression.text == "spike_ratio(micro_norm[20], 3) > 12"


MISTAKES = {
    # name: (text, code, (line, column, end), message, part of the help)
    "no groups": ("metrics: {}\n", "HW008", (1, 1, 12), 'healthwatch rule file lacks the key "groups"', ""),
    "groups misspelt": ("group: []\n", "HW007", (1, 1, 6), 'unknown key "group" in healthwatch rule file', '"groups"'),
    "a list": ("- alert: A\n", "HW009", (1, 1, 11), "the file must be a healthwatch rule file, not a list", ""),
    "groups a mapping": ("groups: {}\n", "HW009", (1, 9, 11), '"groups" must be a list, not a mapping', ""),
    "no group name": ("groups:\n  - rules: []\n", "HW008", (2, 5, 14), 'group lacks the key "name"', ""),
    "empty group name": ('groups: [{name: "", rules: []}]\n', "HW010", (1, 17, 19), '"name" must not be empty', ""),
    "interval": ("groups: [{name: g, interval: 1m, rules: []}]\n", "HW017", (1, 20, 28), "a group has no interval", "every step"),
    "two groups": ("groups: [{name: g, rules: []}, {name: g, rules: []}]\n", "HW013", (1, 39, 40), 'two groups are called "g"', "line 1"),
    "no expr": (HEAD + "      - alert: A\n        labels: {severity: info}\n", "HW008", (4, 9, 17), 'rule lacks the key "expr" or "when"', ""),
    "expr misspelt": (HEAD + "      - alert: A\n        exp: x\n", "HW007", (5, 9, 12), 'unknown key "exp" in rule', '"expr"'),
    "expr a number": (rule(expr="1"), "HW009", (5, 15, 16), '"expr" must be a PromQL expression, not 1', ""),
    "empty expr": (rule(expr=""), "HW009", (5, 9, 13), '"expr" must be a PromQL expression, not empty', ""),
    "expr and when": (rule("when: {nonfinite: {metric: loss}}"), "HW011", (7, 9, 13), '"expr" and "when" exclude each other', ""),
    "condition misspelt": (HEAD + "      - alert: A\n        when: {spike_ration: {metric: loss}}\n        labels: {severity: info}\n", "HW022", (5, 16, 28), 'no condition is called "spike_ration"', '"spike_ratio"'),
    "condition key misspelt": (HEAD + "      - alert: A\n        when: {spike_ratio: {metric: loss, abov: 3}}\n        labels: {severity: info}\n", "HW007", (5, 44, 48), "", '"above"'),
    "condition metric": (HEAD + "      - alert: A\n        when: {nonfinite: {metric: lss}}\n        labels: {severity: info}\n", "HW012", (5, 36, 39), "", '"loss"'),
    "record": (HEAD + "      - record: r\n        expr: loss\n", "HW017", (4, 9, 15), "recording rules are not supported", "equal parts"),
    "for and for_records": (rule("for: 3", "for_records: 2"), "HW011", (8, 9, 20), '"for" and "for_records" exclude each other', "breaches"),
    "unknown key": (rule("warmpu: 3"), "HW007", (7, 9, 15), 'unknown key "warmpu" in rule', 'did you mean "warmup"?'),
    "arguments beside": (rule("params:", "ratio: 3"), "HW009", (7, 9, 15), '"params" must be a mapping, not empty', ""),
    "bool window": (rule("warmup: true"), "HW009", (7, 17, 21), '"warmup" must be a whole number, not true', ""),
    "zero": (rule("for_records: 0"), "HW010", (7, 22, 23), '"for_records" must be at least 1, not 0', ""),
    "negative": (rule("warmup: -5"), "HW010", (7, 17, 19), '"warmup" must be at least 0, not -5', ""),
    "fraction": (rule("warmup: 2.5"), "HW009", (7, 17, 20), '"warmup" must be a whole number, not 2.5', ""),
    "whole fraction": (rule("warmup: 2.0"), "HW009", (7, 17, 20), '"warmup" must be a whole number, not 2.0', ""),
    "nan": (rule("warmup: .nan"), "HW009", (7, 17, 21), '"warmup" must be a whole number, not .nan', "finite"),
    "infinite param": (rule("params: {k: .inf}", expr="loss > $k"), "HW009", (7, 21, 25), '"k" must be a number or text, not .inf', "finite"),
    "text number": (rule("params: {k: 1e-3}", expr="loss > $k"), "HW009", (7, 21, 25), "YAML reads 1e-3 as text, not as a number", "1.0e-3"),
    "text whole number": (rule("warmup: 5e6"), "HW009", (7, 17, 20), '"warmup" must be a whole number, not the text "5e6"', "write 5000000"),
    "quoted number": (rule('warmup: "60"'), "HW009", (7, 17, 21), '"warmup" must be a whole number, not the text "60"', "remove the quotes"),
    "octal": (rule("warmup: 010"), "HW006", (7, 17, 20), "YAML reads 010 as 8", ""),
    "base 60": (rule("keep_firing_for: 1:30"), "HW006", (7, 26, 30), "YAML reads 1:30 as 90", ""),
    "on": (rule("annotations: {on: x}"), "HW005", (7, 23, 25), "YAML reads the key on as true", '"on":'),
    "off": (rule("escalation: off"), "HW009", (7, 21, 24), '"escalation" must be text, not false (YAML reads off as false)', '"off"'),
    "no": (rule(name="no"), "HW009", (4, 16, 18), '"alert" must be text, not false (YAML reads no as false)', '"no"'),
    "bad duration": (rule("for: 3 steps"), "HW010", (7, 14, 21), '"for": "3 steps" is not a duration', '"10m"'),
    "bad label name": (rule("annotations: {a-b: x}"), "HW010", (7, 23, 26), '"a-b" is not a label name', ""),
    "bad mode": (rule("mode: shadwo"), "HW010", (7, 15, 21), '"mode" can\'t be "shadwo"', 'did you mean "shadow"?'),
    "listed twice": (rule("inhibited_by: [LossSpike, LossSpike]"), "HW010", (7, 23, 45), '"inhibited_by" holds an item twice', ""),
    "unknown inhibitor": (rule("inhibited_by: [AA]"), "HW014", (7, 24, 26), 'no rule is called "AA"', "A"),
    "inhibits itself": (rule("inhibited_by: [A]"), "HW015", (7, 24, 25), "inhibition goes in a circle: A -> A", ""),
    "template": (rule('annotations: {s: "损失 {{ $values }}"}'), "HW016", (7, 33, 40), "$values is not known in a template", "$value"),
    "label template": (rule().replace("severity: warning", "severity: warning, t: '{{ $value }}'"), "HW016", (6, 40, 54), "a label can't hold a template", "annotations"),
    "label lost": (rule('annotations: {s: "{{ $labels.expert }}"}', expr="max without (expert) (tokens_per_expert) > 3"), "HW025", (7, 30, 44), 'the result of expr never carries the label "expert"', "block"),
    "label misspelt": (rule('annotations: {s: "{{ $labels.pram }}"}', expr="micro_norm > 3"), "HW025", (7, 30, 42), 'the result of expr never carries the label "pram"', '"param"'),
    "unused param": (rule("params: {k: 1}"), "HW019", (7, 18, 19), 'no expression uses the parameter "k"', "$k"),
    "no severity": (HEAD + "      - alert: A\n        expr: loss > 1\n", "HW020", (4, 16, 17), "this rule has no severity", "critical"),
    "severity misspelt": (rule(severity="critcal"), "HW020", (6, 28, 35), 'no severity is called "critcal"', '"critical"'),
    "metric misspelt": (rule(expr="avg_over_time(local_nrom[5]) > 1"), "HW012", (5, 29, 39), 'no metric is called "local_nrom"', '"local_norm"'),
    "metric unknown": (rule(expr="abs(my_own) > 1"), "HW012", (5, 19, 25), 'no metric is called "my_own"', "metrics:"),
    "unit": (rule(expr="avg_over_time(loss[5m]) > 1"), "HW106", (5, 34, 36), "5m has a unit, a rule counts steps", ""),
    "unit below": (rule(expr="|\n          loss > 1\n          and avg_over_time(loss[5m]) > 1"), "HW106", (7, 34, 36), "5m has a unit, a rule counts steps", ""),
    "unit folded": (rule(expr=">-\n          loss > 1\n          and avg_over_time(loss[5m]) > 1"), "HW106", (7, 34, 36), "5m has a unit, a rule counts steps", ""),
    "unit in quotes": (rule(expr="'loss{a=\"it''s\"} > avg_over_time(loss[5m])'"), "HW106", (5, 53, 55), "5m has a unit, a rule counts steps", ""),
    "in until": (rule("until: lss >"), "HW101", (7, 21, 22), "the expression ends where an operand must follow", ""),
    "empty file": ("", "HW021", (0, 0, 0), "this file is empty", "groups:"),
}  # fmt: skip


@pytest.mark.parametrize("name", MISTAKES)
def test_one_mistake(load: Load, name: str) -> None:
    text, code, (line, column, end), message, mend = MISTAKES[name]
    found = load(text).diagnostics
    first = next((each for each in found if each.code == code), None)
    assert first is not None, render_text(found)
    assert first.span is not None
    assert (first.span.line, first.span.column, first.span.end_column) == (line, column, end), render_text(found)
    assert first.message == message or not message
    assert mend in first.help
    others = [each for each in found if each.severity == "error" and each is not first]
    assert len(others) == (name == "arguments beside"), render_text(others)


@pytest.mark.parametrize(
    ("old", "new", "code", "mend"),
    [
        ("alert: A", "record: a", "HW017", "write it into the alerts; equal parts are computed once"),
        ("alert: A", "name: A", "HW007", 'did you mean "alert"?'),
        ("expr: loss > 8", "expression: loss > 8", "HW007", 'did you mean "expr"?'),
        ("expr: loss > 8", "query: loss", "HW007", 'did you mean "expr"?'),
        ("expr: loss > 8", "condition: {nonfinite: {metric: loss}}", "HW007", 'did you mean "when"?'),
        ("labels:", "label:", "HW007", 'did you mean "labels"?'),
        ("labels:", "Labels:", "HW007", 'did you mean "labels"?'),
        ("labels: {severity: warning}", "severity: warning", "HW007", "write labels: {severity: ...}"),
        ("annotations:", "annotation:", "HW007", 'did you mean "annotations"?'),
        ("annotations: {action: look}", "action: look", "HW007", "write annotations: {action: ...}"),
        ("expr: loss > 8", "when: {and: [{nonfinite: {metric: loss}}]}", "HW022", 'did you mean "all"?'),
        ("expr: loss > 8", "when: {or: [{nonfinite: {metric: loss}}]}", "HW022", 'did you mean "any"?'),
        ("expr: loss > 8", "when: {nan: {metric: loss}}", "HW022", 'did you mean "nonfinite"?'),
        ("expr: loss > 8", "when: {nonfinite: {metrics: [loss]}}", "HW007", 'did you mean "metric"?'),
    ],
)
def test_another_word_for_a_key_is_one_message(load: Load, old: str, new: str, code: str, mend: str) -> None:
    text = rule()
    assert old in text
    (found,) = load(text.replace(old, new)).diagnostics
    assert (found.code, found.help) == (code, mend)


def test_a_list_of_metrics_declares_them_all_the_same(load: Load) -> None:
    (found,) = load("metrics: [depth, queue]\n" + rule(expr="depth > 8")).diagnostics
    assert (found.code, found.help) == ("HW009", "write {depth: {}, queue: {}}")


def test_a_key_that_stands_for_nothing_leaves_what_is_missing(load: Load) -> None:
    text = rule().replace("labels: {severity: warning}", "zzz: 1").replace("expr:", "xx:")
    assert [each.code for each in load(text).diagnostics] == ["HW008", "HW020", "HW007", "HW007"]


def test_arguments_beside_their_key_are_explained(load: Load) -> None:
    found = load(rule("params:", "ratio: 3")).diagnostics
    assert any(each.help == '"params" above it is empty: indent "ratio" deeper if it belongs there' for each in found)


def test_all_problems_of_all_files(load: Load) -> None:
    loaded = load(rule("warmpu: 1", expr="loss >"), rule("for: x", name="B", expr="rate(loss)"), "a: [")
    assert [each.code for each in errors(loaded.diagnostics)] == ["HW101", "HW007", "HW105", "HW010", "HW003"]
    assert loaded.rules == ()
    assert len({each.span.file for each in loaded.diagnostics if each.span}) == 3


def test_a_broken_rule_leaves_the_others(load: Load) -> None:
    text = rule(expr="loss >") + rule(name="B").removeprefix(HEAD)
    assert [each.name for each in load(text).rules] == ["B"]


def test_two_alerts_of_one_name_in_two_files(load: Load) -> None:
    found = errors(load(rule(), rule()).diagnostics)
    assert [each.code for each in found] == ["HW013"]
    assert found[0].span is not None
    assert found[0].span.file.endswith("rules1.yaml")
    assert found[0].help.endswith("rules0.yaml:4")


def test_a_longer_circle_is_told_at_each_of_its_rules(load: Load) -> None:
    rules = [rule(f"inhibited_by: [{other}]", name=name) for name, other in ("AB", "BC", "CA", "DA")]
    found = errors(load(*rules).diagnostics)
    assert [each.message for each in found] == [
        "inhibition goes in a circle: A -> B -> C -> A",
        "inhibition goes in a circle: B -> C -> A -> B",
        "inhibition goes in a circle: C -> A -> B -> C",
    ]


def test_an_inhibitor_of_a_pack_that_is_not_loaded_is_left_out(load: Load) -> None:
    loaded = load(rule("inhibited_by: [LossNonFinite]"))
    assert loaded.diagnostics == ()
    assert loaded.rules[0].inhibited_by == ()


def test_the_inhibitor_meant_is_the_nearest_of_all_rules(load: Load) -> None:
    named = {
        "LossNonFinit": 'did you mean "LossNonFinite" of builtin:loss?',
        "LosNonFinites": 'did you mean "LossNonFinites"?',
        "GradNonFinite": 'did you mean "GradNormNonFinite" of builtin:gradients?',
        "AB": "loaded rules: LossNonFinites",
    }
    for name, mend in named.items():
        (found,) = load(rule(f"inhibited_by: [{name}]", name="LossNonFinites")).diagnostics
        assert (found.code, found.help) == ("HW014", mend)


@pytest.mark.parametrize(
    ("expr", "params"),
    [
        ("spike_ratio(micro_norm[$window], $min) > $ratio", "{window: 50.5, min: 3, ratio: 8e0}"),
        ("spike_ratio(micro_norm[$window], $min) > $ratio", "{window: 50.5, min: 1e1, ratio: 8}"),
        ("zscore(loss[$window], 16) > 6", "{window: .nan}"),
        ("overflow > $k", "{k: 1e-1}"),
    ],
)
def test_nothing_is_guessed_of_a_parameter_that_cannot_be_used(load: Load, expr: str, params: str) -> None:
    (found,) = load(rule(f"params: {params}", expr=expr)).diagnostics
    assert found.code == "HW009"


def test_every_is_of_sparse_metrics(load: Load) -> None:
    metrics = "metrics:\n  a: {every: 100}\n  b: {every: 20, cadence: micro-step}\n"
    quiet = "  c: {every: 100, cadence: sparse}\n  d: {every: 1}\n  e: {cadence: sparse}\n"
    found = load(metrics + quiet + rule()).diagnostics
    assert [(each.code, each.severity, each.message) for each in found] == [
        ("HW011", "warning", '"every" is of sparse metrics alone, and "a" comes at every step'),
        ("HW011", "warning", '"every" is of sparse metrics alone, and "b" comes at every micro-step'),
    ]
    assert [(each.span.line, each.source[each.span.column - 1 :][:5]) for each in found if each.span] == [
        (2, "every"),
        (3, "every"),
    ]
    assert [each.code for each in load("metrics: {a: {every: 1e2, cadence: often}}\n" + rule()).diagnostics] == [
        "HW009",
        "HW010",
    ]


def test_a_file_that_is_named_twice_is_read_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "r.yaml").write_text(rule("annotations: {action: look}"), encoding="utf-8")
    (tmp_path / "link.yaml").symlink_to("r.yaml")
    for sources in (["./r.yaml", "r.yaml"], [".", str(tmp_path / "r.yaml")], ["r.yaml", "../" + tmp_path.name]):
        loaded = load_rules(sources)
        assert [each.name for each in loaded.rules] == ["A"]
        assert loaded.diagnostics == ()
    assert {each.group for each in load_rules(["builtin:loss", "builtin:loss"]).rules} == {"loss"}
    assert errors(load_rules(["builtin:loss", "builtin:loss"]).diagnostics) == []
    (tmp_path / "train.yaml").write_text("healthwatch: {rules: [./r.yaml, r.yaml, link.yaml]}\n", encoding="utf-8")
    config, found = load_config("train.yaml")
    assert config is not None
    assert (found, [Path(each["source"]).name for each in describe(config)["rules"]]) == ([], ["r.yaml"])
    assert check(["r.yaml", "./r.yaml"]).summary == "1 file checked, no problems"


def test_overrides(load: Load) -> None:
    text = rule("params: {k: 8}", "escalation: day", expr="loss > $k")
    loaded = load(
        text, A={"params": {"k": 12.5, "z": 1}, "labels": {"severity": "critical", "n": 2}, "escalation": "night"}
    )
    (found,) = loaded.rules
    assert found.params == {"k": 12.5}
    assert found.labels == {"severity": "critical", "n": "2"}
    assert found.ladder == "night"
    assert "12.5" in repr(found.expression.tree)


def test_a_disabled_rule_is_checked_but_left_out(load: Load) -> None:
    text = rule() + rule("inhibited_by: [A]", name="B").removeprefix(HEAD)
    loaded = load(text, A={"enabled": False})
    assert loaded.diagnostics == ()
    assert [(each.name, each.inhibited_by) for each in loaded.rules] == [("B", ())]
    assert errors(load(rule(expr="loss >"), A={"enabled": False}).diagnostics)


def test_sources(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(rule(), encoding="utf-8")
    (tmp_path / "b.yml").write_text(rule(name="B"), encoding="utf-8")
    (tmp_path / "a.test.yaml").write_text("tests: []", encoding="utf-8")
    (tmp_path / "notes.txt").write_text("no rules", encoding="utf-8")
    (tmp_path / "empty").mkdir()
    assert [each.name for each in load_rules([tmp_path]).rules] == ["A", "B"]
    assert [each.name for each in load_rules([str(tmp_path / "b.yml")]).rules] == ["B"]
    missing, pack, empty = load_rules([tmp_path / "no.yaml", "builtin:los", tmp_path / "empty"]).diagnostics
    assert (missing.code, missing.message) == ("HW001", "there is no such file")
    assert (pack.code, pack.message) == ("HW018", 'no pack is called "los"')
    assert "loss" in pack.help
    assert (empty.code, empty.message) == ("HW018", "this folder holds no rule file")


def test_the_rule_stands_behind_the_carets(load: Load) -> None:
    assert {each.label for each in load(rule(expr="lss > 5m")).diagnostics} == {'rule "A"'}


@pytest.mark.parametrize("line", ["fro: 3", "for: true", "warmup: -1", "limit: 010", "for_records: [3]"])
def test_whatever_is_wrong_in_a_rule_names_it(load: Load, line: str) -> None:
    """What the schema and YAML itself refuse as well: in a file of 40 rules the line alone is a search."""
    (found,) = load(rule(line, name="Spike")).diagnostics
    assert found.label == 'rule "Spike"'


@pytest.mark.parametrize(
    ("line", "code", "says"),
    [
        ("params: {1: 2}", "HW010", '"1" is not a parameter name'),
        ("params: {2.5: 2}", "HW010", '"2.5" is not a parameter name'),
        ("params: {a-b: 2}", "HW010", '"a-b" is not a parameter name'),
        ("params: {$k: 2}", "HW010", '"$k" is not a parameter name'),
        ("params: {on: 2}", "HW005", "YAML reads the key on as true"),
        ("params: {é: 2}", "HW010", '"é" is not a parameter name'),
        ("annotations: {4: x, action: look}", "HW010", '"4" is not a label name'),
        ("params: {[a]: 2}", "HW005", "a key must be text"),
        ("annotations: {{a: 1}: x, action: look}", "HW005", "a key must be text"),
        ("[warmup]: 3", "HW005", "a key must be text"),
    ],
)
def test_a_key_that_is_no_name_is_told_once(load: Load, line: str, code: str, says: str) -> None:
    (found,) = load(rule(line)).diagnostics
    assert (found.code, found.message, found.label) == (code, says, 'rule "A"')
    assert ("has a-z, A-Z, 0-9 and _, and begins with no digit" in found.help) == (code == "HW010")


def test_a_rule_without_a_name_is_checked_all_the_same(load: Load) -> None:
    found = load("""
groups:
  - name: g
    rules:
      - expr: losss{a=~'['} > $k and foo(loss)
      - expr: lr > 1
""").diagnostics
    errors = [each.code for each in found if each.severity == "error"]
    assert errors == ["HW008", "HW012", "HW110", "HW107", "HW103", "HW008"]
    assert 'rule ""' not in "".join(str(each.label) for each in found)


def test_beside_an_expression_a_condition_is_checked_too(load: Load) -> None:
    found = load("""
groups:
  - name: g
    rules:
      - alert: Both
        expr: loss > 5 and foo(loss)
        when: {threshold: {metric: losss, above: 5}}
""").diagnostics
    assert [each.code for each in found if each.severity == "error"] == ["HW103", "HW011", "HW012"]


@pytest.mark.parametrize(("severity", "codes"), [("critical", []), ("warm", ["HW020"])])
def test_a_bad_label_hides_no_severity(load: Load, severity: str, codes: list[str]) -> None:
    found = load(rule(f"labels: {{severity: {severity}, 'a-b': 1}}")).diagnostics
    assert [each.code for each in found if each.code == "HW020"] == codes
    assert all("has no severity" not in each.message for each in found)
    assert any(each.severity == "error" for each in found)


def test_a_config_beside_its_rules_is_no_rule_file(tmp_path: Path) -> None:
    rule = "groups: [{name: g, rules: [{alert: High, expr: loss > 5, labels: {severity: info}}]}]\n"
    (tmp_path / "rules.yaml").write_text(rule, encoding="utf-8")
    config = tmp_path / "train.yaml"
    config.write_text("model: {}\nhealthwatch: {rules: [rules.yaml]}\n", encoding="utf-8")
    folder = load_rules([tmp_path])
    assert [each.name for each in folder.rules] == ["High"]
    assert not [each for each in folder.diagnostics if each.severity == "error"]
    (named,) = load_rules([config]).diagnostics
    assert named.span is not None
    assert (named.code, named.message, named.span.line) == ("HW021", "this is a config, not a rule file", 2)
    (tmp_path / "rules.yaml").unlink()
    (empty,) = load_rules([tmp_path]).diagnostics
    assert empty.message == "this folder holds no rule file"


def test_a_groups_wrong_labels_are_told_once_at_the_group(tmp_path: Path) -> None:
    own = ("severity: critical", "team: a")
    rules = ", ".join(f"{{alert: A{n}, expr: loss > 3, labels: {{{own[n % 2]}}}}}" for n in range(4))
    text = f"groups: [{{name: g, labels: {{severity: warnning, x: '{{{{ 1 }}}}'}}, rules: [{rules}]}}]\n"
    (tmp_path / "r.yaml").write_text(text, encoding="utf-8")
    loaded = load_rules([tmp_path / "r.yaml"])
    found = [each for each in loaded.diagnostics if each.code in ("HW016", "HW020")]
    places = [each.source[each.span.column - 1 : each.span.end_column - 1] for each in found if each.span]
    assert [(each.code, each.label) for each in found] == [("HW020", ""), ("HW016", "")]
    assert places == ["warnning", "'{{ 1 }}'"]
    assert loaded.rules == ()


def test_an_overrides_wrong_severity_stands_at_the_rule_and_not_at_its_group(tmp_path: Path) -> None:
    text = "groups: [{name: g, labels: {severity: warning}, rules: [{alert: A, expr: loss > 3}]}]\n"
    (tmp_path / "r.yaml").write_text(text, encoding="utf-8")
    (found,) = load_rules([tmp_path / "r.yaml"], {"A": {"labels": {"severity": "criticl"}}}).overridden
    assert (found.path, found.found.code, found.found.label) == (("labels", "severity"), "HW020", 'rule "A"')
