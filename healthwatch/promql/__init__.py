"""The rule language: PromQL on the step axis, evaluated on arrays."""

from __future__ import annotations

from healthwatch.promql.parse import Expression, Parsed, parse
from healthwatch.promql.program import Program, Query
from healthwatch.promql.vector import Derived, EvaluationError, Labels, Matrix, Vector

__all__ = [
    "Derived",
    "EvaluationError",
    "Expression",
    "Labels",
    "Matrix",
    "Parsed",
    "Program",
    "Query",
    "Vector",
    "parse",
]
