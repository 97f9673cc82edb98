"""A dense model, healthwatch through the constructor, the trainer's own monitors and profiler on."""

from __future__ import annotations

import math
import re

import pytest
from training_outcome import CALM, DENSE_STEPS, DIVERGE, LOGITS, NAN, Training

from healthwatch.recording import Run

pytestmark = pytest.mark.long


def test_a_rule_stops_the_training_as_the_trainer_ends_one(dense: Training):
    """Twenty steps more were asked for: `train()` has returned, and told its callbacks the end."""
    assert (dense.steps_done, dense.ended_at) == (DENSE_STEPS, DENSE_STEPS)
    with Run.open(dense.folder / "output") as run:
        assert run.attempts()[-1].reason == "stopped"
    assert len(printed(dense, "healthwatch stopped the training: LastStep")) == 1


def test_norms_that_the_trainer_has_measured_are_not_computed_again(dense: Training):
    """Its monitor prints layer 0 and the embedding: our samples of those are its numbers, and no sum was made."""
    assert len(dense.measured) == 2
    for micro_step, sums in enumerate(dense.measured):
        theirs = {name for name, square in sums.items() if square == 0}
        assert theirs == {name for name in sums if "layers.0" in name or "embedding" in name}
        assert all(dense.values(3, "micro_norm", micro_step)[name] > 0 for name in sums)


def test_every_step_is_watched(dense: Training):
    assert [frame.step for frame in dense.frames] == list(range(1, DENSE_STEPS + 1))
    failed = {part for part in dense.session.guard.failures if not part.startswith("capture refused")}
    assert failed == set()


def test_healthy_steps_are_silent(dense: Training):
    assert [each.rule for each in dense.transitions if each.now.step < LOGITS and each.reason == "fired"] == []


@pytest.mark.row(83)
def test_row_083_attention_rules_alone_make_the_model_track_its_logits(dense: Training):
    """No MaxLogitsMonitor among the callbacks, and no Muon."""
    assert len(dense.values(1, "max_attention_logit")) == 8


@pytest.mark.row(67)
def test_growing_logits_are_found_in_their_layer(dense: Training):
    assert dense.fired()["AttentionLogitHigh"] in range(LOGITS, CALM)
    layers = {dict(each.labels)["layer"] for each in dense.transitions if each.rule == "AttentionLogitHigh"}
    assert "1" in layers


@pytest.mark.row(80)
def test_row_080_maxima_start_afresh_at_each_step(dense: Training):
    """There is no MaxLogitsMonitor that would reset them."""
    assert max(dense.values(CALM - 1, "max_attention_logit").values()) > 100
    assert max(dense.values(CALM, "max_attention_logit").values()) < 50


def test_divergence_is_found(dense: Training):
    assert dense.fired_in(range(DIVERGE, NAN)) >= {"LossSpike", "LossSpikeSevere"}


def test_a_planted_nan_is_found_at_once(dense: Training):
    found = dense.fired()
    assert (found["LossNonFinite"], found["GradNormNonFinite"]) == (NAN, NAN)
    assert math.isnan(dense.values(NAN, "local_loss", 0)[""])


def test_an_incident_takes_a_profile_beside_the_trainers_own(dense: Training):
    assert list((dense.folder / "profile").rglob("trace_view.json"))
    taken = [each for each in dense.captures if each["trace"]]
    assert taken
    assert {each["state"] for each in taken} == {"finished"}


def test_everything_that_can_be_measured_is(dense: Training):
    metrics = {column.series.metric for column in dense.frames[0].columns}
    assert metrics >= {
        "local_loss",
        "micro_norm",
        "local_norm",
        "device_norm",
        "loss",
        "device_loss",
        "grad_norm",
        "lr",
        "step_time",
        "attempt_step",
        "max_attention_logit",
        "throughput",
        "global_batch_size",
        "consumed_samples",
        "loss_scale",
    }
    assert dense.values(3, "consumed_samples") == {"": 12.0}


def printed(dense: Training, pattern: str) -> list[tuple[str, ...]]:
    return re.findall(pattern, dense.log)


@pytest.mark.row(24)
def test_values_are_those_that_the_trainer_prints(dense: Training):
    lines = printed(dense, r"\{ step:\[ *(\d+)/ *\d+\], .*?loss: *(\S+), .*?grad_norm: *(\S+?),")
    assert len(lines) == DENSE_STEPS
    for step, loss, grad_norm in lines[: NAN - 1]:
        assert dense.values(int(step), "loss")[""] == pytest.approx(float(loss), abs=1e-6)
        assert dense.values(int(step), "grad_norm")[""] == pytest.approx(float(grad_norm), rel=1e-5, abs=1e-6)
    for step, micro_step, loss in printed(dense, r'\{"step": (\d+), "micro_step": (\d+), "local_loss": (\d\S*)\}'):
        assert dense.values(int(step), "local_loss", int(micro_step) - 1)[""] == pytest.approx(float(loss))


@pytest.mark.row(32)
def test_micro_norms_are_the_trainers_own_and_increments_add_up(dense: Training):
    for step in (1, 2, 50):
        first, second = dense.values(step, "micro_norm", 0), dense.values(step, "micro_norm", 1)
        local, more = dense.values(step, "local_norm", 0), dense.values(step, "local_norm", 1)
        accumulated = dense.values(step, "device_norm")
        assert first == local
        for name, norm in accumulated.items():
            assert norm == pytest.approx(local[name] + more[name])
            assert norm <= (first[name] + second[name]) * (1 + 1e-5)
        total = math.sqrt(sum(norm**2 for norm in accumulated.values()))
        assert total == pytest.approx(dense.values(step, "grad_norm")[""], rel=1e-4)
    pattern = r'"step": 2, "micro_step": 1 \}(?:\n.*"local_norm": .*)*?\n.*"local_norm": (\S+): *(\S+) \}'
    ((name, norm), *_) = printed(dense, pattern)
    assert dense.values(2, "micro_norm", 0)[name] == pytest.approx(float(norm), abs=1e-6)


def test_nothing_is_printed_twice(dense: Training):
    for pattern in (
        r"\{ step:\[ *7/",
        r'"step": 7, "micro_step": 1, "local_loss"',
        r'\{ "step": 7, "micro_step": 1 \}',
    ):
        assert len(printed(dense, pattern)) == 1
    assert "max_attention_logit/" not in dense.log


def test_alerts_stand_in_the_trainers_log(dense: Training):
    assert re.search(r"LossNonFinite firing", dense.log)


@pytest.mark.row(10)
def test_the_trainers_log_reads_back_to_the_frames(dense: Training, tmp_path):
    from healthwatch.readers import open_log

    log = tmp_path / "info.log"
    log.write_text(dense.log)
    read = list(open_log(log).frames())
    assert [frame.step for frame in read] == [frame.step for frame in dense.frames]
    for ours, theirs in zip(read[: NAN - 1], dense.frames, strict=False):
        found = {column.series.metric: column.values for column in ours.columns if column.micro_step is None}
        known = {column.series.metric: column.values for column in theirs.columns if column.micro_step is None}
        for metric in ("loss", "grad_norm", "global_batch_size", "consumed_samples"):
            assert found[metric] == pytest.approx(known[metric], rel=1e-4, abs=1e-6)
