"""test, explain and schema as they are typed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner
from jsonschema import Draft202012Validator

from healthwatch.cli import group
from healthwatch.cli.schema import NAMES

RULES = """
groups:
  - name: test
    rules:
      - alert: High
        when: {threshold: {metric: loss, above: $most}}
        params: {most: 5}
        for: 3
        labels: {severity: critical}
        annotations: {summary: "loss is {{ $value }}", action: Look.}
"""
TEST = """
rule_files: [rules.yaml]
tests:
  - name: high
    input_series: [{series: loss, values: 1 9x5}]
    alert_rule_test: [{eval_time: 4, alertname: High, exp_alerts: [{exp_labels: {severity: critical}}]}]
"""


def run(*args: str):
    return CliRunner().invoke(group, list(args))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "rules.yaml").write_text(RULES, encoding="utf-8")
    (tmp_path / "good.test.yaml").write_text(TEST, encoding="utf-8")
    return tmp_path


class TestTest:
    def test_passes(self, folder):
        said = run("test", str(folder))
        assert (said.exit_code, said.output.splitlines()[-1]) == (0, "1 passed, 0 failed")
        assert said.output.startswith("ok ")
        assert run("test", "-q", str(folder)).output == "1 passed, 0 failed\n"

    def test_fails(self, folder):
        (folder / "bad.test.yaml").write_text(TEST.replace("eval_time: 4", "eval_time: 3"), encoding="utf-8")
        said = run("test", str(folder / "bad.test.yaml"), str(folder / "good.test.yaml"))
        assert said.exit_code == 1
        assert "bad.test.yaml:6:35: High: alerts that fire at step 3" in said.output
        assert said.output.splitlines()[-1] == "1 passed, 1 failed"

    def test_could_not_run(self, folder):
        (folder / "bad.test.yaml").write_text(TEST.replace("eval_time", "evaltime"), encoding="utf-8")
        said = run("test", str(folder))
        assert said.exit_code == 2
        assert 'unknown key "evaltime"' in said.output
        assert "1 of 2 files could not be run" in said.output
        assert run("test", str(folder / "nowhere.test.yaml")).exit_code == 2

    def test_nothing_to_run(self, tmp_path):
        assert run("test", str(tmp_path)).exit_code == 2


class TestExplain:
    @pytest.mark.parametrize(
        ("name", "parts"),
        [
            ("spike_ratio", ["A value many times its own recent median", "expr: spike_ratio(micro_norm", "Not for:"]),
            (
                "LossNonFinite",
                ["a rule of group loss", 'expr: nonfinite({__name__=~"(.*_)?loss"})', "keep_firing_for: 10"],
            ),
            ("max_attention_logit", ["a metric (gauge, step)", "labels: block, layer, mtp_idx, head"]),
            ("deriv", ["deriv: a function of PromQL", "deriv(window)", "slope", "gives a vector", "deriv(finite("]),
            ("ema", ["ema: a function of healthwatch", "ema(window, min_samples = 3)", "formula ", "NaN "]),
            ("topk", ["topk: an aggregation of PromQL", "topk(k, vector)", "by (label, ...)"]),
            ("group_left", ["a modifier of PromQL", "group_left (label) right"]),
            ("@", ["a modifier of PromQL", "Not in a rule"]),
            ("-", ["an operator of PromQL", "left - right"]),
            (">=", ["an operator of PromQL", "left >= right"]),
            ("UNLESS", ["unless: an operator of PromQL"]),
            ("ema()", ["ema: a function of healthwatch"]),
            ("[50]", ["selector[window]", "(now - window, now]"]),
            ("[50:5]", ["A subquery"]),
            ("until", ["until: a key of a rule", "result with the alert's labels", "a PromQL expression"]),
            ("for_records", ["breaching steps"]),
            ("for:", ["for: a key of a rule", "takes    a duration", "default  0"]),
            ("mode", ["one of   active, shadow"]),
            ("lookback", ["lookback: a key of a group"]),
            ("quorum", ["combines conditions", "{{ $value }}"]),
            ("all", ["the value of the first"]),
            ("any", ["one of its conditions"]),
            ("not", ["There is no `not` of"]),
            ("HW012", ["unknown metric", "metrics:"]),
            ("hw012", ["unknown metric"]),
            ("conditions", ["nonfinite ", "stalled "]),
            ("metrics", ["loss ", "router_topk "]),
            ("rules", ["ExpertDead ", "RankSlow "]),
            ("functions", ["robust_zscore  ", "\nAggregations:\n", "\nOperators:\n", "  by  "]),
            ("codes", ["HW001 ", "HW201 "]),
        ],
    )
    def test_says_what_it_is(self, name, parts):
        said = run("explain", name)
        assert said.exit_code == 0
        assert [part for part in parts if part not in said.output] == []

    def test_a_rule_of_ones_own_with_what_its_condition_stands_for(self, folder):
        said = run("explain", "High", "--rules", str(folder / "rules.yaml"))
        assert "  expr: loss > 5\n" in said.output
        assert "  for: 3 steps\n" in said.output
        assert "  params: most = 5\n" in said.output

    def test_a_rule_as_a_config_has_it(self, folder):
        (folder / "train.yaml").write_text(
            "healthwatch:\n  rules: [./rules.yaml]\n  override: {High: {params: {most: 7}}}\n", encoding="utf-8"
        )
        assert "  params: most = 7\n" in run("explain", "High", "-r", str(folder / "train.yaml")).output

    def test_a_metric_that_a_file_declares(self, folder):
        declared = "metrics:\n  queue_depth: {unit: batches, labels: [queue], help: Batches that wait.}\n"
        (folder / "rules.yaml").write_text(declared + RULES, encoding="utf-8")
        said = run("explain", "queue_depth", "-r", str(folder / "rules.yaml"))
        assert said.output.startswith("queue_depth: a metric (gauge, step, in batches)\n\n  Batches that wait.\n")
        assert "labels: queue;" in said.output
        assert "queue_depth " in run("explain", "metrics", "-r", str(folder / "rules.yaml")).output
        assert run("explain", "queue_depht", "-r", str(folder / "rules.yaml")).output.endswith('"queue_depth"?\n')
        assert run("explain", "queue_depth").exit_code == 2

    def test_a_rule_with_an_error_is_not_simply_unknown(self, folder):
        (folder / "rules.yaml").write_text(RULES.replace("above", "abov"), encoding="utf-8")
        said = run("explain", "High", "-r", str(folder / "rules.yaml"))
        assert said.exit_code == 2
        assert 'did you mean "above"?' in said.output
        assert "there is no such file" in run("explain", "High", "-r", str(folder / "nowhere.yaml")).output

    @pytest.mark.parametrize(
        "words", [("mine.yaml", "High"), ("High", "mine.yaml"), ("builtin:loss", "High"), (".", "High")]
    )
    def test_files_stand_behind_an_option(self, words):
        said = run("explain", *words)
        (file,) = {*words} - {"High"}
        assert said.exit_code == 2
        assert f"files to look into stand behind -r: healthwatch explain -r {file} High\n" in said.output
        assert "one name at a time, not loss and lr\n" in run("explain", "loss", "lr").output

    def test_nothing_of_that_name(self):
        said = run("explain", "spike_ration")
        assert (said.exit_code, said.output) == (2, 'nothing is called "spike_ration"; did you mean "spike_ratio"?\n')
        said = run("explain", "-r", "builtin:loss", "GradNormSpike")
        help_ = "it is a rule of builtin:gradients, which is not among the files"
        assert (said.exit_code, said.output) == (2, f'nothing is called "GradNormSpike"; {help_}\n')
        assert run("explain", "group_lef").output == 'nothing is called "group_lef"; did you mean "group_left"?\n'
        assert run("explain", "for_record").output == 'nothing is called "for_record"; did you mean "for_records"?\n'
        assert run("explain", "quantil").output == 'nothing is called "quantil"; did you mean "quantile"?\n'
        assert run("explain", "qqqqqq").output.endswith(
            "explain conditions|metrics|rules|codes|functions; for what your own files name: -r FILE\n"
        )


class TestSchema:
    @pytest.mark.parametrize("name", NAMES)
    def test_is_a_schema(self, name):
        said = run("schema", name)
        assert said.exit_code == 0
        schema = json.loads(said.output)
        Draft202012Validator.check_schema(schema)
        assert schema["description"]

    def test_is_written_to_a_file(self, tmp_path):
        assert run("schema", "rules", "-o", str(tmp_path / "s.json")).output == ""
        assert json.loads((tmp_path / "s.json").read_text(encoding="utf-8")) == json.loads(run("schema").output)


PLUG_IN = """
from healthwatch.rulefile.conditions import Arguments, Condition, Expansion, Test
from healthwatch.rulefile.conditions.spec import SERIES


def expand(args: Arguments) -> Expansion:
    return Expansion((Test.of(f"{args.selector} / {args.selector} offset 10", "<", "0.5"),))


HALVED = Condition(
    name="halved", summary="Half of what it was.", finds="Values that have halved.", formula="x / x ten steps ago",
    source="a plug-in", example={"metric": "loss"}, not_for="anything else", labels="of the series", value="ratio",
    parameters=SERIES, expand=expand,
)
"""


def test_a_condition_of_another_package_is_like_a_built_in(tmp_path, folder):
    """Installed as pip would: a module, and its metadata with the entry points."""
    (tmp_path / "somebodys_conditions.py").write_text(PLUG_IN, encoding="utf-8")
    metadata = tmp_path / "somebodys_conditions-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: somebodys-conditions\nVersion: 1.0\n", encoding="utf-8"
    )
    entries = "halved = somebodys_conditions:HALVED\nbroken = somebodys_conditions:NOTHING\n"
    (metadata / "entry_points.txt").write_text(f"[healthwatch.conditions]\n{entries}", encoding="utf-8")
    (folder / "rules.yaml").write_text(
        RULES.replace("{threshold: {metric: loss, above: $most}}", "{halved: {metric: loss}}").replace(
            "        params: {most: 5}\n", ""
        ),
        encoding="utf-8",
    )

    def cli(*args: str) -> subprocess.CompletedProcess[str]:
        paths = os.pathsep.join((str(tmp_path), *filter(None, [os.environ.get("PYTHONPATH")])))
        command = [sys.executable, "-m", "healthwatch.cli", *args]
        return subprocess.run(
            command, capture_output=True, text=True, check=False, env={**os.environ, "PYTHONPATH": paths}
        )

    schema = cli("schema", "rules")
    assert "halved" in json.loads(schema.stdout)["$defs"]["when"]["properties"]
    assert "broken = somebodys_conditions:NOTHING" in schema.stderr
    assert "expr: loss / loss offset 10 < 0.5" in cli("explain", "halved").stdout
    assert "expr: loss / loss offset 10 < 0.5" in cli("explain", "High", "-r", str(folder / "rules.yaml")).stdout
    assert cli("check", str(folder / "rules.yaml")).returncode == 0
