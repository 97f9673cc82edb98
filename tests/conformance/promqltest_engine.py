"""Runs one evaluation of a script against our engine and says what is wrong with the result."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np
from healthwatch.promql.program import Program, Query
from promqltest_script import Eval, Expected, Load
from promqltest_series import Sample, WrittenSeries

from healthwatch.promql.check import type_of
from healthwatch.promql.parse import Expression, parse
from healthwatch.promql.vector import EvaluationError, Vector
from healthwatch.stream.history import ABSENT, STALE, History
from healthwatch.stream.series import METRIC_NAME, LabelSet, SeriesTable
from healthwatch.stream.ticks import TICKS_PER_STEP

LOOKBACK = 300
RANGE_CHECK = 60 * TICKS_PER_STEP
TOLERANCE = 1e-6
_SMALLEST = float(np.finfo(np.float64).tiny)

Points = dict[LabelSet, dict[int, float]]
"""A range result: values by label set (with its name) and tick."""


class WrongResultError(Exception):
    """A result that is not what the script expects."""


@dataclass(slots=True)
class Storage:
    """The samples that a script has loaded; histogram samples are left out."""

    series: dict[LabelSet, dict[int, float]] = field(default_factory=dict)
    _history: History | None = None

    def load(self, command: Load) -> None:
        for written in command.series:
            samples = self.series.setdefault(written.labels, {})
            for position, sample in enumerate(written.samples):
                if sample is not None and sample != "histogram":
                    samples[position * command.gap] = STALE if isinstance(sample, str) else sample
        self._history = None

    def history(self) -> History:
        if self._history is None:
            self._history = _history(self.series)
        return self._history


def _history(series: Mapping[LabelSet, Mapping[int, float]]) -> History:
    table = SeriesTable()
    history = History(table)
    metrics: dict[str, list[LabelSet]] = {}
    for labels in series:
        metrics.setdefault(dict(labels).get(METRIC_NAME, ""), []).append(labels)
    for metric, sets in metrics.items():
        registered = table.register(metric, [dict(labels) for labels in sets])
        for tick in sorted({tick for labels in sets for tick in series[labels]}):
            values = np.array([series[labels].get(tick, ABSENT) for labels in sets])
            history.append(tick, registered, values)
    return history


def check(command: Eval, storage: Storage) -> None:
    """Raises WrongResultError where the evaluation does not give what the script expects."""
    expected = command.expected
    try:
        expression = _parsed(command.text)
        if expected.string is not None:
            _check_string(expression, expected.string)
            return
        query = _query(expression, storage)
        if command.step is None:
            _check_instant(expression, query, command)
        else:
            points = _range(query, command.start, command.end, command.step)
            _compare_range(points, expected.series, command.start, command.step, command.end)
    except EvaluationError as error:
        _check_failure(str(error), expected)
        return
    if expected.fail is not None:
        raise WrongResultError("it must fail, but has a result")


def _parsed(text: str) -> Expression:
    parsed = parse(text, rule=False)
    if parsed.expression is None:
        raise EvaluationError("; ".join(problem.message for problem in parsed.problems))
    return parsed.expression


def _query(expression: Expression, storage: Storage) -> Query:
    program = Program(storage.history(), subquery_step=RANGE_CHECK)
    return program.add(expression, lookback=LOOKBACK)


def _check_failure(message: str, expected: Expected) -> None:
    if expected.fail is None:
        raise WrongResultError(f"it fails: {message}")
    if isinstance(expected.fail, re.Pattern):
        if not expected.fail.search(message):
            raise WrongResultError(f"it fails with {message!r}, not with {expected.fail.pattern!r}")
    elif expected.fail not in message:
        raise WrongResultError(f"it fails with {message!r}, not with {expected.fail!r}")


def _check_string(expression: Expression, wanted: str) -> None:
    if expression.string != wanted:
        raise WrongResultError(f"expected the string {wanted!r}, got {expression.string!r}")


def _check_instant(expression: Expression, query: Query, command: Eval) -> None:
    vector = query.evaluate(command.start)
    expected = command.expected
    if expected.fail is not None:
        return
    kind = type_of(expression.tree)
    if expected.scalar is not None:
        if kind != "scalar" or not almost_equal(vector.scalar, expected.scalar):
            raise WrongResultError(f"expected the number {expected.scalar}, got {_shown(_pairs(vector))}")
        return
    if kind == "scalar":
        raise WrongResultError("expected a vector, got a number")
    _compare_instant(_pairs(vector), expected)
    if not _depends_on_range(command.text):
        _check_as_range(query, command, vector)


def _depends_on_range(text: str) -> bool:
    return re.search(r"\b(?:start|end|range|step)\s*\(", text) is not None


def _check_as_range(query: Query, command: Eval, vector: Vector) -> None:
    """The middle of a range evaluation must say the same as the instant one."""
    points = _range(query, command.start - RANGE_CHECK, command.start + RANGE_CHECK, RANGE_CHECK)
    middle = [(labels, at[command.start]) for labels, at in points.items() if command.start in at]
    wanted = dict(_pairs(vector))
    if len(middle) != len(wanted) or not all(
        labels in wanted and almost_equal(value, wanted[labels]) for labels, value in middle
    ):
        raise WrongResultError(f"as a range it gives {_shown(middle)}, at once {_shown(list(wanted.items()))}")


def _pairs(vector: Vector) -> list[tuple[LabelSet, float]]:
    order = np.flatnonzero(vector.kept) if vector.order is None else vector.order
    return [(vector.labels[i], float(vector.values[i])) for i in order]


def _range(query: Query, start: int, end: int, step: int) -> Points:
    matrix = query.evaluate_range(start, end, step)
    points: Points = {}
    for row, column in np.argwhere(matrix.kept):
        series = points.setdefault(matrix.labels[column], {})
        if matrix.ticks[row] in series:
            raise EvaluationError("vector cannot contain metrics with the same labelset")
        series[matrix.ticks[row]] = float(matrix.values[row, column])
    return points


def _compare_instant(got: list[tuple[LabelSet, float]], expected: Expected) -> None:
    wanted = [(series.labels, _number(series.samples[:1])) for series in expected.series]
    if expected.ordered and [labels for labels, _ in got] != [labels for labels, _ in wanted]:
        raise WrongResultError(f"expected in this order {_shown(wanted)}, got {_shown(got)}")
    found = dict(got)
    if len(found) != len(got):
        raise WrongResultError(f"a label set is there twice: {_shown(got)}")
    for labels, value in wanted:
        if labels not in found:
            raise WrongResultError(f"{_shown([(labels, value)])} is missing in {_shown(got)}")
        if not almost_equal(found[labels], value):
            raise WrongResultError(f"expected {_shown([(labels, value)])}, got {found[labels]!r}")
    _check_surplus(found.items(), {labels for labels, _ in wanted})


def _check_surplus(found: Iterable[tuple[LabelSet, object]], wanted: set[LabelSet]) -> None:
    surplus = [labels for labels, _ in found if labels not in wanted]
    if surplus:
        raise WrongResultError(f"unexpected: {', '.join(map(_series, surplus))}")


def _number(samples: tuple[Sample, ...]) -> float:
    return samples[0] if samples and isinstance(samples[0], float) else float("nan")


def _compare_range(points: Points, expected: tuple[WrittenSeries, ...], start: int, step: int, end: int) -> None:
    for series in expected:
        wanted = {
            start + i * step: sample
            for i, sample in enumerate(series.samples)
            if isinstance(sample, float) and start + i * step <= end
        }
        found = points.get(series.labels, {})
        for tick in sorted(wanted.keys() | found.keys()):
            at = f"{_series(series.labels)} at {tick / TICKS_PER_STEP:g}"
            if tick not in found:
                raise WrongResultError(f"{at} is missing, expected {wanted[tick]}")
            if tick not in wanted:
                raise WrongResultError(f"{at} must be missing, got {found[tick]}")
            if not almost_equal(found[tick], wanted[tick]):
                raise WrongResultError(f"{at}: expected {wanted[tick]}, got {found[tick]!r}")
    _check_surplus(points.items(), {series.labels for series in expected})


def almost_equal(left: float, right: float) -> bool:
    """Equal within a relative error of 1e-6; NaN equals NaN."""
    if np.isnan(left) or np.isnan(right):
        return bool(np.isnan(left) and np.isnan(right))
    if left == right:
        return True
    total, difference = abs(left) + abs(right), abs(left - right)
    if left == 0 or right == 0 or total < _SMALLEST:
        return difference < TOLERANCE * _SMALLEST
    return difference < TOLERANCE * min(total, float(np.finfo(np.float64).max))


def _shown(pairs: Iterable[tuple[LabelSet, float]]) -> str:
    return "[" + ", ".join(f"{_series(labels)} {value!r}" for labels, value in pairs) + "]"


def _series(labels: LabelSet) -> str:
    name = dict(labels).get(METRIC_NAME, "")
    inner = ", ".join(f'{key}="{value}"' for key, value in labels if key != METRIC_NAME)
    return f"{name}{{{inner}}}"
