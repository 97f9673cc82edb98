"""The public cases on configuration files, translated to healthwatch's keys, and the whole kinds behind them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

from healthwatch.alerting.escalation import Policy
from healthwatch.cli import group
from healthwatch.config import LadderStep, load_all
from healthwatch.diagnostics import Diagnostic, errors, render_text
from healthwatch.engine import Engine
from healthwatch.rulefile import Loaded, load_rules
from healthwatch.stream import Duration, Frame, SeriesTable

HEAD = "groups:\n  - name: g\n    rules:\n"


def rule(name: str, *lines: str) -> str:
    own = [*lines, "labels: {severity: warning}", "annotations: {action: look}"]
    return f"      - alert: {name}\n" + "".join(f"        {line}\n" for line in own)


def when(case: dict[str, str]) -> list[str]:
    """A rule of the cases' neutral notation as written: name, metric, a bound, a window."""
    parts = ", ".join(f"{key}: {value}" for key, value in case.items() if key != "name")
    condition = "spike_ratio" if "window" in case else "threshold"
    return [f"when: {{{condition}: {{{parts}}}}}"]


def written(text: str) -> list[dict[str, str]]:
    """The rules of a case with every value as its text: no YAML in between."""
    items = re.split(r"(?m)^  - ", text.split("rules:\n", 1)[1])[1:]
    return [dict(re.findall(r"(\w+):\s*([^,}\n]+?)\s*(?=[,}\n]|$)", item.strip().strip("{}") + "\n")) for item in items]


def load(folder: Path, text: str) -> Loaded:
    (folder / "r.yaml").write_text(HEAD + text, encoding="utf-8")
    return load_rules([folder / "r.yaml"])


def told(loaded: Loaded, name: str) -> list[Diagnostic]:
    return [found for found in loaded.diagnostics if f'rule "{name}"' in found.label or found.span is None]


def test_051_numbers_that_yaml_reads_as_text(shared: Path, tmp_path: Path) -> None:
    cases = written((shared / "cases/051-yaml-1e-3-is-a-string/rules.yaml").read_text(encoding="utf-8"))
    by_name = {case["name"]: case for case in cases}
    assert by_name["tiny_lr"]["below"] == "1e-3"
    loaded = load(tmp_path, "".join(rule(case["name"], *when(case)) for case in cases))
    for name, hint in (("tiny_lr", "1.0e-3"), ("big_norm", "5.0e+6")):
        (found,) = told(loaded, name)
        assert found.severity == "error"
        assert hint in found.help
    odd = [found.message for found in loaded.diagnostics if found.code == "HW006"]
    assert odd == ["YAML reads 1:30 as 90", "YAML reads 010 as 8"]
    assert [each.name for each in loaded.rules] == ["plain"]


def test_052_words_that_yaml_reads_as_true(shared: Path, tmp_path: Path) -> None:
    text = (shared / "cases/052-yaml-on-off-no-keys/rules.yaml").read_text(encoding="utf-8")
    assert "on: loss" in text
    assert "name: no" in text
    loaded = load(
        tmp_path, rule("no", "on: loss", "expr: loss > 10", "escalation: off") + rule('"y"', "expr: grad_norm > 100")
    )
    assert [each.name for each in loaded.rules] == ["y"]
    shown = [(found.code, found.message, found.help) for found in loaded.diagnostics]
    assert ("HW005", "YAML reads the key on as true", 'quote it: "on":') in shown
    assert any(code == "HW009" and '"alert"' in message and mend == 'quote it: "no"' for code, message, mend in shown)
    assert any(
        code == "HW009" and '"escalation"' in message and mend == 'quote it: "off"' for code, message, mend in shown
    )


def test_053_duplicates(shared: Path, tmp_path: Path) -> None:
    text = (shared / "cases/053-yaml-duplicate-keys/rules.yaml").read_text(encoding="utf-8")
    spike, other = re.split(r"(?m)^  - ", text.split("rules:\n", 1)[1])[1:]
    assert spike.count("above:") == 2
    assert "name: spike" in other
    loaded = load(
        tmp_path,
        rule("spike", "expr: grad_norm > 5", "warmup: 100", "expr: grad_norm > 500") + rule("spike", "expr: loss > 20"),
    )
    duplicate, name = loaded.diagnostics
    assert (duplicate.code, duplicate.span.line if duplicate.span else 0, duplicate.label) == (
        "HW004",
        7,
        "first on line 5",
    )
    assert (name.code, name.help) == ("HW013", f"the first one stands at {tmp_path / 'r.yaml'}:4")
    base = HEAD.replace(
        "groups:", "x: &base {expr: grad_norm > 5, labels: {severity: info}, annotations: {action: a}}\ngroups:"
    )
    (tmp_path / "merge.yaml").write_text(
        base.replace("x: &base", "metrics: &none {}\ngroups:\n  - name: b\n    rules:\n      - &base")
        .split("\ngroups:\n  - name: g")[0]
        .replace("{expr", "{alert: spike_a, expr")
        + "\n      - {<<: *base, alert: spike_b, expr: grad_norm > 50}\n",
        encoding="utf-8",
    )
    merged = load_rules([tmp_path / "merge.yaml"])
    assert merged.diagnostics == (), render_text(merged.diagnostics)
    assert [(each.name, each.expression.text) for each in merged.rules] == [
        ("spike_a", "grad_norm > 5"),
        ("spike_b", "grad_norm > 50"),
    ]


def test_055_a_folder_with_one_good_file_of_three(shared: Path, tmp_path: Path) -> None:
    source = shared / "cases/055-yaml-wrong-indent-three-objects/rules.d"
    folder = tmp_path / "rules.d"
    folder.mkdir()
    assert {file.name for file in source.iterdir()} == {"good.yaml", "bad_indent.yaml", "broken.yaml"}
    (folder / "good.yaml").write_text(HEAD + rule("nan", "expr: nonfinite(loss)"), encoding="utf-8")
    bad = HEAD + rule("spike", "expr: grad_norm > $k", "params:", "k: 100")
    (folder / "bad_indent.yaml").write_text(bad, encoding="utf-8")
    (folder / "broken.yaml").write_text((source / "broken.yaml").read_text(encoding="utf-8"), encoding="utf-8")
    result = CliRunner().invoke(group, ["check", str(folder)])
    assert result.exit_code == 1
    assert "1 of 3 files without problems, 2 with:" in result.output
    assert 'unknown key "k" in rule' in result.output
    assert '"params" above it is empty: indent "k" deeper if it belongs there' in result.output
    assert re.search(r"broken\.yaml:[67]:\d+: error\[HW003\]", result.output)


def test_055_the_options_of_an_action_beside_it(tmp_path: Path) -> None:
    """As in the case, where it hurt: `profile:` with its options one level too far out."""
    (tmp_path / "train.yaml").write_text(
        "healthwatch:\n  rules: [builtin:loss]\n  escalation:\n    critical:\n      - profile:\n        steps: 3\n",
        encoding="utf-8",
    )
    (found,) = errors(load_all(tmp_path / "train.yaml").diagnostics)
    assert (found.code, found.message) == ("HW007", 'unknown key "steps" in ladder step')
    assert found.help == '"profile" above it is empty: indent "steps" deeper if it belongs there'


def test_056_bounds_that_are_no_numbers(shared: Path, tmp_path: Path) -> None:
    cases = written((shared / "cases/056-schema-nan-and-bool-thresholds/rules.yaml").read_text(encoding="utf-8"))
    assert {case["name"] for case in cases} == {"r_nan", "r_inf", "r_bool", "r_zero", "r_neg", "r_frac", "r_ok"}
    loaded = load(tmp_path, "".join(rule(case["name"], *when(case)) for case in cases))
    assert [each.name for each in loaded.rules] == ["r_ok"]
    for case in cases[:-1]:
        (found,) = told(loaded, case["name"])
        assert found.severity == "error"
        assert found.code in ("HW009", "HW010")
        key = "above" if case["name"] in ("r_nan", "r_inf") else "window"
        assert found.source[: found.span.column - 1 if found.span else 0].rstrip().endswith(f"{key}:")


@pytest.mark.parametrize(("word", "read"), [("yes", "true"), ("Off", "false"), ("on", "true"), ("NO", "false")])
def test_056_a_word_where_a_bound_is_needed_is_explained(tmp_path: Path, word: str, read: str) -> None:
    (found,) = load(tmp_path, rule("A", f"when: {{threshold: {{metric: loss, above: {word}}}}}")).diagnostics
    assert (found.message, found.help) == (f'"above" is a number, not {read}', f"YAML reads {word} as {read}")


INTEGER_KEYS = ("warmup", "settle", "for_records", "limit", "for", "keep_firing_for")
ODD_INTEGERS = (
    ".nan",
    ".inf",
    "-.inf",
    "true",
    "off",
    "-5",
    "2.5",
    "1e3",
    "010",
    "1:30",
    "0x10",
    "1_000",
    "0b11",
    '"5"',
    "[5]",
    "five",
)


@pytest.mark.parametrize("key", INTEGER_KEYS)
@pytest.mark.parametrize("value", ODD_INTEGERS)
def test_no_odd_value_passes_where_a_whole_number_is_needed(tmp_path: Path, key: str, value: str) -> None:
    loaded = load(tmp_path, rule("A", "expr: loss > 3", f"{key}: {value}"))
    (found,) = [each for each in loaded.diagnostics if each.severity == "error"]
    assert loaded.rules == ()
    assert found.span is not None
    assert (found.span.line, found.span.column) == (6, 9 + len(key) + 2)
    assert key in found.message or "YAML reads" in found.message


CONFIG_NUMBERS = ("no_data_after", "top_k", "capture.max_captures", "capture.cooldown", "capture.reference_at")


@pytest.mark.parametrize("key", CONFIG_NUMBERS)
@pytest.mark.parametrize("value", ODD_INTEGERS)
def test_nor_in_a_config(tmp_path: Path, key: str, value: str) -> None:
    outer, _, inner = key.partition(".")
    text = f"{outer}: {{{inner}: {value}}}" if inner else f"{outer}: {value}"
    (tmp_path / "c.yaml").write_text(f"healthwatch:\n  rules: [builtin:loss]\n  {text}\n", encoding="utf-8")
    checked = load_all(tmp_path / "c.yaml")
    (found,) = [each for each in checked.diagnostics if each.severity == "error"]
    assert checked.config is None
    assert found.span is not None
    assert found.span.line == 3


@pytest.mark.parametrize("value", [".nan", ".inf", "-.inf", "true", "1e-3", "5e6", "010", "1:30", "0x10", "1_000"])
@pytest.mark.parametrize("place", ["params", "when", "override"])
def test_no_odd_bound_passes(tmp_path: Path, value: str, place: str) -> None:
    lines = {
        "params": ["expr: loss > $k", f"params: {{k: {value}}}"],
        "when": [f"when: {{threshold: {{metric: loss, above: {value}}}}}"],
        "override": ["expr: loss > $k", "params: {k: 3}"],
    }[place]
    (tmp_path / "r.yaml").write_text(HEAD + rule("A", *lines), encoding="utf-8")
    config = "healthwatch:\n  rules: [r.yaml]\n"
    config += f"  override: {{A: {{params: {{k: {value}}}}}}}\n" if place == "override" else ""
    (tmp_path / "c.yaml").write_text(config, encoding="utf-8")
    checked = load_all(tmp_path / "c.yaml")
    assert checked.config is None
    found = [each for each in checked.diagnostics if each.severity == "error"]
    assert len(found) == 1, render_text(checked.diagnostics)
    assert value in found[0].source


@pytest.mark.parametrize("word", ["on", "off", "yes", "no", "Yes", "NO", "true", "12", "1.5", "~", "null"])
def test_keys_and_names_that_yaml_reads_as_something_else(tmp_path: Path, word: str) -> None:
    key = load(tmp_path, rule("A", "expr: loss > 3", f"{word}: x"))
    assert "HW005" in [found.code for found in key.diagnostics]
    assert key.rules == ()
    name = load(tmp_path, rule(word, "expr: loss > 3"))
    assert name.rules == ()
    assert name.diagnostics
    quoted = load(tmp_path, rule(f'"{word}"', "expr: loss > 3"))
    assert [each.name for each in quoted.rules] == [word]


NOTIFY = Policy(lambda _: (LadderStep("notify", "oncall"),), lambda _: (), lambda _: Duration(steps=50))


@pytest.mark.parametrize(("stream", "fires"), [("A", 5), ("B", 7), ("C", 3)])
def test_057_a_lost_sample_is_neither_true_nor_false(shared: Path, tmp_path: Path, stream: str, fires: int) -> None:
    path = shared / f"cases/057-for-clause-missing-sample-flaps/{stream}.jsonl"
    rows: list[dict[str, Any]] = [yaml.safe_load(line) for line in path.read_text(encoding="utf-8").splitlines()]
    loaded = load(tmp_path, rule("High", "expr: loss > 5", "for_records: 3"))
    table = SeriesTable()
    engine, series = Engine(loaded.rules, table, NOTIFY), table.register("loss", [{}])
    fired, told_of = [], []
    for row in rows:
        frame = Frame(row["step"])
        if "loss" in row:
            frame.add(series, [row["loss"]])
        frame.close()
        outcome = engine.step(frame)
        fired += [each.now.step for each in outcome.transitions if each.reason == "fired"]
        told_of += [intent.reason for intent in outcome.intents]
    assert (fired, told_of) == ([fires], ["opened"])


def test_an_expression_that_yaml_takes_for_a_mapping_is_to_be_quoted(tmp_path: Path) -> None:
    (found,) = load(tmp_path, rule("A", 'expr: {split="val"}')).diagnostics
    assert (found.code, found.help) == ("HW009", "put single quotes around an expression that begins with {")
