"""A mixture of experts, healthwatch through the YAML, behind a callback that resets the logits."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest
from training_outcome import BROKEN, COLLAPSE, EXPERTS, MOE_STEPS, TOKENS, TOP_K, Training

pytestmark = pytest.mark.long

LAYERS = ("1", "2")


def tokens(moe: Training, step: int, micro_step: int) -> dict[str, list[float]]:
    found = moe.values(step, "tokens_per_expert", micro_step)
    return {layer: [found[f"decoder,{expert},{layer}"] for expert in range(EXPERTS)] for layer in LAYERS}


def test_an_exception_inside_healthwatch_does_not_end_the_training(moe: Training):
    assert moe.steps_done == MOE_STEPS
    assert len(moe.frames) == MOE_STEPS
    failures = moe.session.guard.failures
    assert set(failures) == {"mindformers hook", "integration"}
    assert sum("planted in healthwatch" in line for line in moe.log.splitlines()) == 2  # once a part


def test_healthy_steps_are_silent(moe: Training):
    assert [each.rule for each in moe.transitions if each.now.step < COLLAPSE and each.reason == "fired"] == []


@pytest.mark.row(44)
@pytest.mark.row(63)
def test_tokens_are_those_that_the_router_counted_although_the_trainer_drains_its_counters(moe: Training):
    """With expert bias on, the trainer sets the counters to zero before our callback is called."""
    passes = iter(moe.routed)
    for step in range(1, BROKEN):
        for micro_step in range(2):
            found = tokens(moe, step, micro_step)
            for layer in LAYERS:
                assert found[layer] == next(passes).tolist()
                assert sum(found[layer]) == TOKENS * TOP_K


def test_top_k_is_the_models(moe: Training):
    assert moe.values(1, "router_topk") == {"decoder,1": TOP_K, "decoder,2": TOP_K}


@pytest.mark.row(45)
def test_a_collapse_is_found_in_its_layer(moe: Training):
    assert moe.fired()["ExpertSaturation"] == COLLAPSE + 2  # three records
    collapsed = [each for each in moe.transitions if each.rule == "ExpertSaturation" and each.reason == "fired"]
    assert {dict(each.labels)["layer"] for each in collapsed} == {"2"}
    assert tokens(moe, COLLAPSE, 0)["2"] == [TOKENS, TOKENS, 0, 0]


@pytest.mark.row(66)
@pytest.mark.row(69)
def test_logits_are_taken_before_the_monitor_in_front_of_us_resets_them(moe: Training):
    pattern = r"step:\[ *(\d+)/ *\d+\] max_attention_logit/decoder\.layers\.(\d)\S*: \[(.*)\]"
    lines = re.findall(pattern, moe.log)
    assert len(lines) == MOE_STEPS * 3
    for step, layer, heads in lines[: 3 * (BROKEN - 1)]:
        ours = moe.values(int(step), "max_attention_logit")
        for head, value in enumerate(heads.split(", ")):
            assert ours[f"decoder,{head},{layer}"] == pytest.approx(float(value), rel=1e-3)


@pytest.mark.row(3)
@pytest.mark.row(48)
@pytest.mark.row(58)
def test_expert_loads_are_printed_since_the_trainer_prints_none(moe: Training):
    lines = [json.loads(line) for line in re.findall(r'\{"iter": .*\}', moe.log)]
    assert [(line["iter"], line["step"], line["micro_step"], line["layer"]) for line in lines] == [
        (2 * step, step, 2, layer) for step in range(1, BROKEN) for layer in (1, 2)
    ]
    assert lines[0]["tpe"] == [tokens(moe, 1, 1)["1"]]


def test_auxiliary_metrics(moe: Training):
    assert moe.values(1, "load_balancing_loss")[""] == pytest.approx(1.0, abs=0.1)
    assert np.isfinite(list(moe.values(1, "micro_norm", 1).values())).all()


def test_nothing_is_left_hooked(moe: Training):
    from mindformers.pynative.tools.monitor import MonitorGroup

    assert MonitorGroup.record.__qualname__ == "MonitorGroup.record"
    assert not hasattr(MonitorGroup.record, "__wrapped__")
