"""What stands behind an alert: what was measured, its baseline, the first series to fire, and a picture's data."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

from healthwatch.alerting.causal import causal_order
from healthwatch.alerting.message import render
from healthwatch.alerting.policy import policy_of
from healthwatch.config import Config, LadderStep, Receiver
from healthwatch.engine import Engine
from healthwatch.rulefile import load_rules
from healthwatch.stream import Frame, SeriesTable

RULES = """
groups:
  - name: g
    rules:
      - alert: Spike
        expr: spike_ratio(micro_norm[20], 3) > 4
        labels: {severity: critical}
      - alert: High
        expr: loss > 5
        labels: {severity: warning}
      - alert: Low
        expr: throughput < 100
        labels: {severity: warning}
      - alert: NonFinite
        expr: nonfinite(loss)
        labels: {severity: critical}
      - alert: Expert
        expr: max without (expert) (tokens_per_expert) > 100
        labels: {severity: info}
        detail: tokens_per_expert > 100
"""
LADDER = (LadderStep("notify", "oncall"),)


@pytest.fixture
def watched(tmp_path):
    (tmp_path / "rules.yaml").write_text(RULES)
    rules = load_rules([tmp_path / "rules.yaml"]).rules
    config = Config(
        run="r",
        output=Path(),
        rules=(),
        digest="",
        escalation=dict.fromkeys(("critical", "warning", "info"), LADDER),
        receivers={"oncall": Receiver("oncall", ())},
    )
    table = SeriesTable()
    return Engine(rules, table, policy_of(config, rules)), table, {rule.name: rule for rule in rules}


def play(watched, step, **metrics):
    """`metric=(labels, values by micro-step or one list)`."""
    engine, table, _ = watched
    frame = Frame(step, 1, 1000.0 + step)
    for metric, (labels, values) in metrics.items():
        series = table.register(metric, labels)
        if isinstance(values[0], list):
            for micro_step, each in enumerate(values):
                frame.add(series, np.array(each), micro_step)
        else:
            frame.add(series, np.array(values))
    frame.close()
    return engine.step(frame)


def incident_of(outcome, rule):
    return next(one for intent in outcome.intents for one in intent.incidents if one.rule == rule)


PARAMS = [{"param": f"decoder.layers.{layer}.wq"} for layer in range(4)]


def test_a_ratio_comes_with_what_was_measured(watched):
    for step in range(1, 30):
        play(watched, step, micro_norm=(PARAMS, [[2.0] * 4, [2.2] * 4]))
    outcome = play(watched, 30, micro_norm=(PARAMS, [[2.0] * 4, [2.2, 20.0, 30.0, 2.2]]))
    worst, second = incident_of(outcome, "Spike").firing
    assert (worst.now, second.now) == (30.0, 20.0)
    assert worst.ratio == pytest.approx(worst.value)
    assert dict(incident_of(outcome, "Spike").first)["param"] == "decoder.layers.2.wq", "gradients go backwards"
    told = render(outcome.intents[0], run="r", rank=0, rules=watched[2], output=Path("/runs/a b"))
    assert '`{param="decoder.layers.2.wq"}` 15 (now 30, baseline 2)' in told.body
    assert 'First to fire: `{param="decoder.layers.2.wq"}` (Spike), step 30, micro-step 2.' in told.body
    assert "`healthwatch silence add '/runs/a b' alertname=Spike --for 2h`" in told.body
    plot = told.extra["plot"]
    assert plot["fired"] == 30
    assert plot["series"][0]["steps"][-2:] == [29.5, 30.0]
    assert plot["series"][0]["values"][-2:] == [2.0, 30.0]
    assert plot["series"][0]["threshold"] == pytest.approx(4 * 2.0)


def test_a_threshold_comes_with_a_baseline(watched):
    for step in range(1, 60):
        play(watched, step, loss=([{}], [2.0]), throughput=([{}], [500.0]))
    outcome = play(watched, 60, loss=([{}], [9.0]), throughput=([{}], [50.0]))
    [loss], [throughput] = incident_of(outcome, "High").firing, incident_of(outcome, "Low").firing
    assert (loss.now, loss.baseline, loss.ratio) == (9.0, 2.0, 4.5)
    assert (throughput.now, throughput.baseline, throughput.ratio) == (50.0, 500.0, 0.1)
    told = render(outcome.intents[0], run="r", rank=0, rules=watched[2])
    assert "`loss` 9 (baseline 2, ratio 4.5)" in told.body


def test_nan_has_a_baseline_and_no_ratio(watched):
    for step in range(1, 10):
        play(watched, step, loss=([{}], [2.0]))
    outcome = play(watched, 10, loss=([{}], [math.nan]))
    [loss] = incident_of(outcome, "NonFinite").firing
    assert loss.baseline == 2.0
    told = render(outcome.intents[0], run="r", rank=0, rules=watched[2])
    assert "`loss` NaN (baseline 2)" in told.body
    assert told.extra["plot"]["series"][0]["values"][-1] == "NaN"


def test_what_is_coarser_than_its_series_has_details_with_them(watched):
    experts = [{"expert": str(number), "layer": "0"} for number in range(3)]
    for step in range(1, 20):
        play(watched, step, tokens_per_expert=(experts, [10, 20, 30]))
    outcome = play(watched, 20, tokens_per_expert=(experts, [10, 200, 30]))
    found = incident_of(outcome, "Expert")
    assert found.firing[0].now is None
    assert [(dict(each.labels)["expert"], each.baseline) for each in found.details] == [("1", 20.0)]


def test_an_incident_that_expires_says_since_when(watched):
    for step in range(1, 20):
        play(watched, step, loss=([{}], [9.0]))
    for step in range(20, 219):
        assert not [one for one in play(watched, step).incidents if not one.active]
    outcome = play(watched, 219)
    [ended] = [one for one in outcome.incidents if not one.active]
    assert (ended.ending, ended.last_verdict.step, ended.ended.step) == ("expired", 19, 219)
    told = render(outcome.intents[-1], run="r", rank=0, rules=watched[2])
    assert told.title.startswith("STOPPED REPORTING")
    assert "- Stopped reporting since step 19, " in told.body


@pytest.mark.parametrize(
    ("names", "first"),
    [
        ([{"param": "decoder.layers.1.wq"}, {"param": "decoder.layers.7.wq"}], 1),
        ([{"layer": "3", "__name__": "max_attention_logit"}, {"layer": "12", "__name__": "max_attention_logit"}], 0),
        ([{"block": "mtp", "mtp_idx": "0", "layer": "0"}, {"block": "decoder", "layer": "9"}], 1),
        ([{"param": "embedding.weight"}, {"param": "decoder.layers.0.wq"}], 1),
        ([{}, {"layer": "5"}], 1),
    ],
)
def test_causal_order(names, first):
    labels = [tuple(sorted(each.items())) for each in names]
    assert min(labels, key=causal_order) == labels[first]
