"""The shipped packs over samples that are made up: arrays in, what happened and what was told out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from healthwatch import resources
from healthwatch.alerting.escalation import Policy
from healthwatch.alerting.model import Incident
from healthwatch.config import LadderStep
from healthwatch.engine import Engine
from healthwatch.promql import ast
from healthwatch.rulefile import Rule, load_rules
from healthwatch.stream import Duration, Frame, SeriesTable

Labels: TypeAlias = Sequence[Mapping[str, str]]
Samples: TypeAlias = Mapping[str, tuple[Labels, NDArray[np.float64]]]
"""By metric: its series, and values of shape (steps, series) or (steps, micro-steps, series)."""

TOLD = Policy(
    ladder=lambda _: (LadderStep("notify", "oncall"),),
    group=lambda _: (("run", "test"),),
    group_interval=lambda _: Duration(steps=50),
)


@cache
def shipped() -> tuple[Rule, ...]:
    """Every rule of every pack."""
    return load_rules([f"builtin:{pack}" for pack in resources.packs()]).rules


def about(metrics: Iterable[str]) -> tuple[Rule, ...]:
    """The shipped rules that look at one of these metrics: no other can say anything of them."""
    wanted = set(metrics)
    return tuple(rule for rule in shipped() if wanted & _metrics(rule) or None in _metrics(rule))


def _metrics(rule: Rule) -> set[str | None]:
    return {node.metric for node in ast.walk(rule.expression.tree) if isinstance(node, ast.VectorSelector)}


@dataclass(slots=True)
class Heard:
    """`fired` and `ended` hold (step, rule, labels); `told` the step, reason and incidents of every message."""

    fired: list[tuple[int, str, tuple[tuple[str, str], ...]]] = field(default_factory=list)
    ended: list[tuple[int, str, str]] = field(default_factory=list)  # step, rule, why
    told: list[tuple[int, str, tuple[Incident, ...]]] = field(default_factory=list)
    failed: set[str] = field(default_factory=set)
    evaluated: set[str] = field(default_factory=set)  # rules that had data

    def steps(self, rule: str) -> list[int]:
        return sorted({step for step, name, _ in self.fired if name == rule})


def run(samples: Samples, rules: Sequence[Rule] | None = None, absent: Mapping[str, range] = {}) -> Heard:
    """Everybody is told of everything that fires, whatever its severity; `absent` has no sample at these steps."""
    table, heard = SeriesTable(), Heard()
    engine = Engine(about(samples) if rules is None else rules, table, TOLD)
    series = {metric: table.register(metric, labels) for metric, (labels, _) in samples.items()}
    steps = max(len(values) for _, values in samples.values())
    for step in range(1, steps + 1):
        frame = Frame(step, time=10.0 * step)
        for metric, (_, values) in samples.items():
            if step <= len(values) and step not in absent.get(metric, ()):
                rows = values[step - 1]
                for m, row in enumerate(rows if rows.ndim == 2 else ()):
                    frame.add(series[metric], row, m)
                if rows.ndim == 1:
                    frame.add(series[metric], rows)
        frame.close()
        outcome = engine.step(frame)
        for each in outcome.transitions:
            if each.reason == "fired":
                heard.fired.append((step, each.rule, each.labels))
            elif each.before.value == "firing" and each.after.value == "inactive":
                heard.ended.append((step, each.rule, each.reason))
        heard.told += [(step, each.reason, each.incidents) for each in outcome.intents]
        heard.failed |= {f"{each.rule}: {each.message}" for each in outcome.problems if each.kind == "failed"}
    heard.evaluated = {watch.rule.name for watch in engine.watches if not watch.silent}
    return heard


def alone(values: Sequence[float] | NDArray[np.float64]) -> tuple[Labels, NDArray[np.float64]]:
    """One series without labels."""
    return [{}], np.asarray(values, dtype=np.float64)[:, None]
