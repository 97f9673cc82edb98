"""Runs one evaluation of a script against our engine."""

from __future__ import annotations

import re

import numpy as np
from promqltest_compare import (
    HISTOGRAM_NEEDED,
    Points,
    SkippedError,
    Value,
    WrongResultError,
    at_steps,
    compare,
    compare_failure,
    compare_order,
    compare_scalars,
    compare_strings,
)
from promqltest_script import Eval
from promqltest_storage import Storage

from healthwatch.promql import ast
from healthwatch.promql.check import type_of
from healthwatch.promql.parse import Expression, parse
from healthwatch.promql.program import Program, Query
from healthwatch.promql.vector import EvaluationError, Matrix, Vector
from healthwatch.stream.series import LabelSet
from healthwatch.stream.ticks import TICKS_PER_STEP

LOOKBACK = 300
NOT_SUPPORTED = "HW109"
MINUTE = 60 * TICKS_PER_STEP

# Aggregations and functions that pass over histograms, as Prometheus documents them.
FLOATS_ONLY = frozenset(
    """bottomk topk quantile stddev stdvar scalar clamp clamp_max clamp_min deriv predict_linear mad_over_time
    double_exponential_smoothing stddev_over_time stdvar_over_time quantile_over_time
    day_of_month day_of_week day_of_year days_in_month hour minute month year""".split()  # noqa: SIM905 - shorter
)
LOOK_INSIDE = frozenset(("changes", "resets", "count_values", "==", "!="))
"""What compares histograms with each other, or makes a label of one."""


def check(command: Eval, storage: Storage) -> None:
    """Raises WrongResultError where the evaluation does not give what the script expects."""
    expected = command.expected
    try:
        expression = _parsed(command.text)
        if expected.string is not None:
            compare_strings(expression.string, expected.string)
            return
        _Evaluation(command, expression, storage).check()
    except EvaluationError as error:
        compare_failure(str(error), expected)
        return
    if expected.fail is not None:
        raise WrongResultError("it must fail, but has a result")


def _parsed(text: str) -> Expression:
    parsed = parse(text, rule=False)
    if parsed.expression is None:
        if {problem.code for problem in parsed.problems} == {NOT_SUPPORTED}:
            raise SkippedError(f"not supported: {parsed.problems[0].message}")
        raise EvaluationError("; ".join(problem.message for problem in parsed.problems))
    return parsed.expression


class _Evaluation:
    def __init__(self, command: Eval, expression: Expression, storage: Storage) -> None:
        self.command = command
        self.expression = expression
        self.storage = storage
        self.query = self._query()

    def _query(self) -> Query:
        history = self.storage.history(histograms=not _passes_over_histograms(self.expression.tree))
        program = Program(history, subquery_step=MINUTE)
        return program.add(self.expression, lookback=LOOKBACK)

    def check(self) -> None:
        try:
            self._check()
        except WrongResultError:
            nodes, expected = ast.walk(self.expression.tree), self.command.expected
            metrics = {node.metric for node in nodes if isinstance(node, ast.VectorSelector)}
            if not self.storage.has_histograms(metrics):
                raise
            if expected.annotated and not expected.series:
                raise SkippedError("a warning alone is expected") from None
            if any(_name(node) in LOOK_INSIDE for node in nodes):
                raise SkippedError(HISTOGRAM_NEEDED) from None
            raise

    def _check(self) -> None:
        command, expected = self.command, self.command.expected
        if expected.ranges is not None:
            points = self._points(self.query.evaluate_samples(command.start))
            compare(points, at_steps(expected.series, *expected.ranges))
        elif command.step is not None:
            points = self._range(command.start, command.end, command.step)
            compare(points, at_steps(expected.series, command.start, command.end, command.step))
        else:
            self._check_instant()

    def _check_instant(self) -> None:
        expected, at = self.command.expected, self.command.start
        vector = self.query.evaluate(at)
        if expected.fail is not None:
            return
        is_scalar = type_of(self.expression.tree) == "scalar"
        if expected.scalar is not None:
            compare_scalars(vector.scalar if is_scalar else None, expected.scalar)
            return
        if is_scalar:
            raise WrongResultError("expected a vector, got a number")
        found = self._pairs(vector)
        points = {labels: {at: value} for labels, value in found}
        if len(points) != len(found):
            raise WrongResultError("a label set is there twice")
        compare(points, at_steps(expected.series, at, at, 1))
        if expected.ordered:
            compare_order([labels for labels, value in found if isinstance(value, float)], expected)
        if not re.search(r"\b(?:start|end|range|step)\s*\(", self.command.text):
            self._check_as_range(points)

    def _check_as_range(self, points: Points) -> None:
        """The middle of a range evaluation must say the same as the instant one."""
        at = self.command.start
        ranged = self._range(at - MINUTE, at + MINUTE, MINUTE)
        middle = {labels: {at: values[at]} for labels, values in ranged.items() if at in values}
        try:
            compare(middle, points)
        except WrongResultError as error:
            raise WrongResultError(f"in a range evaluation: {error}") from None

    def _pairs(self, vector: Vector) -> list[tuple[LabelSet, Value]]:
        order = np.flatnonzero(vector.kept) if vector.order is None else vector.order
        return [(vector.labels[i], self.storage.sample(float(vector.values[i]))) for i in order]

    def _range(self, start: int, end: int, step: int) -> Points:
        return self._points(self.query.evaluate_range(start, end, step))

    def _points(self, matrix: Matrix) -> Points:
        points: Points = {}
        for row, column in np.argwhere(matrix.kept):
            value = self.storage.sample(float(matrix.values[row, column]))
            points.setdefault(matrix.labels[column], {})[matrix.ticks[row]] = value
        return points


def _passes_over_histograms(node: ast.Expr) -> bool:
    """Whether every selector stands below something that does."""
    if _name(node) in FLOATS_ONLY:
        return True
    below = [_passes_over_histograms(child) for child in ast.children(node)]
    return not isinstance(node, ast.VectorSelector) and all(below)


def _name(node: ast.Expr) -> str:
    if isinstance(node, ast.Call):
        return node.function
    return node.op if isinstance(node, ast.Aggregate | ast.Binary) else ""
