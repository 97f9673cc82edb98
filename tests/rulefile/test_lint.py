"""What a rule may say and hardly means: each check on rules that it warns of, and on their neighbours."""
# ruff: noqa: E501 - the tables have one line for each rule

from __future__ import annotations

import math
import re
from itertools import product
from pathlib import Path

import numpy as np
import pytest

from healthwatch import resources
from healthwatch.config import load_all
from healthwatch.diagnostics import Diagnostic, render_text
from healthwatch.engine import Engine, Outcome
from healthwatch.promql import ast
from healthwatch.promql.parse import parse
from healthwatch.rulefile import load_rules
from healthwatch.rulefile.lint import Facts
from healthwatch.stream import Frame, SeriesTable
from healthwatch.stream.catalogue import catalogue

HEAD = """
metrics:
  val_loss: {cadence: sparse, every: 100}
  rare: {cadence: sparse, labels: []}
  queue: {labels: [shard]}
  stage: {labels: [part]}
  throughput: {cadence: micro-step}
groups:
  - name: g
    rules:
      - alert: A
        labels: {severity: warning}
        annotations: {action: look}
"""


def lint(folder: Path, rule: str, facts: Facts | None = None) -> list[Diagnostic]:
    path = folder / "r.yaml"
    path.write_text(HEAD + "".join(f"        {line}\n" for line in rule.splitlines()), encoding="utf-8")
    return list(load_rules([path], {}, facts or Facts()).diagnostics)


def marked(found: Diagnostic) -> str:
    assert found.span is not None
    return found.source[found.span.column - 1 : found.span.end_column - 1]


@pytest.mark.parametrize(
    ("rule", "code", "severity", "under", "says"),
    [
        ("expr: max by (layer) (max_attention_logit) > 100 and deriv(max_attention_logit[500]) > 0", "HW024", "error", "and", 'the left one has no label "block"'),
        ("expr: max_over_time(avg_over_time(loss[20])[10000:]) > 5", "HW040", "warning", "avg_over_time(loss[20])[10000:]", "a subquery of 10,000 points: the first step waits about 1 s"),
        ("expr: max_over_time(avg_over_time(loss[20])[10000:15]) > 5", "HW040", "warning", "avg_over_time(loss[20])[10000:15]", "[10000:20]"),
        ("expr: max_over_time(max_over_time(loss[50:])[30:]) > 5", "HW040", "warning", "max_over_time(loss[50:])[30:]", "such as [30:3]"),
        ("expr: loss > 5\nuntil: min_over_time(rate(loss[5])[2000:2]) > 1", "HW040", "warning", "rate(loss[5])[2000:2]", "about 100 ms"),
        ("expr: micro_norm / grad_norm > 3", "HW024", "error", "/", "ignoring (param) group_left ()"),
        ('expr: router_topk{layer="1"} > 1 and router_topk{layer="2"} > 1', "HW024", "error", "and", '"layer" is "1" on the left and "2" on the right'),
        ("expr: loss > 3 unless micro_norm > 1", "HW024", "error", "unless", "it excludes nothing"),
        ("expr: sum by (layer) (tokens_per_expert) > on (layer, expert) tokens_per_expert", "HW024", "error", ">", "write > on (layer) group_right ()"),
        ("expr: loss > 3\nuntil: loss > micro_norm", "HW024", "error", ">", ""),
        ('expr: micro_norm{parm="x"} > 3', "HW023", "error", "parm", 'did you mean "param"?'),
        ('expr: micro_norm{task="x"} > 3', "HW023", "warning", "task", "its labels: param"),
        ("expr: max by (layr) (max_attention_logit) > 3", "HW023", "error", "layr", 'did you mean "layer"?'),
        ("expr: loss / ignoring (spilt) grad_norm > 3", "HW023", "error", "spilt", 'did you mean "split"?'),
        ('expr: loss{split="a", split="b"} > 3', "HW026", "error", 'split="b"', "one thing at a time"),
        ('expr: loss{split="a", split=~"b|c"} > 3', "HW026", "error", 'split=~"b|c"', ""),
        ('expr: max_attention_logit{head=""} > 1', "HW026", "error", 'head=""', 'every series has a "head"'),
        ('expr: loss{split!~".*"} > 1', "HW026", "error", 'split!~".*"', ""),
        ("expr: val_loss > 3\nfor: 3", "HW027", "warning", "3", "comes only every 100 steps"),
        ("expr: rare > 3\nfor: 1", "HW027", "warning", "1", "comes only now and then"),
        ("expr: spike_ratio(micro_norm[50]) > 8", "HW029", "warning", "spike_ratio(micro_norm[50]) > 8", "about 690 false alarms a day"),
        ("expr: (robust_zscore(micro_norm[128], 16) > 6 and spike_ratio(micro_norm[50]) > 3)\nfor_records: 2", "HW029", "warning", "", "about 390 false"),
        ("when: {zscore: {metric: micro_norm}}", "HW029", "warning", "when", "for_records: 3"),
        ("when: {drop: {metric: tokens_per_expert, below: 0.5}}", "HW029", "warning", "when", "8,000 series"),
        ("expr: overflow > 1", "HW036", "error", ">", "never above 1"),
        ("expr: avg_over_time(overflow[50]) >= 1.5", "HW036", "error", ">=", ""),
        ("expr: abs(loss) < 0", "HW036", "error", "<", "never below 0"),
        ("expr: step_time < -1", "HW036", "error", "<", ""),
        ("expr: max without (expert) (tokens_per_expert) / sum without (expert) (tokens_per_expert) > 1", "HW036", "error", ">", ""),
        ("expr: router_topk * max without (expert) (tokens_per_expert) / sum without (expert) (tokens_per_expert) >= 1.2", "HW036", "error", ">=", ""),
        ("expr: max(tokens_per_expert) by (layer) / tokens_per_expert > 2", "HW024", "error", "/", "write / on (layer) group_right ()"),
        ("expr: tokens_per_expert / on (block, layer) router_topk > 2", "HW047", "warning", "/", 'fails where several series of the left side differ by "expert" alone, which is not compared'),
        ("expr: tokens_per_expert / on (layer) group_right () router_topk > 2", "HW047", "warning", "/", 'differ by "block" or "expert" alone, which are not compared write / ignoring (expert) group_left ()'),
        ("expr: queue > on () stage", "HW047", "warning", ">", 'several series of the left side differ by "shard" alone, which is not compared; several series of the right'),
        ("expr: lr > 1 or absent(queue)", "HW044", "warning", "absent(queue)", 'only until "queue" has come for the first time absent_over_time(queue[50])'),
        ("expr: absent(val_loss)", "HW044", "warning", "absent(val_loss)", "absent_over_time(val_loss[300]) is true where nothing came for 300 steps"),
        ("expr: absent(rare)", "HW044", "warning", "absent(rare)", "absent_over_time(...[N]) is true where nothing came for N steps"),
        ("expr: overflow", "HW045", "warning", "overflow", "such as == 1"),
        ('expr: absent(loss{split="val"} offset 10)', "HW044", "warning", 'absent(loss{split="val"} offset 10)', 'absent_over_time(loss{split="val"}[50] offset 10)'),
        ("expr: absent(sum(abs(queue)) * 2)", "HW044", "warning", "absent(sum(abs(queue)) * 2)", ""),
        ("expr: loss > 3\nuntil: absent(loss)", "HW044", "warning", "absent(loss)", ""),
        ("expr: avg_over_time(loss[50])", "HW045", "warning", "avg_over_time(loss[50])", "so the rule always fires compare it with a bound"),
        ("expr: scalar(loss > 3)", "HW045", "warning", "scalar(loss > 3)", "compare vector(scalar(loss > 3)) with a bound"),
        ("expr: loss > bool 2", "HW045", "warning", "loss > bool 2", "leave out bool: loss > 2"),
        ("expr: stalled_seconds() > bool 2", "HW045", "warning", "stalled_seconds() > bool 2", "leave out bool: vector(stalled_seconds()) > 2"),
        ("expr: (loss / grad_norm)", "HW045", "warning", "loss / grad_norm", ""),
        ("expr: topk(3, micro_norm)", "HW045", "warning", "topk(3, micro_norm)", ""),
        ("expr: count(loss > bool 3)", "HW045", "warning", "count(loss > bool 3)", "compare it with a bound"),
        ("expr: loss > 3 or vector(0)", "HW045", "warning", "vector(0)", "compare it with a bound, or leave it out"),
        ("expr: loss and grad_norm", "HW045", "warning", "loss and grad_norm", ""),
        ("expr: vector(1)", "HW045", "warning", "vector(1)", ""),
        ("expr: run_failed * lr", "HW045", "warning", "run_failed * lr", ""),
        ("expr: val_loss", "HW045", "warning", "val_loss", ""),
        ("expr: loss > 3\nuntil: loss * 2", "HW045", "warning", "loss * 2", "so the alert never ends"),
        ("expr: lr == NaN", "HW046", "warning", "NaN", "never true, whatever is compared nonfinite(...)"),
        ("expr: $x != lr\nparams: {x: 3}\nuntil: lr >= nan", "HW046", "warning", "nan", "never true"),
        ("expr: nonfinite(loss) == 1", "HW046", "warning", "==", "no NaN is found leave out the comparison: nonfinite(loss)"),
        ("expr: 0 < nonfinite(micro_norm)", "HW046", "warning", "<", "leave out the comparison: nonfinite(micro_norm)"),
        ("expr: lr != NaN", "HW046", "warning", "NaN", "always true"),
        ("expr: quantile_over_time(90, loss[50]) > 3", "HW046", "warning", "90", "write 0.9"),
        ("expr: quantile by (layer) (99.5, tokens_per_expert) > 3", "HW046", "warning", "99.5", "write 0.995"),
        ("expr: quantile(-1, tokens_per_expert) > 3", "HW046", "warning", "-1", "0.5 is the median"),
        ("expr: spike_ratio(loss[50], 0) > 3", "HW046", "warning", "0", "a whole number of samples, at least 1 write 1"),
        ("expr: zscore(loss[50], 20.5) > 7", "HW046", "warning", "20.5", "write 21"),
        ("expr: loss > 3\nuntil: ema(loss[50], $n) > 3\nparams: {n: -2}", "HW046", "warning", "$n", "write 1"),
        ("expr: topk by (layer) (0, tokens_per_expert) > 3", "HW046", "warning", "0", "topk takes a whole number of elements, at least 1 write 1"),
        ("expr: loss > 3\ndetail: limitk(2.5, micro_norm)", "HW046", "warning", "2.5", "write 2"),
        ("expr: spike_ratio(loss[50], 50) > 3", "HW046", "warning", "50", "at most 49 samples come in this window, never 50"),
        ("expr: zscore(finite(loss[10]), 12) > 6", "HW046", "warning", "12", "at most 9 samples"),
        ("expr: count_over_time(loss[4]) > 4", "HW046", "warning", "4", "at most 4 samples come in this window, never more than 4"),
        ("when: {zscore: {metric: loss, window: 20, min_samples: 20}}", "HW046", "warning", "when", "at most 19 samples"),
        ("expr: count_over_time(queue[4]) > 4", "HW046", "warning", "4", "at most 4 samples"),
        ("when: {constant: {metric: loss, window: 4}}", "HW046", "warning", "when", "at most 4 samples come in this window, never 5"),
        ('expr: micro_norm{param="layers.*"} > 3', "HW049", "warning", 'param="layers.*"', 'write param=~"layers.*"'),
        ('expr: max_attention_logit{layer="0|1"} > 3', "HW049", "warning", 'layer="0|1"', 'write layer=~"0|1"'),
        ('expr: loss > 3\ndetail: micro_norm{param!="^layers[.]1$"}', "HW049", "warning", 'param!="^layers[.]1$"', 'write param!~"^layers[.]1$"'),
        ('expr: max_attention_logit{layer="[0-9]"} > 3', "HW049", "warning", "", "layer=~"),
        ('when: {threshold: {metric: micro_norm, select: {param: ".*wq.*"}, above: 3}}', "HW049", "warning", "when", 'write select: {param: "=~.*wq.*"}'),
        ("expr: loss > bool 2 and grad_norm > 3", "HW045", "warning", "loss > bool 2", "so and lets everything through leave out bool: loss > 2"),
        ("expr: grad_norm > 3 and (loss > bool 2)", "HW045", "warning", "loss > bool 2", "so and lets"),
        ("expr: grad_norm > 3 unless loss > bool 2", "HW045", "warning", "loss > bool 2", "so unless excludes everything"),
        ("expr: max without (head) (max_attention_logit) > 100\nuntil: max_attention_logit > 50", "HW048", "warning", "max_attention_logit > 50", 'has the label "head", which the alerts don\'t have'),
        ("expr: max_attention_logit > 100\nuntil: max without (head) (max_attention_logit) > 50", "HW048", "warning", "", 'has no label "head", which the alerts have'),
        ("when: {threshold: {metric: queue, above: 3}}\nuntil: stage > 2", "HW048", "warning", "stage > 2", 'has the label "part"'),
        ('expr: queue{shard="1"} > 3\nuntil: queue{shard="2"} > 2', "HW048", "warning", "", '"shard" is "2" in its result and "1" in the alerts'),
    ],
)  # fmt: skip
def test_found(tmp_path: Path, rule: str, code: str, severity: str, under: str, says: str) -> None:
    told = lint(tmp_path, rule)
    (found,) = told
    assert (found.code, found.severity) == (code, severity), render_text(told)
    assert marked(found) == under or not under
    assert says in f"{found.message} {found.help}"


@pytest.mark.parametrize(
    "rule",
    [
        "expr: loss > lr",
        "expr: spike_ratio(loss[50], 49) > 3 or zscore(loss[10], 16) > 6 or ema_ratio(loss[2.5]) > 3",
        "expr: count_over_time(loss[4]) >= 4 and count_over_time(local_loss[4]) > 16 and zscore(local_loss[8], 24) > 6",
        "expr: count_over_time(throughput[50]) > 60 and zscore(finite(throughput[8]), 24) > 6",
        "expr: topk by (layer) (1, tokens_per_expert) > 3 and on () spike_ratio(throughput[50], 60) > 2",
        "expr: queue > 10 unless on () absent(stage)",
        "expr: absent(queue) and on () max(max_attention_logit) > 100",
        "expr: absent(queue) and on () vector(time()) > 1000",
        "expr: max_attention_logit > 100 and deriv(max_attention_logit[500]) > 0",
        "expr: micro_norm / ignoring (param) group_left () grad_norm > 3",
        "expr: max by (layer) (max_attention_logit) > 100 and on (layer) deriv(max_attention_logit[500]) > 0",
        "expr: micro_norm > 3 or grad_norm > 3",
        "expr: micro_norm > scalar(grad_norm)",
        "expr: label_replace(loss, 'param', 'x', '', '') > micro_norm",
        'expr: max_attention_logit{mtp_idx=""} > 1',
        'expr: loss{split!~"val.*", split="train"} > 3',
        'expr: micro_norm{rank="3", param=~".*"} > 3',
        "expr: max without (rank, dp) (loss) > 3",
        "expr: val_loss > 3\nfor: 100",
        "expr: val_loss > 3\nfor: 10m",
        "expr: val_loss > 3\nfor_records: 3",
        "expr: val_loss > 3 or loss > 4\nfor: 3",
        "expr: spike_ratio(micro_norm[50]) > 8\nfor_records: 3",
        "expr: spike_ratio(grad_norm[50]) > 8",
        "expr: max(spike_ratio(micro_norm[50])) > 8",
        'expr: spike_ratio(micro_norm{param="wq"}[50]) > 8',
        "expr: micro_norm > 100",
        "expr: micro_norm > 3 or robust_zscore(micro_norm[50]) > 6",
        "when: {zscore: {metric: micro_norm}, quorum: 1%}",
        "expr: overflow > 0.5",
        "expr: sum_over_time(overflow[50]) > 3",
        "expr: (overflow > bool 1) == 1",
        "when: {saturation: {metric: tokens_per_expert, over: [expert], top_k: router_topk}}",
        "when: {imbalance: {metric: tokens_per_expert, over: [expert], above: 4}}",
        "expr: max_over_time(avg_over_time(loss[20])[500:]) > 5",
        "expr: tokens_per_expert / on (block, layer) group_left () router_topk > 2",
        'expr: tokens_per_expert{expert="3"} / on (block, layer) router_topk > 2',
        "expr: topk by (block, layer) (1, tokens_per_expert) / on (block, layer) router_topk > 2",
        "expr: tokens_per_expert > 2 and on (layer) max_attention_logit > 3",
        "expr: max by (layer) (tokens_per_expert) / on (layer) max by (layer) (max_attention_logit) > 2",
        "expr: loss / lr > 3",
        "expr: label_replace(micro_norm, 'layer', '$1', 'param', 'layers.(.*)') / on (layer) max by (layer) (router_topk) > 3",
        "expr: label_join(tokens_per_expert, 'id', '/', 'block', 'layer', 'expert') / on (id) label_join(tokens_per_expert offset 1, 'id', '/', 'block', 'layer', 'expert') > 3",
        "expr: absent_over_time(queue[50])",
        "expr: micro_norm > stalled_seconds()",
        "expr: absent(queue > 3)",
        "expr: absent(avg_over_time(queue[50]))",
        "expr: nonfinite(loss)",
        "expr: count(loss > 3)",
        "expr: loss > 3 and grad_norm",
        "expr: grad_norm and loss > 3",
        "expr: loss unless on () lr > 3",
        "expr: (loss > 3) * 2",
        "expr: loss > 3 or nonfinite(loss)",
        "expr: abs(topk(3, nonfinite(micro_norm)))",
        "expr: present_over_time(queue[200]) unless present_over_time(queue[50])",
        "expr: count_over_time((loss > 3)[50:])",
        "expr: run_failed",
        "expr: rare",
        "expr: loss == Inf",
        "expr: quantile(1, tokens_per_expert) > 3 and on () quantile_over_time(0, loss[50]) > 3",
        "expr: max_over_time(avg_over_time(loss[20])[10000:20]) > max_over_time(loss[10000])",
        "expr: max_attention_logit > 100\nuntil: max_attention_logit > 50",
        'expr: micro_norm{param="decoder.layers.0.self_attention.linear_qkv.weight"} > 3',
        'expr: micro_norm{param=~"layers[.](0|1)[.].*", param!~".*wq$"} > 3',
        'expr: micro_norm{param="layers[0].wq-a+b.weight*"} > 3',
        'when: {threshold: {metric: micro_norm, select: {param: "=~.*wq.*"}, above: 3}}',
        "expr: loss > 3 and (grad_norm > bool 2) == 1",
        "expr: max_attention_logit > 100\nuntil: loss > 2",
        "expr: max_attention_logit > 100\nuntil: max(max_attention_logit) > 50 or queue > 3",
        "expr: max_attention_logit > 100\nuntil: val_loss > 3 or absent_over_time(queue[3])",
        "expr: max_attention_logit{head='0'} > 100\nuntil: max_attention_logit > 50",
        "expr: max without (head, rank) (max_attention_logit) > 100\nuntil: max by (block, layer, mtp_idx, rank) (max_attention_logit) > 50",
    ],
)
def test_quiet(tmp_path: Path, rule: str) -> None:
    told = lint(tmp_path, rule)
    assert told == [], render_text(told)


@pytest.mark.parametrize(
    ("condition", "bound"),
    [
        ("saturation: {metric: tokens_per_expert, over: [expert]}", "0.5"),
        ("saturation: {metric: tokens_per_expert, over: [expert], window: 20}", "0.5"),
        ("imbalance: {metric: tokens_per_expert, over: [expert], above: 4}", "3"),
    ],
)
def test_what_top_k_routing_never_reaches(tmp_path: Path, condition: str, bound: str) -> None:
    (found,) = lint(tmp_path, f"when: {{{condition}}}", Facts(top_k=2, experts=8))
    assert (found.code, found.severity) == ("HW036", "warning")
    assert found.message == f"this can never be in this model: the left side is never above {bound}"
    assert "a token goes to 2 different experts" in found.help


def test_the_model_section_of_the_config_says_top_k(tmp_path: Path) -> None:
    lint(tmp_path, "when: {saturation: {metric: tokens_per_expert, over: [expert]}}")
    config = tmp_path / "train.yaml"
    model = "model: {model_config: {moe_router_topk: 8, num_experts: 64}}\n"
    config.write_text(f"{model}healthwatch: {{rules: [r.yaml, builtin:moe]}}\n", encoding="utf-8")
    checked = load_all(config)
    assert [found.code for found in checked.diagnostics] == ["HW036"]
    assert checked.config is not None


def test_a_shipped_rule_that_this_model_never_reaches_is_a_note() -> None:
    told = load_rules(["builtin:moe"], {}, Facts(top_k=4, experts=8)).diagnostics
    assert {(found.code, found.severity) for found in told} == {("HW036", "info")}


@pytest.mark.parametrize("facts", [Facts(), Facts(8, 256), Facts(2, 8)])
def test_shipped_rules_are_beyond_reproach(facts: Facts) -> None:
    told = load_rules([f"builtin:{pack}" for pack in resources.packs()], {}, facts).diagnostics
    assert told == (), render_text(told)


def test_absent_means_what_it_says_in_a_group_with_a_lookback(tmp_path: Path) -> None:
    path = tmp_path / "r.yaml"
    rule = "{alert: A, expr: absent(loss), labels: {severity: info}, annotations: {action: x}}"
    for group, codes in (("name: g", ["HW044"]), ("name: g, lookback: 50", [])):
        path.write_text(f"groups: [{{{group}, rules: [{rule}]}}]\n", encoding="utf-8")
        assert [found.code for found in load_rules([path]).diagnostics] == codes


@pytest.mark.parametrize(
    "expression",
    [
        "max(tokens_per_expert) by (layer) / tokens_per_expert > 2",
        "tokens_per_expert / max(tokens_per_expert) by (layer) > 2",
        "micro_norm / grad_norm > 3",
        "grad_norm / micro_norm > 3",
        "sum by (layer) (tokens_per_expert) > on (layer, expert) tokens_per_expert",
        "tokens_per_expert / sum(tokens_per_expert) > 2",
        "max by (layer) (max_attention_logit) > 100 and deriv(max_attention_logit[500]) > 0",
        "loss > 3 unless micro_norm > 1",
        "loss > micro_norm",
        'router_topk{layer="1"} > 1 and router_topk{layer="2"} > 1',
        'router_topk{layer="1"} / router_topk{layer="2"} > 1',
        'tokens_per_expert{layer="1"} / router_topk{layer="2"} > 1',
        "tokens_per_expert / on (block, layer) router_topk > 2",
        "tokens_per_expert / on (layer) group_right () router_topk > 2",
        "router_topk / on (block, layer) tokens_per_expert > 2",
        "max_attention_logit / tokens_per_expert > 2",
        "micro_norm / (tokens_per_expert + 1) > 2",
        "tokens_per_expert / on (layer) max_attention_logit > 2",
        "queue > stage",
        "queue > on () stage",
        "queue / ignoring (shard) group_left () stage > 1",
        "max by (layer, head) (max_attention_logit) > max by (layer, expert) (tokens_per_expert)",
        "queue * on (shard) group_left (part) stage > 2",
        "max by (layer) (tokens_per_expert) / router_topk > 2",
        "router_topk / max by (layer) (tokens_per_expert) > 2",
        "label_join(max_attention_logit, 'place', '/', 'block', 'layer') / on (layer) router_topk > 2",
        "micro_norm / on (param) label_replace(tokens_per_expert, 'param', '$1', 'layer', '(.*)') > 2",
    ],
)
def test_what_the_help_of_a_join_proposes_passes(tmp_path: Path, expression: str) -> None:
    (found,) = lint(tmp_path, f"expr: {expression}")
    mended = as_proposed(expression, found)
    assert lint(tmp_path, f"expr: {mended}") == [], mended
    assert two_ranks(tmp_path / "r.yaml").problems == ()


def as_proposed(expression: str, found: Diagnostic) -> str:
    """The expression with the join that the help proposes."""
    assert found.code in ("HW024", "HW047")
    proposed = re.match(r"write (\S+ (?:on|ignoring) \([^)]*\)(?: group_(?:left|right) \([^)]*\))?)(.*)$", found.help)
    assert proposed is not None
    assert found.span is not None
    start = found.span.column - 1 - found.source.index(expression)
    (node,) = (
        each
        for each in ast.walk(parse(expression, rule=True).expression.tree)  # type: ignore[union-attr]
        if isinstance(each, ast.Binary) and each.op_span[0] == start
    )
    right = proposed[2] or expression[slice(*node.right.span)]
    return f"{expression[:start]}{proposed[1]} {right}{expression[node.right.span[1] :]}"


@pytest.mark.parametrize(
    ("expression", "proposed"),
    [
        ("label_replace(micro_norm, 'layer', '$1', 'param', 'layers.(.*)') / on (layer) router_topk > 0.5", "write / on (layer) group_left () max by (layer) (router_topk)"),
        ("label_replace(micro_norm, 'layer', '$1', 'param', 'layers.(.*)') / on (layer, rank) router_topk > 0.5", "write / on (layer, rank) group_left () max by (layer, rank) (router_topk)"),
        ("label_replace(tokens_per_expert, 'e', '$1', 'expert', '(.*)') / on (layer, e) router_topk > 0.5", "write / ignoring (e, expert) group_left ()"),
        ("label_replace(tokens_per_expert, 'e', '$1', 'expert', '(.*)') / on (block, layer, e) tokens_per_expert > 0.5", "write / ignoring (e)"),
        ("label_replace(tokens_per_expert, 'dp', '0', '', '') / on (block, layer) router_topk > 0.5", "write / on (block, layer) group_left () max by (block, layer) (router_topk)"),
        ("label_join(max_attention_logit, 'id', '/', 'layer', 'head') / on (id) label_join(tokens_per_expert, 'id', '/', 'layer', 'expert') > 0.5", ""),
        ("label_join(tokens_per_expert, 'id', '/', 'layer', 'expert') / on (id) label_join(tokens_per_expert, 'id', '/', 'layer', 'expert') > 0.5", "write / ignoring ()"),
        ("label_replace(local_norm, 'p', '$1', 'param', 'layers.(.*)') / on (p) label_replace(device_norm, 'p', '$1', 'rank', '(.*)') > 0.5", "write / on (p) group_left () max by (p) (label_replace("),
        ("label_replace(label_replace(local_norm, 'q', '$1', 'param', 'layers.(.*)'), 'p', '$1', 'q', '(.*)') / on (p) device_norm > 0.5", ""),
        ("max_attention_logit / label_replace(device_norm, 'e', '$1', 'param', 'layers.(.*)') > 0.5", "write / ignoring (block, head, layer) group_left () max without (e, param) (label_replace("),
        ("router_topk / max by (head) (label_join(loss, 'head', '/', 'rank')) > 0.5", "write / on () group_left () max(max by (head)"),
        ("local_norm / on (param) label_replace(tokens_per_expert, 'param', 'layers.$1', 'layer', '(.*)') > 0.5", "write / ignoring (block, expert, layer) group_right ()"),
        ("label_replace(tokens_per_expert, 'layer', '$1', 'layer', '0*(.*)') / on (layer) router_topk > 0.5", "write / ignoring (expert) group_left ()"),
    ],
)  # fmt: skip
def test_what_is_proposed_of_copied_labels_matches(tmp_path: Path, expression: str, proposed: str) -> None:
    """Not only without an error: a join that compares what one side alone has would be empty."""
    (found,) = lint(tmp_path, f"expr: {expression}")
    assert found.help.startswith(proposed)
    mended = as_proposed(expression, found)
    assert lint(tmp_path, f"expr: {mended}") == [], mended
    outcome = two_ranks(tmp_path / "r.yaml")
    assert (outcome.problems, len(outcome.changes) > 0) == ((), True), mended


@pytest.mark.parametrize(
    ("rule", "until", "holds"),
    [
        ("expr: max without (head) (max_attention_logit) > 100", "max_attention_logit > 50", "its layer"),
        ("expr: max_attention_logit > 100", "max without (head) (max_attention_logit) > 50", "its layer"),
        ("when: {threshold: {metric: max_attention_logit, above: 100}}", "max without (head) (max_attention_logit) > 50", "its layer"),
        ("expr: max(max_attention_logit) > 100", "max_attention_logit > 50", "any"),
        ("expr: max_attention_logit > 100", "queue > $x\nparams: {x: 50}", "any"),
    ],
)  # fmt: skip
def test_what_the_help_of_until_proposes_holds_the_alert(tmp_path: Path, rule: str, until: str, holds: str) -> None:
    (found,) = lint(tmp_path, f"{rule}\nuntil: {until}")
    assert found.code == "HW048"
    mended = found.help.removeprefix("write ") + until.partition(" > $x")[2].removeprefix(" ")
    for text, stays in ((until, False), (mended, True)):
        told = lint(tmp_path, f"{rule}\nuntil: {text}")
        assert [each.code for each in told] == ["HW048"] * (not stays)
        table = SeriesTable()
        engine = Engine(load_rules([tmp_path / "r.yaml"]).rules, table)
        for step, (other, head) in enumerate(((0, 200), (0, 60), (60, 0)), 1):
            frame = Frame(step)
            places = [{"block": "decoder", "layer": layer, "head": "0"} for layer in "01"]
            frame.add(table.register("max_attention_logit", places), np.array([other, head], dtype=float))
            frame.add(table.register("queue", [{"shard": "0"}]), np.array([max(other, head)], dtype=float))
            frame.close()
            outcome = engine.step(frame)
            firing = len(engine.book.pages["A"].ledger.firing())
            assert firing == (step == 1 or (stays and (step == 2 or holds == "any"))), (step, text, outcome)


def test_an_until_beside_params_that_are_none_is_told_all_the_same(tmp_path: Path) -> None:
    found = lint(tmp_path, "expr: max(queue) > 3\nuntil: queue > 2\nparams: [[1]]")
    assert [each.code for each in found] == ["HW048", "HW009"]


def two_ranks(path: Path) -> Outcome:
    """One step of a run in which every label of what the rule reads has two values, the rank too."""
    loaded, table, frame = load_rules([path]), SeriesTable(), Frame(1)
    (rule,) = loaded.rules
    for name in sorted(
        {node.metric for node in ast.walk(rule.expression.tree) if isinstance(node, ast.VectorSelector)}
    ):
        known = catalogue().get(str(name))
        own = loaded.metrics[str(name)]["labels"] if known is None else {*known.labels} - {*known.optional}
        labels = sorted({*own, "rank"})
        values = [[f"layers.{each}" if label == "param" else each for each in "12"] for label in labels]
        series = [dict(zip(labels, each, strict=True)) for each in product(*values)]
        frame.add(table.register(name, series), np.ones(len(series)))
    frame.close()
    return Engine(loaded.rules, table).step(frame)


@pytest.mark.parametrize(
    ("expression", "fails"),
    [
        ("tokens_per_expert / on (block, layer) router_topk", True),
        ("tokens_per_expert / on (block, layer) group_right () router_topk", True),
        ("tokens_per_expert / on (layer) tokens_per_expert", True),
        ("tokens_per_expert / on (block, layer) group_left () router_topk", False),
        ("label_replace(tokens_per_expert, 'dp', '0', '', '') / on (block, layer) router_topk", True),
        ("label_join(tokens_per_expert, 'e', '', 'expert') / on (block, layer, e) tokens_per_expert", True),
        ("label_replace(tokens_per_expert, 'expert', '0', '', '') / on (layer) router_topk", True),
        ("router_topk / on (block, layer) group_right () tokens_per_expert", False),
        ("label_replace(tokens_per_expert, 'e', '$1', 'expert', '(.*)') / on (block, layer) router_topk", True),
        ("label_join(tokens_per_expert, 'e', '', 'expert') / on (block, layer, e) label_join(tokens_per_expert, 'e', '', 'expert')", False),
        ("label_replace(label_join(tokens_per_expert, 'a', '', 'expert'), 'e', '$1', 'a', '(.*)') / on (block, layer, e) label_join(tokens_per_expert, 'e', '', 'expert')", False),
    ],
)  # fmt: skip
def test_joins_that_are_warned_of_are_those_that_fail(tmp_path: Path, expression: str, fails: bool) -> None:
    assert [found.code for found in lint(tmp_path, f"expr: {expression} > 2")] == ["HW047"] * fails
    table = SeriesTable()
    layers = [{"block": "decoder", "layer": layer} for layer in "01"]
    experts = [{**layer, "expert": expert} for layer in layers for expert in "012"]
    frame = Frame(1)
    frame.add(table.register("router_topk", layers), np.ones(2))
    frame.add(table.register("tokens_per_expert", experts), np.ones(6))
    frame.close()
    outcome = Engine(load_rules([tmp_path / "r.yaml"]).rules, table).step(frame)
    assert bool(outcome.problems) == fails


def test_action_and_severity(tmp_path: Path) -> None:
    (tmp_path / "r.yaml").write_text("groups: [{name: g, rules: [{alert: A, expr: loss > 3}]}]\n", encoding="utf-8")
    told = load_rules([tmp_path / "r.yaml"]).diagnostics
    assert {(found.code, found.severity) for found in told} == {("HW020", "warning"), ("HW028", "warning")}
    (tmp_path / "r.yaml").write_text(
        "groups: [{name: g, rules: [{alert: A, expr: loss > 3, labels: {severity: info}, annotations: {summary: x}}]}]\n",
        encoding="utf-8",
    )
    (found,) = load_rules([tmp_path / "r.yaml"]).diagnostics
    assert (found.code, marked(found)) == ("HW028", "annotations")


@pytest.mark.parametrize(
    ("group", "rule", "told"),
    [
        ("{}", "labels: {severty: info, team: x}, annotations: {action: x}", {"severty": "severity"}),
        (
            "{}",
            "labels: {Severity: info}, annotations: {sumary: x, acton: y}",
            {"Severity": "severity", "sumary": "summary", "acton": "action"},
        ),
        ("{severiti: info}", "labels: {severity: info}, annotations: {action: x}", {"severiti": "severity"}),
        (
            "{severity: info}",
            "labels: {tier: a}, annotations: {actions: x, action: y, description: z, runbook_url: u}",
            {},
        ),
    ],
)
def test_names_that_nearly_are_known(tmp_path: Path, group: str, rule: str, told: dict[str, str]) -> None:
    rules = ", ".join(f"{{alert: {name}, expr: loss > 3, {rule}}}" for name in "AB")
    (tmp_path / "r.yaml").write_text(f"groups: [{{name: g, labels: {group}, rules: [{rules}]}}]\n", encoding="utf-8")
    found = [each for each in load_rules([tmp_path / "r.yaml"]).diagnostics if each.code == "HW041"]
    assert {marked(each): each.help for each in found} == {
        name: f'did you mean "{meant}"?' for name, meant in told.items()
    }
    assert len(found) == (1 if "severiti" in told else 2 * len(told))
    assert {each.severity for each in found} <= {"warning"}


def test_false_alarms_are_as_many_as_reckoned(tmp_path: Path) -> None:
    """On the noise that the message names, fed to the engine; 200 samples of history, so that the baseline is nearly exact."""
    (found,) = lint(tmp_path, "expr: spike_ratio(micro_norm[200]) > 4")
    assert "about 120,000 false alarms a day" in found.message
    table, steps, names = SeriesTable(), 230, [{"param": str(n)} for n in range(5000)]
    series = table.register("micro_norm", names)
    engine = Engine(load_rules([tmp_path / "r.yaml"]).rules, table)
    values = np.exp(0.5 * np.random.default_rng(1).standard_normal((steps, 5000)))
    fired = 0
    for step in range(1, steps + 1):
        frame = Frame(step)
        frame.add(series, values[step - 1])
        frame.close()
        outcome = engine.step(frame)
        fired += sum(each.reason == "fired" for each in outcome.transitions) if step > 200 else 0
    expected = 5000 * 30 * 0.5 * math.erfc(math.log(4) / 0.5 / math.sqrt(2))
    assert 0.8 < fired / expected < 1.3
