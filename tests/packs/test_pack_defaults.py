"""The numbers that the shipped rules promise: what fires, after how many records, and how loudly."""

from __future__ import annotations

import pytest

from healthwatch.rulefile import Rule, load_rules
from healthwatch.stream.ticks import Duration

PACKS = ("loss", "gradients", "moe", "attention")

# expression's parameters, for_records, warmup, severity
DEFAULTS: dict[str, tuple[dict[str, float], int | None, int, str]] = {
    "LossNonFinite": ({}, None, 0, "critical"),
    "LossSpike": ({"window": 128, "ratio": 1.5, "deviations": 6}, 2, 0, "warning"),
    "LossSpikeSevere": ({"window": 128, "ratio": 2, "deviations": 6}, 5, 0, "critical"),
    "GradNormNonFinite": ({}, None, 0, "critical"),
    "GradNormSpike": ({"window": 50, "ratio": 2, "deviations": 6}, 3, 0, "critical"),
    "ParamGradNormSpike": ({"window": 50, "ratio": 8, "share": 0.05}, None, 60, "warning"),
    "ExpertSaturation": ({"share": 0.85}, 3, 60, "critical"),
    "ExpertImbalance": ({"window": 20, "excess": 1, "of_possible": 0.3}, 50, 200, "warning"),
    "ExpertImbalanceSevere": ({"window": 20, "of_possible": 0.8}, 20, 200, "critical"),
    "ExpertDead": ({"window": 50}, None, 0, "warning"),
    "AttentionLogitHigh": ({"limit": 100}, None, 0, "warning"),
    "AttentionLogitExtreme": ({"limit": 1000}, None, 0, "critical"),
    "AttentionLogitGrowth": ({"window": 500, "ratio": 2, "floor": 30}, None, 0, "warning"),
}

# Who hears of a NaN hears of no spike.
SPIKES = ("LossSpike", "LossSpikeSevere", "GradNormSpike", "ParamGradNormSpike")


@pytest.fixture(scope="module")
def rules() -> dict[str, Rule]:
    return {rule.name: rule for rule in load_rules([f"builtin:{pack}" for pack in PACKS]).rules}


@pytest.mark.parametrize("name", DEFAULTS)
def test_the_numbers_of_a_rule(rules: dict[str, Rule], name: str) -> None:
    params, for_records, warmup, severity = DEFAULTS[name]
    rule = rules[name]
    assert {key: rule.params[key] for key in params} == params
    assert (rule.for_records, rule.warmup, rule.severity) == (for_records, warmup, severity)
    assert rule.keep_firing_for == Duration(steps=10)


@pytest.mark.parametrize("name", SPIKES)
def test_a_value_that_is_not_finite_holds_back_the_spikes(rules: dict[str, Rule], name: str) -> None:
    assert set(rules[name].inhibited_by) >= {"LossNonFinite", "GradNormNonFinite"}
