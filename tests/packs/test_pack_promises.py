"""What the shipped packs promise: silence on healthy runs, no blindness after a NaN, two messages an incident."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray
from pack_run import Samples, alone, run, shipped

STEPS, SEEDS, MICRO_STEPS, PARAMS = 3000, 20, 2, 12
TAIL = 0.5  # sigma of the logarithm of healthy global norms: heavier than any that was measured (0.12)
PARAM_TAIL = 0.3  # of a parameter's own norm beside what it shares with the others (0.17 was measured)


def falling(steps: int, noise: NDArray[np.float64]) -> NDArray[np.float64]:
    """A loss that falls from 11 to 2.4; noise of shape (steps, seeds) multiplies it."""
    curve = 2.4 + 8.6 * np.exp(-np.arange(steps) / 250.0)
    return curve[:, None] * noise


def healthy(steps: int = STEPS, seeds: int = SEEDS) -> Samples:
    """Twenty runs side by side, each a label of its own: no rule of these metrics looks from one to the other.

    The loss wanders (AR(1)) and has a heavy tail (Student's t with 4 degrees of freedom); norms are lognormal.
    """
    random = np.random.default_rng(20)
    wander = np.zeros((steps, seeds))
    for step in range(1, steps):
        wander[step] = 0.8 * wander[step - 1] + 0.02 * random.standard_t(4, seeds)
    loss = falling(steps, np.exp(np.clip(wander, -0.4, 0.4)))
    shape = (steps, MICRO_STEPS, seeds)
    shared = 0.2 * random.standard_normal((*shape, 1))
    scale = np.exp(random.normal(0, 1.5, (seeds, PARAMS)))
    norms = scale * np.exp(shared + PARAM_TAIL * random.standard_normal((*shape, PARAMS)))
    names = [{"seed": str(n)} for n in range(seeds)]
    return {
        "loss": (names, loss),
        "local_loss": (names, loss[:, None] * np.exp(0.05 * random.standard_normal(shape))),
        "grad_norm": (names, np.exp(TAIL * random.standard_normal((steps, seeds)))),
        "micro_norm": (
            [{"seed": str(n), "param": f"p{m}"} for n in range(seeds) for m in range(PARAMS)],
            norms.reshape(steps, MICRO_STEPS, -1),
        ),
        "step_time": alone(10 * np.exp(0.02 * random.standard_normal(steps))),
    }


@pytest.mark.long
def test_three_thousand_healthy_steps_of_twenty_seeds_are_silent() -> None:
    heard = run(healthy())
    assert heard.failed == set()
    assert heard.evaluated >= {
        "LossNonFinite", "LossSpike", "LossSpikeSevere", "GradNormNonFinite", "GradNormSpike", "ParamGradNormSpike",
        "LossCollapse", "StepsStalling", "StepsSlower",
    }  # fmt: skip
    assert heard.told == []
    assert heard.fired == []


def test_the_same_noise_is_not_silent_with_a_rule_that_promises_too_much() -> None:
    """Otherwise the silence above would prove nothing."""
    loose = [rule for rule in shipped() if rule.name == "GradNormSpike"]
    samples = {"grad_norm": healthy(400)["grad_norm"]}
    assert run(samples, loose).fired == []
    assert run(samples, [replace(rule, for_records=1) for rule in loose]).fired


def noise(steps: int, sigma: float, seed: int = 3) -> NDArray[np.float64]:
    return np.exp(sigma * np.random.default_rng(seed).standard_normal(steps))


def spike(metric: str, level: float, sigma: float, factor: float, length: int = 6) -> Callable[[int | None], Samples]:
    """A healthy metric with a spike at step 301, and before it possibly a NaN so many steps earlier."""

    def samples(before: int | None) -> Samples:
        values = level * noise(340, sigma)
        values[300 : 300 + length] = level * factor
        if before is not None:
            values[300 - before] = np.nan
        return {metric: alone(values)}

    return samples


def params(before: int | None) -> Samples:
    values = np.stack([noise(340, 0.1, seed) for seed in range(4)], axis=1)
    values[300, 1] = 12.0
    if before is not None:
        values[300 - before] = np.nan
    return {"micro_norm": ([{"param": f"p{n}"} for n in range(4)], values)}


def logits(before: int | None) -> Samples:
    values = np.concatenate([np.full(600, 20.0) * noise(600, 0.01), np.linspace(20, 90, 300)])
    if before is not None:
        values[800 - before] = np.nan
    return {"max_attention_logit": ([{"block": "decoder", "layer": "0", "head": "0"}], values[:, None])}


def ranks(before: int | None) -> Samples:
    values = np.stack([10 * noise(340, 0.01, seed) for seed in range(8)], axis=1)
    values[300:, 5] *= 2
    if before is not None:
        values[300 - before, 2] = np.nan
    return {"step_time": ([{"rank": str(n)} for n in range(8)], values)}


BLINDED = {
    "LossSpike": spike("loss", 2.5, 0.02, 2.5),
    "LossSpikeSevere": spike("loss", 2.5, 0.02, 3.0, 8),
    "GradNormSpike": spike("grad_norm", 1.0, 0.2, 6.0),
    "ParamGradNormSpike": params,
    "AttentionLogitGrowth": logits,
    "LossCollapse": spike("loss", 2.5, 0.02, 0.001),
    "StepsStalling": spike("step_time", 10.0, 0.02, 4.0),
    "RankSlow": ranks,
}


@pytest.mark.long
@pytest.mark.parametrize("rule", BLINDED)
def test_one_nan_never_blinds_a_rule_to_a_later_spike(rule: str) -> None:
    """Wherever in the window it stood, the step before the spike included."""
    only = [each for each in shipped() if each.name == rule]
    expected = run(BLINDED[rule](None), only).steps(rule)
    assert expected
    for before in (1, 16, 60):
        assert run(BLINDED[rule](before), only).steps(rule)[:1] == expected[:1], before


def plateau(metric: str, labels: dict[str, str], low: float, high: float, sigma: float = 0.02) -> Samples:
    """500 bad steps between 400 good ones and 300 good ones."""
    level = np.concatenate([np.full(400, low), np.full(500, high), np.full(300, low)])
    return {metric: ([labels], (level * noise(1200, sigma))[:, None])}


HEAD = {"block": "decoder", "layer": "3", "head": "1"}
INCIDENTS = {
    "loss": plateau("loss", {}, 2.5, 4.2),
    "logits": plateau("max_attention_logit", HEAD, 20.0, 1500.0),
    "NaN": plateau("loss", {}, 2.5, np.nan),
    "norm": plateau("grad_norm", {}, 1.0, 9.0, 0.2),
    "steps": plateau("step_time", {}, 10.0, 45.0),
}


@pytest.mark.long
@pytest.mark.parametrize("what", INCIDENTS)
def test_an_incident_of_five_hundred_steps_is_two_messages(what: str) -> None:
    """One that it began and one that it is over, whatever it is and however many rules it trips at once."""
    heard = run(INCIDENTS[what])
    assert heard.failed == set()
    first, last = heard.told
    assert (first[1], last[1]) == ("opened", "resolved")
    assert 401 <= first[0] <= 410
    assert last[0] > 900
    assert all(not incident.active for incident in last[2])


@pytest.mark.long
def test_a_rise_in_severity_is_the_only_message_between() -> None:
    """What began as a warning and is no bad batch any more is told once more: somebody else may have to get up."""
    heard = run(plateau("loss", {}, 2.5, 7.5))
    assert [(step, reason) for step, reason, _ in heard.told[:2]] == [(402, "opened"), (405, "severity")]
    assert [reason for _, reason, _ in heard.told] == ["opened", "severity", "resolved"]
    assert heard.told[-1][0] > 900


def level(low: float, high: float, sigma: float = 0.0) -> NDArray[np.float64]:
    """500 bad steps between 400 good ones and 1,100 good ones."""
    return np.concatenate([np.full(400, low), np.full(500, high), np.full(1100, low)]) * noise(2000, sigma)


def experts(*bad: float) -> Samples:
    """Eight experts of one layer with 1,000 tokens each, and for 500 steps so many."""
    places = [{"block": "decoder", "layer": "2", "expert": str(expert)} for expert in range(8)]
    tokens = np.stack([level(1000.0, each) for each in bad], axis=1)
    return {
        "tokens_per_expert": (places, tokens),
        "router_topk": ([{"block": "decoder", "layer": "2"}], level(2, 2)[:, None]),
    }


def apart(metric: str, factor: float, sigma: float = 0.0) -> Samples:
    """Eight ranks, the sixth of them apart."""
    own = noise(2000, 0.02)
    values = np.stack(
        [own * noise(2000, sigma, rank) * (level(1, factor) if rank == 5 else 1) for rank in range(8)], axis=1
    )
    return {metric: ([{"rank": str(rank)} for rank in range(8)], values)}


def resumed() -> Samples:
    steps = np.concatenate([np.arange(1.0, 401), np.arange(1.0, 1601)])
    return {"loss": alone(level(2.0, 2.8, 0.01)), "attempt_step": alone(steps)}


def growing() -> Samples:
    values = np.concatenate([np.full(600, 20.0), np.linspace(20, 90, 500), np.full(900, 20.0)]) * noise(2000, 0.001)
    return {"max_attention_logit": ([HEAD], values[:, None])}


ONE_BY_ONE: dict[str, Samples] = {
    "LossNonFinite": {"loss": alone(level(2.5, np.nan, 0.02))},
    "LossSpike": {"loss": alone(level(2.5, 4.2, 0.02))},
    "LossSpikeSevere": {"loss": alone(level(2.5, 7.5, 0.02))},
    "LossCollapse": {"loss": alone(level(2.5, 0.001, 0.02))},
    "LossJumpAfterResume": resumed(),
    "GradNormNonFinite": {"grad_norm": alone(level(1.0, np.inf, 0.2))},
    "GradNormSpike": {"grad_norm": alone(level(1.0, 9.0, 0.2))},
    "AttentionLogitHigh": {"max_attention_logit": ([HEAD], level(20, 150, 0.02)[:, None])},
    "AttentionLogitExtreme": {"max_attention_logit": ([HEAD], level(20, 1500, 0.02)[:, None])},
    "AttentionLogitGrowth": growing(),
    "AttentionClipIneffective": {
        "max_attention_logit": ([HEAD], level(20, 150, 0.02)[:, None]), "qk_clip_threshold": alone(level(100, 100)),
    },
    "ExpertDead": experts(0, *[1143] * 7),
    "ExpertImbalance": experts(3200, *[686] * 7),
    "ExpertImbalanceSevere": experts(3900, 3900, *[34] * 6),
    "ExpertSaturation": experts(3900, 3900, *[34] * 6),
    "OverflowBurst": {"overflow": alone(level(0, 1))},
    "UpdatesSkipped": {"skipped_update": alone(level(0, 1))},
    "LossScaleCollapse": {"loss_scale": alone(level(65536, 64))},
    "RankSlow": apart("step_time", 2.0, 0.01),
    "RankLossApart": apart("device_loss", 2.0, 0.01),
    "RankGradNormApart": apart("grad_norm", 1.2),
    "StepsSlower": {"step_time": alone(level(10, 12, 0.01))},
    "StepsStalling": {"step_time": alone(level(10, 45, 0.02))},
    "MetricConstant": {"loss": alone(np.where(level(0, 1) > 0, 2.5, 2.5 * noise(2000, 0.02)))},
    "MetricMissing": {"loss": alone(level(2.5, 2.5, 0.02)), "step_time": alone(level(10, 10, 0.02))},
}  # fmt: skip
OTHERWISE = {
    "ParamGradNormSpike": "about single micro-batches: half a window of a higher norm is what it takes for usual",
    "RunFailed": "a run ends once: tests/session/test_run_failed.py",
    "TrainingStalled": "no step ends: tests/ruletest/test_ruletest_standstill.py",
}


def test_every_shipped_rule_is_among_them() -> None:
    assert {rule.name for rule in shipped()} == {*ONE_BY_ONE, *OTHERWISE}


@pytest.mark.long
@pytest.mark.parametrize("rule", ONE_BY_ONE)
def test_each_rule_by_itself_tells_of_five_hundred_steps_twice(rule: str) -> None:
    """That it began while it did, and that it is over when it is; neither a flap nor a recovery between."""
    only = [each for each in shipped() if each.name == rule]
    absent = {"loss": range(401, 901)} if rule == "MetricMissing" else {}
    heard = run(ONE_BY_ONE[rule], only, absent)
    assert heard.failed == set()
    assert [reason for _, reason, _ in heard.told] == ["opened", "resolved"], heard.told
    (began, *_), (ended, *_) = heard.told
    assert 400 < began <= (1100 if rule == "AttentionLogitGrowth" else 900)
    assert ended > (1100 if rule == "AttentionLogitGrowth" else 900)


@pytest.mark.long
@pytest.mark.parametrize(
    ("metric", "level", "high"),
    [("loss", 2.5, 4.5), ("loss", 2.5, 6.0), ("grad_norm", 1.0, 9.0), ("step_time", 10.0, 12.0)],
)
def test_a_level_shift_is_not_told_as_recovered(metric: str, level: float, high: float) -> None:
    """The baseline adapts to it within half a window; the alert holds until the level is back."""
    values = np.concatenate([np.full(600, level), np.full(1200, high), np.full(200, level)]) * noise(2000, 0.02)
    heard = run({metric: alone(values)})
    assert heard.told
    assert 601 <= heard.told[0][0] <= 700
    ends = [step for step, reason, _ in heard.told if reason == "resolved"]
    assert all(step > 1800 for step in ends), heard.told
    assert ends
