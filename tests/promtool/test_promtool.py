"""Alert semantics and results against promtool: golden results everywhere, the tool where `make tools` put it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import promtool
import pytest
import yaml
from dialects import LOOKBACK, Case, our_rules, with_units
from known_cases import APART, OURS, SAME
from promtool import ALERT_SEEDS, EXPRESSION_SEEDS, alert_name, alert_timelines, golden
from random_cases import alert_case, expression_case

from healthwatch.alerting.model import Phase
from healthwatch.engine import Engine
from healthwatch.promql import Program, parse
from healthwatch.promql.vector import EvaluationError
from healthwatch.rulefile import load_rules
from healthwatch.stream import Frame, History, Series, SeriesTable, tick_of
from healthwatch.stream.series import METRIC_NAME

LETTERS = {Phase.INACTIVE: ".", Phase.PENDING: "p", Phase.FIRING: "f"}


def registered(case: Case, table: SeriesTable) -> list[tuple[Series, np.ndarray]]:
    """Each metric's series and their values, a row a step."""
    metrics: dict[str, list[str]] = {}
    for name in case.series:
        metrics.setdefault(name.partition("{")[0], []).append(name)
    return [
        (
            table.register(metric, [labels_of(name) for name in names]),
            np.array([case.series[name] for name in names]).T,
        )
        for metric, names in metrics.items()
    ]


def labels_of(name: str) -> dict[str, str]:
    inner = name.partition("{")[2].rstrip("}")
    return {key: value.strip('"') for key, _, value in (pair.partition("=") for pair in inner.split(", ") if pair)}


def our_timelines(case: Case, folder: Path, *, names: bool = False) -> dict[str, str]:
    """A character a step for every alert that ever was; `names` keeps the metric's name among its labels."""
    rule_file = folder / "rules.yaml"
    rule_file.write_text(yaml.safe_dump(our_rules(case)), encoding="utf-8")
    loaded = load_rules([rule_file])
    assert len(loaded.rules) == len(case.rules), loaded.diagnostics
    table = SeriesTable()
    columns = registered(case, table)
    engine = Engine(loaded.rules, table)
    timelines: dict[str, list[str]] = {}
    for step in range(1, case.steps + 1):
        frame = Frame(step)
        for series, values in columns:
            frame.add(series, values[step - 1])
        frame.close()
        outcome = engine.step(frame)
        assert not outcome.problems
        for transition in outcome.transitions:
            labels = {key: value for key, value in transition.labels if names or key != METRIC_NAME}
            timeline = timelines.setdefault(alert_name(transition.rule, labels), ["."] * case.steps)
            timeline[step - 1 :] = LETTERS[transition.after] * (case.steps - step + 1)
    return {name: "".join(timeline) for name, timeline in sorted(timelines.items())}


@pytest.mark.parametrize("seed", ALERT_SEEDS)
def test_alerts_go_through_the_states_of_prometheus(seed: int, tmp_path: Path) -> None:
    case = alert_case(seed)
    expected = golden("alerts")[case.name]
    assert our_timelines(case, tmp_path) == expected
    assert any("f" in timeline for timeline in expected.values())


@pytest.mark.parametrize("case", SAME, ids=lambda case: case.name)
def test_the_rules_of_an_alerts_life(case: Case, tmp_path: Path) -> None:
    assert our_timelines(case, tmp_path) == golden("known")[case.name]


@pytest.mark.parametrize("case", APART, ids=lambda case: case.name)
def test_where_we_part_from_prometheus_on_purpose(case: Case, tmp_path: Path) -> None:
    ours = our_timelines(case, tmp_path, names=True)
    assert ours == OURS[case.name]
    assert ours != golden("known")[case.name]


def history_of(case: Case) -> History:
    history = History(SeriesTable())
    for series, values in registered(case, history.table):
        for step in range(1, case.steps + 1):
            history.append(tick_of(step), series, values[step - 1])
    return history


Values = dict[str, float] | str


def our_values(history: History, expr: str, step: int) -> Values:
    expression = parse(expr).expression
    assert expression is not None
    try:
        vector = Program(history).add(expression, LOOKBACK).evaluate(tick_of(step))
    except EvaluationError:
        return "error"
    return {
        _text(dict(vector.labels[position])): float(vector.values[position]) for position in np.flatnonzero(vector.kept)
    }


def _text(labels: dict[str, str]) -> str:
    return ", ".join(f'{key}="{value}"' for key, value in sorted(labels.items()))


@pytest.mark.parametrize("seed", EXPRESSION_SEEDS)
def test_expressions_have_the_values_of_prometheus(seed: int) -> None:
    case = expression_case(seed)
    history = history_of(case)
    for expr, results in golden("expressions")[case.name].items():
        for step, expected in results.items():
            assert_same(our_values(history, expr, int(step)), expected)


def assert_same(found: Values, expected: Mapping[str, str] | str) -> None:
    if isinstance(found, str) or isinstance(expected, str):
        assert found == expected
        return
    assert found == {
        labels: pytest.approx(float(value), rel=1e-9, abs=1e-12, nan_ok=True) for labels, value in expected.items()
    }


def test_the_dialects() -> None:
    assert with_units("rate(x[4.5] offset 3) > 2 ^ 4") == "rate(x[4500ms] offset 3000ms) > 2 ^ 4"
    assert with_units('max_over_time((x{a="[5]"} offset -2)[10:1]) > $k') == (
        'max_over_time((x{a="[5]"} offset -2000ms)[10000ms:1000ms]) > $k'
    )


@pytest.mark.usefixtures("promtool")
@pytest.mark.parametrize("seed", [ALERT_SEEDS[0], ALERT_SEEDS[-1]])
def test_the_golden_alerts_are_those_of_the_tool(seed: int) -> None:
    case = alert_case(seed)
    assert alert_timelines(case) == golden("alerts")[case.name]


@pytest.mark.usefixtures("promtool")
def test_the_golden_values_are_those_of_the_tool() -> None:
    case = expression_case(EXPRESSION_SEEDS[0])
    for expr, results in promtool.values(case).items():
        for step, found in results.items():
            assert_same(
                found if isinstance(found, str) else {labels: float(value) for labels, value in found.items()},
                golden("expressions")[case.name][expr][step],
            )


@pytest.mark.usefixtures("promtool")
@pytest.mark.parametrize("seed", range(100, 103))
def test_more_rules_against_the_tool(seed: int, tmp_path: Path) -> None:
    case = alert_case(seed)
    assert our_timelines(case, tmp_path) == alert_timelines(case)
