"""The `when:` catalogue: conditions, what they expand to, their schema and their pages."""

from __future__ import annotations

from healthwatch.rulefile.conditions.expand import Expanded, expand
from healthwatch.rulefile.conditions.page import brief, index, page
from healthwatch.rulefile.conditions.problems import ConditionProblem
from healthwatch.rulefile.conditions.registry import Registry, registry
from healthwatch.rulefile.conditions.schema import when_schema
from healthwatch.rulefile.conditions.spec import (
    Arguments,
    Condition,
    Expansion,
    Guard,
    Issue,
    Parameter,
    Test,
)

__all__ = [
    "Arguments",
    "Condition",
    "ConditionProblem",
    "Expanded",
    "Expansion",
    "Guard",
    "Issue",
    "Parameter",
    "Registry",
    "Test",
    "brief",
    "expand",
    "index",
    "page",
    "registry",
    "when_schema",
]
