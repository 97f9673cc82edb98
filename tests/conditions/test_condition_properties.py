"""Whatever is combined: it expands to PromQL that parses, or to a problem at a place that is there."""

from __future__ import annotations

from typing import Any

from condition_run import METRICS
from hypothesis import given, settings
from hypothesis import strategies as st

from healthwatch.promql.parse import parse
from healthwatch.rulefile.conditions import expand
from healthwatch.rulefile.conditions.builtin import CONDITIONS
from healthwatch.rulefile.conditions.spec import Condition, Parameter

NAMES = st.sampled_from(sorted(METRICS))
LABELS = st.sampled_from(["layer", "expert", "head", "param", "split", "rank"])


def value(parameter: Parameter) -> st.SearchStrategy[Any]:
    match parameter.kind:
        case "metric":
            return NAMES | st.lists(NAMES, min_size=1, max_size=2, unique=True)
        case "select":
            return st.dictionaries(LABELS, st.sampled_from(["a", "=~a.*", "!=b", "!~c"]), max_size=2)
        case "labels":
            return st.lists(LABELS, min_size=1, max_size=2, unique=True)
        case "number":
            return st.floats(parameter.least or 0, parameter.most or 1000, exclude_min=parameter.open_bounds)
        case "steps" | "count":
            return st.integers(int(parameter.least or 1), 1000)
        case "count or metric":
            return st.integers(1, 8) | NAMES
        case "choice":
            return st.sampled_from(parameter.choices)
        case "flag":
            return st.booleans()
        case "wall":
            return st.sampled_from(["10m", "1h30m", "90s"])


def one(condition: Condition) -> st.SearchStrategy[dict[str, Any]]:
    required = {each.name: value(each) for each in condition.parameters if each.required}
    optional = {each.name: value(each) for each in condition.parameters if not each.required}
    return st.fixed_dictionaries(required, optional=optional).map(lambda values: {condition.name: values})


LEAVES = st.sampled_from(CONDITIONS).flatmap(one)
WHEN = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        st.lists(inner, min_size=1, max_size=3).map(lambda each: {"all": each}),
        st.lists(inner, min_size=1, max_size=3).map(lambda each: {"any": each}),
        inner.map(lambda each: {"not": each}),
        inner.map(lambda each: {**each, "quorum": "5%"}),
    ),
    max_leaves=4,
)
MISTAKES = st.recursive(
    st.none() | st.booleans() | st.floats() | st.text(max_size=5) | st.just("loss"),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from([*(each.name for each in CONDITIONS), "all", "any", "not", "quorum", "metric", "x"]), inner
        )
    ),
    max_leaves=12,
)


def at(data: Any, path: tuple[str | int, ...]) -> bool:
    """Whether the path leads somewhere."""
    for step in path:
        items = dict(enumerate(data)) if isinstance(data, list) else data
        if not isinstance(items, dict) or step not in items:
            return False
        data = items[step]
    return True


@settings(max_examples=300, deadline=None)
@given(WHEN)
def test_what_expands_parses(when):
    expanded = expand(when, METRICS)
    errors = [problem for problem in expanded.problems if problem.severity == "error"]
    assert (expanded.text is None) == bool(errors)
    for text in filter(None, (expanded.text, expanded.detail)):
        assert parse(text).expression is not None, text


@settings(max_examples=200, deadline=None)
@given(WHEN)
def test_negated_twice_it_is_itself(when):
    plain, twice = expand(when, METRICS), expand({"not": {"not": when}}, METRICS)
    assert twice.text in (plain.text, None)


@settings(max_examples=300, deadline=None)
@given(MISTAKES)
def test_any_data_is_a_condition_or_has_problems_where_they_stand(when):
    expanded = expand(when, METRICS)
    assert expanded.text is not None or expanded.problems
    assert all(at(when, problem.path) for problem in expanded.problems), expanded.problems
