"""What the demo must find: by which rules each planted fault is told, and what may follow from it."""

from __future__ import annotations

from dataclasses import dataclass

from examples.moe_pretrain import faults


@dataclass(frozen=True, slots=True)
class FollowUp:
    """An incident that a fault may bring along, if it opens within these steps."""

    rule: str
    steps: range


@dataclass(frozen=True, slots=True)
class Planted:
    """A fault, the steps during which it lasts, the rules that must find it, and what may follow."""

    fault: str
    steps: range
    rules: tuple[str, ...]
    follow_ups: tuple[FollowUp, ...] = ()
    micro_step: int | None = None  # counted from 1, where the fault is in one alone


def norms_within(steps: range) -> tuple[FollowUp, ...]:
    return FollowUp("GradNormSpike", steps), FollowUp("ParamGradNormSpike", steps)


PLANTED = (
    Planted(
        "micro-batch 2 is all one token",
        faults.PLANTED.one_token,
        ("ParamGradNormSpike", "GradNormSpike"),
        (FollowUp("ExpertSaturation", range(151, 154)),),
        micro_step=2,
    ),
    Planted(
        "the router of layer 0 prefers experts 3 and 5",
        faults.PLANTED.router_bias,
        ("ExpertSaturation", "ExpertImbalanceSevere", "ExpertDead", "ExpertImbalance"),
        norms_within(range(211, 228)),
    ),
    Planted(
        "queries and keys of layer 0 grow 1.4 times a step",
        faults.PLANTED.hot_attention,
        ("AttentionLogitGrowth", "AttentionLogitHigh", "AttentionLogitExtreme"),
        norms_within(range(322, 345)),
    ),
    Planted(
        "loss and gradients of micro-batch 2 are NaN",
        faults.PLANTED.nonfinite,
        ("LossNonFinite", "GradNormNonFinite"),
        micro_step=2,
    ),
)

# What the message and the log line of a rule must name, beside the step and the micro-step.
PLACES = {
    "ParamGradNormSpike": ('param="',),
    "ExpertSaturation": ('layer="0"',),
    "ExpertImbalanceSevere": ('layer="0"',),
    "ExpertDead": ('layer="0"', 'expert="'),
    "ExpertImbalance": ('layer="0"',),
    "AttentionLogitGrowth": ('layer="0"', 'head="'),
    "AttentionLogitHigh": ('layer="0"', 'head="'),
    "AttentionLogitExtreme": ('layer="0"', 'head="'),
    "LossNonFinite": ("device_loss",),
    "GradNormNonFinite": ('param="',),
}
