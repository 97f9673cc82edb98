"""What is said about a `when:` that can't be used, and where."""

from __future__ import annotations

from typing import Any

import pytest

from healthwatch.rulefile.conditions import ConditionProblem, expand
from healthwatch.rulefile.conditions.registry import registry
from healthwatch.rulefile.conditions.spec import Condition, Parameter
from healthwatch.stream.catalogue import Metric, catalogue


def metric(name: str, *labels: str) -> Metric:
    return Metric(name, "1", labels, "gauge", "step", "test", "")


METRICS = {each.name: each for each in (metric("loss", "split"), metric("micro_norm", "param"), metric("step_time"))}

NOT_READABLE: list[tuple[Any, str, tuple[Any, ...], str]] = [
    ("nonfinite", "wrong type", (), "a condition is needed here"),
    ({}, "missing key", (), "holds no condition"),
    ({"nonfinit": {"metric": "loss"}}, "unknown condition", ("nonfinit",), 'no condition is called "nonfinit"'),
    ({True: {}}, "unknown condition", (True,), "no condition is called true"),
    ({"nonfinite": None}, "wrong type", ("nonfinite",), "holds its parameters, not nothing"),
    ({"nonfinite": {}}, "missing key", ("nonfinite",), 'needs "metric"'),
    ({"nonfinite": {"metric": 5}}, "wrong type", ("nonfinite", "metric"), "is the name of a metric, not 5"),
    ({"nonfinite": {"metric": []}}, "wrong type", ("nonfinite", "metric"), "names no metric"),
    ({"nonfinite": {"metric": ["loss", "a-b"]}}, "wrong type", ("nonfinite", "metric", 1), "can't be the name"),
    ({"nonfinite": {"metric": ["loss", "loss"]}}, "conflict", ("nonfinite", "metric", 1), "twice"),
    ({"nonfinite": {"metric": "micro_nrom"}}, "unknown metric", ("nonfinite", "metric"), "micro_nrom"),
    ({"nonfinite": {"metric": "loss", "abov": 1}}, "unknown key", ("nonfinite", "abov"), 'has no key "abov"'),
    ({"nonfinite": {"metric": "loss"}, "drop": {"metric": "loss"}}, "conflict", ("drop",), "takes one condition"),
    ({"spike_ratio": {"metric": "loss", "above": True}}, "wrong type", ("spike_ratio", "above"), "not true"),
    ({"spike_ratio": {"metric": "loss", "above": "1e-3"}}, "wrong type", ("spike_ratio", "above"), 'not "1e-3"'),
    ({"spike_ratio": {"metric": "loss", "above": float("nan")}}, "out of range", ("spike_ratio", "above"), "finite"),
    ({"spike_ratio": {"metric": "loss", "above": float("inf")}}, "out of range", ("spike_ratio", "above"), "finite"),
    ({"spike_ratio": {"metric": "loss", "above": 0}}, "out of range", ("spike_ratio", "above"), "more than 0"),
    ({"spike_ratio": {"metric": "loss", "window": True}}, "wrong type", ("spike_ratio", "window"), "not true"),
    ({"spike_ratio": {"metric": "loss", "window": 0}}, "out of range", ("spike_ratio", "window"), "at least 1"),
    ({"spike_ratio": {"metric": "loss", "window": -5}}, "out of range", ("spike_ratio", "window"), "at least 1"),
    ({"spike_ratio": {"metric": "loss", "window": 2.5}}, "out of range", ("spike_ratio", "window"), "not 2.5"),
    ({"spike_ratio": {"metric": "loss", "window": "50s"}}, "wrong type", ("spike_ratio", "window"), 'not "50s"'),
    ({"spike_ratio": {"metric": "loss", "above": "$x"}}, "undefined parameter", ("spike_ratio", "above"), '"$x"'),
    ({"zscore": {"metric": "loss", "direction": "upp"}}, "out of range", ("zscore", "direction"), "one of up"),
    ({"zscore": {"metric": "loss", "robust": "yes"}}, "wrong type", ("zscore", "robust"), "true or false"),
    ({"stalled": {"after": 600}}, "wrong type", ("stalled", "after"), "a time by the clock"),
    ({"threshold": {"metric": "loss"}}, "missing key", ("threshold",), "no bound"),
    (
        {"threshold": {"metric": "loss", "above": 1, "at_least": 1}},
        "conflict",
        ("threshold", "at_least"),
        "exclude each other",
    ),
    ({"threshold": {"metric": "loss", "above": 1, "below": 2}}, "conflict", ("threshold", "above"), "every value"),
    ({"threshold": {"metric": "loss", "above": 1, "over": "split"}}, "wrong type", ("threshold", "over"), "a list"),
    (
        {"threshold": {"metric": "loss", "above": 1, "over": ["splitt"]}},
        "unknown label",
        ("threshold", "over", 0),
        'no label "splitt"',
    ),
    (
        {"threshold": {"metric": "loss", "above": 1, "over": ["split"], "by": ["split"]}},
        "conflict",
        ("threshold", "by"),
        "exclude each other",
    ),
    (
        {"nonfinite": {"metric": "micro_norm", "select": {"parm": "x"}}},
        "unknown label",
        ("nonfinite", "select", "parm"),
        'no label "parm"',
    ),
    (
        {"nonfinite": {"metric": "micro_norm", "select": {"param": "=~("}}},
        "bad pattern",
        ("nonfinite", "select", "param"),
        "not a regular expression",
    ),
    (
        {"nonfinite": {"metric": "micro_norm", "select": {"param": True}}},
        "wrong type",
        ("nonfinite", "select", "param"),
        "text, not true",
    ),
    ({"saturation": {"metric": "micro_norm"}}, "missing key", ("saturation",), "which series belong together"),
    (
        {"saturation": {"metric": "micro_norm", "over": ["param"], "at_least": 1.5}},
        "out of range",
        ("saturation", "at_least"),
        "lies between 0 and 1",
    ),
    (
        {"imbalance": {"metric": "micro_norm", "over": ["param"], "of": "possible", "above": 1}},
        "out of range",
        ("imbalance", "above"),
        "can never be reached",
    ),
    ({"missing": {"metric": "loss", "window": 300}}, "out of range", ("missing", "window"), "must be longer"),
    ({"all": {"metric": "loss"}}, "wrong type", ("all",), "a list of conditions"),
    ({"any": []}, "wrong type", ("any",), "a list of conditions"),
    ({"not": {"missing": {"metric": "loss"}}}, "not supported", ("not",), "missing has no opposite"),
    (
        {"not": {"any": [{"stalled": {"after": "1m"}}, {"nonfinite": {"metric": "loss"}}]}},
        "not supported",
        ("not",),
        "stalled has no opposite",
    ),
    ({"not": {"nonfinite": {"metric": "loss"}, "quorum": 2}}, "not supported", ("not",), "quorum has no opposite"),
    ({"nonfinite": {"metric": "loss"}, "quorum": 0}, "out of range", ("quorum",), "at least 1"),
    ({"nonfinite": {"metric": "loss"}, "quorum": "150%"}, "out of range", ("quorum",), "between 0 and 100"),
    ({"nonfinite": {"metric": "loss"}, "quorum": "0%"}, "out of range", ("quorum",), "always breach"),
    ({"nonfinite": {"metric": "loss"}, "quorum": {"by": ["split"]}}, "missing key", ("quorum",), 'needs "at_least"'),
    (
        {"all": [{"nonfinite": {"metric": "loss"}}, {"nonfinite": {"metrik": "loss"}}]},
        "unknown key",
        ("all", 1, "nonfinite", "metrik"),
        'no key "metrik"',
    ),
]


def errors(when: Any) -> list[ConditionProblem]:
    expanded = expand(when, METRICS)
    found = [problem for problem in expanded.problems if problem.severity == "error"]
    assert (expanded.text is None) == bool(found)
    return found


@pytest.mark.parametrize(("when", "kind", "path", "message"), NOT_READABLE)
def test_each_problem_is_told_at_its_place(when: Any, kind: str, path: tuple[Any, ...], message: str) -> None:
    told = [(problem.kind, problem.path) for problem in errors(when) if message in problem.message]
    assert told == [(kind, path)], errors(when)


WHOLE = [
    (condition, each)
    for condition in registry().conditions.values()
    for each in condition.parameters
    if each.kind in ("steps", "count", "count or metric")
]


@pytest.mark.parametrize(("condition", "parameter"), WHOLE, ids=lambda each: each.name)
@pytest.mark.parametrize("value", [0, -1, 2.5, float("nan"), float("inf"), 10**20, "$half", "$none"])
def test_a_whole_number_that_cannot_be_meant(condition: Condition, parameter: Parameter, value: float | str) -> None:
    when = {condition.name: {**condition.example, parameter.name: value}}
    expanded = expand(when, catalogue(), {"half": 0.5, "none": 0})
    (problem,) = [each for each in expanded.problems if each.severity == "error"]
    assert (problem.kind, problem.path) == ("out of range", (condition.name, parameter.name))


def test_all_problems_at_once() -> None:
    when = {
        "all": [
            {"spike_ratio": {"metric": "los", "window": 0, "abvoe": 3}},
            {"threshold": {"metric": "loss", "above": "5"}},
            {"nonfinit": {}},
        ]
    }
    assert [problem.kind for problem in errors(when)] == [
        "out of range",
        "unknown key",
        "unknown metric",
        "wrong type",
        "unknown condition",
    ]


@pytest.mark.parametrize(
    ("when", "help_"),
    [
        ({"nonfinit": {"metric": "loss"}}, 'did you mean "nonfinite"?'),
        ({"spike_ratio": {"metric": "loss", "above": "1e-3"}}, "YAML reads 1e-3 as text: write 1.0e-3"),
        ({"spike_ratio": {"metric": "loss", "above": "5e6"}}, "YAML reads 5e6 as text: write 5.0e+6"),
        ({"spike_ratio": {"metric": "loss", "window": "50s"}}, "windows count steps: leave out the unit"),
        ({"nonfinite": {"metric": "micro_nrom"}}, 'did you mean "micro_norm"?'),
        ({"threshold": {"metric": "loss", "above": 1, "over": "split"}}, "write [split]"),
        ({"threshold": {"metric": "loss", "above": 1, "over": ["splitt"]}}, 'did you mean "split"?'),
    ],
)
def test_help(when: Any, help_: str) -> None:
    assert [problem.help for problem in errors(when)] == [help_]


def test_parameters_beside_their_condition() -> None:
    _, found = errors({"threshold": None, "metric": "loss"})[::-1]
    assert found.path == ("metric",)
    assert found.help == '"threshold" above it is empty: indent "metric" deeper if it belongs there'


def test_a_metric_that_resembles_nothing_is_a_warning() -> None:
    expanded = expand({"nonfinite": {"metric": "reward_of_my_own"}}, METRICS)
    assert expanded.text == "nonfinite(reward_of_my_own)"
    assert [(problem.kind, problem.severity) for problem in expanded.problems] == [("unknown metric", "warning")]


class TestOperandsThatNeverMatch:
    def test_two_selections_that_exclude_each_other(self) -> None:
        train = {"threshold": {"metric": "loss", "select": {"split": "train"}, "below": 1}}
        val = {"threshold": {"metric": "loss", "select": {"split": "val"}, "above": 2}}
        (found,) = errors({"all": [train, val]})
        assert (found.kind, found.path) == ("never matches", ("all", 1))
        assert "over: [split]" in found.help

    def test_a_pattern_that_the_other_value_does_not_have(self) -> None:
        train = {"threshold": {"metric": "loss", "select": {"split": "train"}, "below": 1}}
        other = {"threshold": {"metric": "loss", "select": {"split": "!~t.*"}, "above": 2}}
        assert [found.kind for found in errors({"all": [train, other]})] == ["never matches"]

    def test_aggregated_away_they_match(self) -> None:
        train = {"threshold": {"metric": "loss", "select": {"split": "train"}, "below": 1}}
        val = {"threshold": {"metric": "loss", "select": {"split": "val"}, "above": 2, "over": ["split"]}}
        expanded = expand({"all": [train, val]}, METRICS)
        assert expanded.text == 'loss{split="train"} < 1 and on () max without (split) (loss{split="val"}) > 2'

    def test_labels_of_an_undeclared_metric_are_not_guessed(self) -> None:
        ours = {"threshold": {"metric": "reward_of_my_own", "below": 1}}
        (found,) = errors({"all": [{"nonfinite": {"metric": "loss"}}, ours]})
        assert (found.kind, found.path) == ("unknown label", ("all", 1))
