"""What a rule file says, checked and compiled: the only form in which the layers above see a rule."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from healthwatch.stream.ticks import Duration

if TYPE_CHECKING:
    from healthwatch.diagnostics import Diagnostic, Span
    from healthwatch.promql.parse import Expression
    from healthwatch.rulefile.overriding import Overridden
    from healthwatch.rulefile.template import Template

Mode: TypeAlias = Literal["active", "shadow"]

DEFAULT_SEVERITY = "info"
DEFAULT_LIMIT = 10


@dataclass(frozen=True, slots=True, eq=False)
class Rule:
    """One alerting rule with everything in force: group keys and the config's `override` are worked in."""

    name: str
    group: str
    expression: Expression
    span: Span  # of the value of `alert`
    until: Expression | None = None
    detail: Expression | None = None
    for_: Duration = Duration(steps=0)
    for_records: int | None = None
    keep_firing_for: Duration = Duration(steps=0)
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, Template] = field(default_factory=dict)
    warmup: int = 0  # steps
    settle: int = 0  # steps of an attempt
    inhibited_by: tuple[str, ...] = ()  # names of loaded rules only
    escalation: str | None = None  # a ladder's name where it is not the severity
    mode: Mode = "active"
    limit: int = DEFAULT_LIMIT  # how many series a message lists
    params: Mapping[str, float] = field(default_factory=dict)
    lookback: int | None = None  # steps

    @property
    def severity(self) -> str:
        return self.labels.get("severity", DEFAULT_SEVERITY)

    @property
    def ladder(self) -> str:
        """The name of the escalation ladder that its incidents climb."""
        return self.escalation or self.severity


@dataclass(frozen=True, slots=True)
class Loaded:
    """The rules of all sources.

    `rules` holds the enabled ones without an error, `metrics` what the files declare, `parameters` every rule that
    the files name with the names of its parameters; `overridden` are those of the diagnostics that overrides caused.
    """

    rules: tuple[Rule, ...]
    diagnostics: tuple[Diagnostic, ...]
    metrics: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    parameters: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    overridden: tuple[Overridden, ...] = ()
