"""What a test file says: inputs, and what is expected of the rules."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from healthwatch.stream.series import LabelSet

if TYPE_CHECKING:
    from healthwatch.config import LadderStep
    from healthwatch.diagnostics import Span
    from healthwatch.promql import Expression

Sample: TypeAlias = float | Literal["stale"] | None
Labels: TypeAlias = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class WrittenSeries:
    """A series and its values in order; `micro_steps` of them make a step, without it each is a step's own."""

    metric: str
    labels: LabelSet
    values: tuple[Sample, ...]
    micro_steps: int | None = None
    span: Span | None = None  # of its name and labels


@dataclass(frozen=True, slots=True)
class ExpectedAlert:
    """Labels without `alertname`; what is None is not compared."""

    labels: Labels
    annotations: Labels | None = None
    value: float | None = None


@dataclass(frozen=True, slots=True)
class AlertTest:
    """The alerts of one rule that fire after `step`: exactly these."""

    step: int
    rule: str
    expected: tuple[ExpectedAlert, ...]
    span: Span
    named: Span  # where the rule's name stands


@dataclass(frozen=True, slots=True)
class ExprTest:
    """The result of an expression at the end of a step, or of a micro-step counted from 1."""

    expression: Expression
    step: int
    micro_step: int | None
    lookback: int | None  # steps
    expected: tuple[tuple[LabelSet, float], ...]
    span: Span


@dataclass(frozen=True, slots=True)
class Expected:
    """An incident or an action: the fields that are compared."""

    fields: Mapping[str, Any]
    span: Span
    named: Span  # where the rule's name stands, or all of it


@dataclass(frozen=True, slots=True)
class Case:
    """One test: the samples come from `series`, or from a file (a recorded run or JSON lines)."""

    name: str
    span: Span
    series: tuple[WrittenSeries, ...] = ()
    interval: int = 1  # steps between two values
    start: int = 0  # the step of the first value
    step_time: float = 1.0  # seconds
    resume_at: tuple[int, ...] = ()  # steps at which another attempt begins
    standstills: Mapping[int, float] = field(default_factory=dict)  # seconds in which no step ends, by the step before
    source: Path | None = None
    alerts: tuple[AlertTest, ...] = ()
    expressions: tuple[ExprTest, ...] = ()
    incidents: tuple[Expected, ...] | None = None
    actions: tuple[Expected, ...] | None = None

    @property
    def last_asked(self) -> int:
        """The latest step at which something is expected."""
        return max((*(each.step for each in self.alerts), *(each.step for each in self.expressions)), default=0)


@dataclass(frozen=True, slots=True)
class RuleTest:
    """One test file."""

    file: str
    rule_files: tuple[str, ...]
    cases: tuple[Case, ...]
    evaluation_interval: int = 1  # steps
    escalation: Mapping[str, tuple[LadderStep, ...]] = field(default_factory=dict)
    override: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
