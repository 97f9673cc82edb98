"""The shipped packs on recorded runs: each planted fault at its step, silence on a healthy run."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from healthwatch import resources
from healthwatch.alerting.model import Phase, Transition
from healthwatch.diagnostics import render_text
from healthwatch.engine import Engine
from healthwatch.rulefile import Rule, load_rules
from healthwatch.stream import Frame, SeriesTable

PACKS = ("loss", "gradients", "moe", "attention")

# Per rule the steps at which alerts of it fire, in the run with faults from 151, 211, 320 and 380 on.
FIRED = {
    "ParamGradNormSpike": {151, 153, 327},
    "GradNormSpike": {153, 324},
    "ExpertSaturation": {213},
    "ExpertImbalanceSevere": {246},
    "ExpertDead": {260},
    "ExpertImbalance": {267},
    "AttentionLogitGrowth": {322, 323},
    "AttentionLogitHigh": {324, 325},
    "AttentionLogitExtreme": {328},
    "LossNonFinite": {380},
    "GradNormNonFinite": {380},
}


@pytest.fixture(scope="module")
def rules() -> tuple[Rule, ...]:
    loaded = load_rules([f"builtin:{pack}" for pack in PACKS])
    assert loaded.diagnostics == (), render_text(loaded.diagnostics)
    return loaded.rules


def transitions(rules: tuple[Rule, ...], run: Mapping[str, Any], steps: int) -> list[Transition]:
    """Feed the arrays of a recorded run to the engine, metric by metric as the monitors would."""
    table = SeriesTable()
    micro, layers, experts = run["tokens"].shape[1:]
    layer = [{"block": "decoder", "layer": str(n)} for n in range(layers)]
    series = {
        "micro_norm": [{"param": str(name)} for name in run["names"]],
        "tokens_per_expert": [{**each, "expert": str(n)} for each in layer for n in range(experts)],
        "max_attention_logit": [{**each, "head": str(n)} for each in layer for n in range(run["logit"].shape[3])],
        "router_topk": layer,
        **{metric: [{}] for metric in ("local_loss", "loss", "grad_norm")},
    }
    known = {metric: table.register(metric, labels) for metric, labels in series.items()}
    engine = Engine(rules, table)
    found: list[Transition] = []
    for index in range(min(steps, len(run["grad_norm"]))):
        frame = Frame(index + 1, time=float(index))
        for m in range(micro):
            frame.add(known["micro_norm"], run["micro_norm"][index, m], m)
            frame.add(known["tokens_per_expert"], run["tokens"][index, m].ravel(), m)
            frame.add(known["local_loss"], [run["local_loss"][index, m]], m)
        frame.add(known["max_attention_logit"], run["logit"][index].max(axis=0).ravel())
        frame.add(known["router_topk"], [2] * layers)
        frame.add(known["loss"], [run["local_loss"][index].mean()])
        frame.add(known["grad_norm"], [run["grad_norm"][index]])
        frame.close()
        outcome = engine.step(frame)
        assert [each for each in outcome.problems if each.kind == "failed"] == []
        found += outcome.transitions
    return found


def recorded(shared: Path, name: str) -> Mapping[str, Any]:
    with np.load(shared / "experiments" / f"{name}.npz") as arrays:
        return dict(arrays)


@pytest.mark.long
def test_each_planted_fault_is_found_at_its_step(rules: tuple[Rule, ...], shared: Path) -> None:
    found = transitions(rules, recorded(shared, "fault_plan_recorded"), 420)
    fired: dict[str, set[int]] = {}
    for each in found:
        if each.reason == "fired":
            fired.setdefault(each.rule, set()).add(each.now.step)
    assert fired == FIRED
    last = {(each.rule, each.labels): each for each in found}
    assert all(each.after is Phase.INACTIVE for each in last.values())


@pytest.mark.long
def test_a_healthy_run_is_silent(rules: tuple[Rule, ...], shared: Path) -> None:
    found = transitions(rules, recorded(shared, "healthy_recorded"), 700)
    assert [each for each in found if each.after is Phase.FIRING] == []


def test_every_rule_says_what_is_wrong_and_what_to_do(rules: tuple[Rule, ...]) -> None:
    for rule in rules:
        assert rule.severity in ("critical", "warning")
        assert set(rule.annotations) >= {"summary", "action"}, rule.name
        assert rule.keep_firing_for.steps == 10
        assert rule.params or rule.name.endswith("NonFinite")


@pytest.mark.parametrize("pack", PACKS)
def test_each_pack_stands_alone(pack: str) -> None:
    assert pack in resources.packs()
    loaded = load_rules([f"builtin:{pack}"])
    assert loaded.diagnostics == ()
    assert loaded.rules


def test_saturation_is_scaled_by_the_number_of_experts_a_token_goes_to(rules: tuple[Rule, ...]) -> None:
    """With top-4 of 16 an expert never gets more than a quarter of the assignments, and still it is saturated."""
    counts = [25.0] * 4 + [0.0] * 12
    for top_k, expected in ((4, [63]), (2, [])):
        table = SeriesTable()
        tokens = table.register("tokens_per_expert", [{"layer": "0", "expert": str(n)} for n in range(16)])
        topk = table.register("router_topk", [{"layer": "0"}])
        engine = Engine([rule for rule in rules if rule.name == "ExpertSaturation"], table)
        fired = []
        for step in range(1, 81):
            frame = Frame(step)
            frame.add(tokens, counts, 0)
            frame.add(topk, [top_k])
            frame.close()
            fired += [each.now.step for each in engine.step(frame).transitions if each.after is Phase.FIRING]
        assert fired == expected
