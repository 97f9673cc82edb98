"""What is wrong in a `when:`, told by its place in there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from healthwatch.stream.catalogue import Metric

Path: TypeAlias = tuple[str | int, ...]
ProblemKind: TypeAlias = Literal[
    "unknown condition",
    "unknown key",
    "unknown metric",
    "unknown label",
    "missing key",
    "wrong type",
    "out of range",
    "conflict",
    "never matches",
    "bad pattern",
    "undefined parameter",
    "not supported",
    "bad expansion",
]


@dataclass(frozen=True, slots=True)
class ConditionProblem:
    """`path` leads from `when` to what is wrong; `on` says whether its key or its value is meant."""

    kind: ProblemKind
    path: Path
    message: str
    help: str = ""
    severity: Literal["error", "warning"] = "error"
    on: Literal["key", "value"] = "value"


@dataclass(frozen=True, slots=True)
class Bad:
    """A value that can't be used, before it is known where it stands."""

    message: str
    help: str = ""
    kind: ProblemKind = "wrong type"
    below: Path = ()  # further down from the value
    severity: Literal["error", "warning"] = "error"
    on: Literal["key", "value"] = "value"

    def at(self, path: Path) -> ConditionProblem:
        return ConditionProblem(self.kind, path + self.below, self.message, self.help, self.severity, self.on)


@dataclass(frozen=True, slots=True)
class Scope:
    """What a `when:` may refer to: metrics by name, and the rule's `params`."""

    metrics: Mapping[str, Metric]
    params: Mapping[str, float | int | str] = field(default_factory=dict)
