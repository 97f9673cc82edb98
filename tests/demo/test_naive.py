"""The naive evaluator itself, on recordings that were made without healthwatch."""

from __future__ import annotations

import ast
from pathlib import Path

import numpy as np
import pytest
from naive import Incident, incidents
from naive_messages import messages
from naive_rules import STEP, Samples

pytestmark = pytest.mark.long

MEASURED = {
    ("ParamGradNormSpike", 151),
    ("GradNormSpike", 153),
    ("ExpertSaturation", 213),
    ("ExpertImbalanceSevere", 246),
    ("ExpertDead", 260),
    ("ExpertImbalance", 267),
    ("AttentionLogitGrowth", 322),
    ("AttentionLogitHigh", 324),
    ("AttentionLogitExtreme", 328),
    ("LossNonFinite", 380),
    ("GradNormNonFinite", 380),
}
FOLLOW_UPS = {"GradNormSpike": range(322, 345), "ParamGradNormSpike": range(322, 345)}


def read(path: Path, steps: int) -> Samples:
    """The arrays of ../shared/experiments as samples, on the ticks that the monitors use."""
    arrays = np.load(path)
    samples = Samples()
    for index in range(min(steps, len(arrays["grad_norm"]))):
        end = (index + 1) * STEP
        for micro_step, tick in enumerate((end - STEP // 2, end)):
            for name, norm in zip(arrays["names"], arrays["micro_norm"][index, micro_step], strict=True):
                samples.add("micro_norm", {"param": str(name)}, tick, norm)
            samples.add("local_loss", {}, tick, arrays["local_loss"][index, micro_step])
            for (layer, expert), count in np.ndenumerate(arrays["tokens"][index, micro_step]):
                samples.add("tokens_per_expert", {"layer": str(layer), "expert": str(expert)}, tick, count)
        for (layer, head), logit in np.ndenumerate(arrays["logit"][index].max(axis=0)):
            samples.add("max_attention_logit", {"layer": str(layer), "head": str(head)}, end, logit)
        for layer in range(arrays["tokens"].shape[2]):
            samples.add("router_topk", {"layer": str(layer)}, end, 2)
        samples.add("loss", {}, end, arrays["local_loss"][index].mean())
        samples.add("grad_norm", {}, end, arrays["grad_norm"][index])
    return samples


def test_finds_every_fault_at_the_step_that_was_measured(shared: Path) -> None:
    found = incidents(read(shared / "experiments" / "fault_plan_recorded.npz", 420))
    opened = {(incident.rule, incident.opened) for incident in found}
    others = opened - MEASURED
    assert opened >= MEASURED
    assert all(step in FOLLOW_UPS.get(rule, ()) for rule, step in others), others
    assert all(incident.ended is not None and incident.ended <= 400 for incident in found)


def test_is_silent_on_a_healthy_run(shared: Path) -> None:
    assert incidents(read(shared / "experiments" / "healthy_recorded.npz", 440)) == []


def test_messages_of_three_groups() -> None:
    spike = incident("Spike", "warning", 10, 30)
    worse = incident("Worse", "critical", 12, 25)
    late = incident("Late", "warning", 70, 90)
    joins = incident("Joins", "warning", 75, 130)
    seconds = {step: float(step) for step in range(1, 201)}
    assert [(one.step, one.reason) for one in messages([spike, worse, late, joins], seconds)] == [
        (10, "opened"),
        (12, "severity"),
        (30, "resolved"),
        (70, "opened"),
        (120, "joined"),
        (130, "resolved"),
    ]


def test_a_message_waits_no_longer_than_a_minute() -> None:
    slow = {step: 10.0 * step for step in range(1, 201)}
    group = [incident("First", "warning", 10, 90), incident("Joins", "warning", 12, 90)]
    assert [(one.step, one.reason) for one in messages(group, slow)] == [
        (10, "opened"),
        (16, "joined"),
        (90, "resolved"),
    ]


def incident(rule: str, severity: str, opened: int, ended: int) -> Incident:
    return Incident(rule, severity, opened, opened * STEP, ended, [(opened, ())])


@pytest.mark.parametrize("module", ["naive", "naive_messages", "naive_reading", "naive_rules"])
def test_is_an_opinion_of_its_own(module: str) -> None:
    tree = ast.parse(Path(__file__).with_name(f"{module}.py").read_text())
    imported = [each for each in ast.walk(tree) if isinstance(each, ast.Import | ast.ImportFrom)]
    names = [name.name for each in imported for name in each.names]
    names += [each.module or "" for each in imported if isinstance(each, ast.ImportFrom)]
    assert not [name for name in names if name.partition(".")[0] in ("healthwatch", "examples")]


@pytest.mark.mindspore
def test_the_trained_model_has_the_sizes_that_were_measured() -> None:
    pytest.importorskip("mindspore", reason="needs the mindspore extra")
    from examples.moe_pretrain import train
    from examples.moe_pretrain.model import Shape

    shape = Shape()
    assert (shape.layers, shape.hidden, shape.heads) == (2, 64, 4)
    assert (shape.experts, shape.topk, shape.sequence) == (8, 2, 32)
    assert (train.BATCH, train.MICRO_BATCHES, train.LEARNING_RATE, train.STEPS) == (4, 2, 1e-3, 440)
