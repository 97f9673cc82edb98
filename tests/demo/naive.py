"""A second opinion: which alerts a recorded run must raise, and when, computed from its samples with plain loops.

It shares no code with healthwatch (it imports nothing from it) and no cleverness. What it knows is the rule language's
semantics and the defaults of the shipped packs.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from naive_rules import (
    STEP,
    Labels,
    Samples,
    Verdicts,
    above,
    dead_expert,
    imbalance,
    logit_growth,
    nonfinite,
    parameter_spike,
    saturation,
    spike,
    stays,
)

LOSSES = ("loss", "local_loss", "device_loss")
NORMS = ("grad_norm", "local_norm", "micro_norm", "device_norm")


@dataclass(frozen=True)
class Rule:
    name: str
    severity: str
    metric: str  # whose ticks it is evaluated at
    evaluate: Callable[[Samples, int], Verdicts]
    for_records: int = 1
    warmup: int = 0
    keep: int = 10
    until: Callable[[Samples, Labels, int], bool] | None = None  # whether what fires is held at a tick


RULES = (
    *(Rule("LossNonFinite", "critical", metric, nonfinite(metric)) for metric in LOSSES),
    *(Rule("GradNormNonFinite", "critical", metric, nonfinite(metric)) for metric in NORMS),
    Rule("LossSpike", "warning", "loss", spike("loss", 128, lambda ratio: ratio > 1.5), 2, until=stays("loss", 1.3)),
    Rule(
        "LossSpikeSevere", "critical", "loss", spike("loss", 128, lambda ratio: ratio >= 2), 5, until=stays("loss", 1.3)
    ),
    Rule(
        "GradNormSpike",
        "critical",
        "grad_norm",
        spike("grad_norm", 50, lambda ratio: ratio >= 2),
        for_records=3,
        until=stays("grad_norm", 2),
    ),
    Rule("ParamGradNormSpike", "warning", "micro_norm", parameter_spike, warmup=60),
    Rule("AttentionLogitHigh", "warning", "max_attention_logit", above("max_attention_logit", 100)),
    Rule("AttentionLogitExtreme", "critical", "max_attention_logit", above("max_attention_logit", 1000)),
    Rule("AttentionLogitGrowth", "warning", "max_attention_logit", logit_growth),
    Rule("ExpertSaturation", "critical", "tokens_per_expert", saturation, for_records=3, warmup=60),
    Rule("ExpertImbalance", "warning", "tokens_per_expert", imbalance(0.3, 1.0), for_records=50, warmup=200),
    Rule("ExpertImbalanceSevere", "critical", "tokens_per_expert", imbalance(0.8, 0.0), for_records=20, warmup=200),
    Rule("ExpertDead", "warning", "tokens_per_expert", dead_expert),
)


class Event(NamedTuple):
    step: int
    change: str  # "fired" or "resolved"
    since: int
    labels: Labels


@dataclass
class Alert:
    """One rule on one label set."""

    breaches: int = 0
    since: int = 0  # the tick of the first breach
    firing: bool = False
    clear_since: int | None = None

    def advance(self, step: int, breach: int | None, rule: Rule, *, held: bool = False) -> str | None:
        """`"fired"` or `"resolved"` where this step brings it about; `breach` is its first tick that breached."""
        if breach is not None:
            self.since = self.since if self.breaches else breach
            self.breaches, self.clear_since = self.breaches + 1, None
            if not self.firing and self.breaches >= rule.for_records:
                self.firing = True
                return "fired"
        elif self.firing and held:
            self.clear_since = None
        elif self.firing:
            self.clear_since = step if self.clear_since is None else self.clear_since
            if step - self.clear_since >= rule.keep:
                self.firing, self.breaches, self.clear_since = False, 0, None
                return "resolved"
        else:
            self.breaches = 0
        return None


@dataclass
class Incident:
    """The alerts of one rule that fire together."""

    rule: str
    severity: str
    opened: int
    since: int  # the tick of the first breach that led to it
    ended: int | None = None
    fired: list[tuple[int, Labels]] = field(default_factory=list)


def verdicts_by_step(rule: Rule, samples: Samples) -> Iterable[tuple[int, dict[Labels, int | None]]]:
    """The first tick of a step that breached, None where the step is clear."""
    steps: dict[int, dict[Labels, int | None]] = {}
    for tick in samples.rows.get(rule.metric, ()):
        step = math.ceil(tick / STEP)
        if step > rule.warmup:
            verdicts = steps.setdefault(step, {})
            for labels, (breach, _) in rule.evaluate(samples, tick).items():
                verdicts[labels] = verdicts.get(labels) or (tick if breach else None)
    return steps.items()


def events(rule: Rule, samples: Samples) -> list[Event]:
    """What became of the rule's alerts, by step."""
    alerts: dict[Labels, Alert] = {}
    found = []
    for step, verdicts in verdicts_by_step(rule, samples):
        for labels, breach in verdicts.items():
            alert = alerts.setdefault(labels, Alert())
            held = alert.firing and rule.until is not None and rule.until(samples, labels, step * STEP)
            change = alert.advance(step, breach, rule, held=held)
            if change:
                found.append(Event(step, change, alert.since, labels))
    return found


def incidents(samples: Samples, rules: Iterable[Rule] = RULES) -> list[Incident]:
    """By the step at which they opened. Rules of one name share their incidents."""
    named: dict[str, list[Event]] = {}
    severity = {}
    for rule in rules:
        severity[rule.name] = rule.severity
        named.setdefault(rule.name, []).extend(events(rule, samples))
    found: list[Incident] = []
    for name, changes in named.items():
        found += group_events(name, severity[name], sorted(changes))
    return sorted(found, key=lambda incident: (incident.opened, incident.rule))


def group_events(name: str, severity: str, changes: list[Event]) -> list[Incident]:
    """An incident lasts from the first alert's firing until none fires any more at the end of a step."""
    found: list[Incident] = []
    firing: set[Labels] = set()
    for step, change, since, labels in changes:
        if change == "fired":
            if not firing and not (found and found[-1].ended == step):
                found.append(Incident(name, severity, step, since))
            found[-1].ended = None
            found[-1].fired.append((step, labels))
            firing.add(labels)
        else:
            firing.discard(labels)
            if not firing:
                found[-1].ended = step
    return found
