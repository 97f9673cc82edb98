"""Comparisons with several multiples of one vector: they say what each says alone, and are looked at together."""

from __future__ import annotations

import gc
from unittest.mock import patch
from weakref import ref

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from twins import same

from healthwatch.promql import Program, Query, parse
from healthwatch.promql.match import Join, Matcher
from healthwatch.promql.vector import EvaluationError
from healthwatch.stream import ABSENT, History, SeriesTable, tick_of

SIDES = [
    ("x", "y"),
    ("x", "x offset 3"),
    ("x", "avg_over_time(x[5])"),
    ("sum by (e) (x)", "sum by (e) (y)"),
    ('{__name__=~"x|y"}', "x"),
    ("x", '{__name__=~"x|y"}'),
    ("x", 'y{i=~"1.*"}'),
]
FACTORS = ["0.5", "2", "1e-300", "1e308", "5", "-2", "0", "Inf", "NaN", "1"]


def queries(program: Program, texts: list[str]) -> list[Query]:
    expressions = [parse(text).expression for text in texts]
    assert None not in expressions
    return [program.add(each) for each in expressions if each is not None]


@pytest.mark.long
@given(
    sides=st.sampled_from(SIDES),
    operators=st.sampled_from([(">",), ("<",), (">=", ">"), ("<=",), (">", "<"), ("> bool", ">"), ("> on (i)", ">")]),
    factors=st.lists(st.sampled_from(FACTORS), min_size=2, max_size=4, unique=True),
    faults=st.lists(st.sampled_from([np.nan, np.inf, -np.inf, ABSENT, -1.0, 0.0, 1e308, 5e-324]), max_size=3),
    negative=st.sampled_from([0.0, 0.4]),
    swapped=st.booleans(),
    silent=st.booleans(),
    seed=st.integers(0, 2**32),
)
@example(
    sides=("x", "y"),
    operators=("> on (i)", ">", "> bool"),
    factors=["5", "9"],
    faults=[],
    negative=0.0,
    swapped=False,
    silent=True,
    seed=1,
)
@settings(deadline=None, max_examples=150, suppress_health_check=[HealthCheck.too_slow])
def test_each_says_what_it_says_alone(
    sides: tuple[str, str],
    operators: tuple[str, ...],
    factors: list[str],
    faults: list[float],
    negative: float,
    swapped: bool,
    silent: bool,
    seed: int,
) -> None:
    left, right = sides
    product = "{right} * {factor}" if swapped else "{factor} * ({right})"
    texts = [
        f"{left} {operator} {product.format(right=right, factor=factor)}"
        for operator in operators
        for factor in factors
    ]
    table, rng = SeriesTable(), np.random.default_rng(seed)
    history = History(table)
    programs = Program(history, shortcuts=False), Program(history)
    plain, quick = queries(programs[0], texts), queries(programs[1], texts)
    for step in range(1, 16):
        for metric in "xy":
            series = table.register(metric, [{"e": str(i % 3), "i": str(i)} for i in range(14 if step > 8 else 11)])
            values = rng.lognormal(0, 0.5, len(series))
            values[rng.random(len(series)) < 0.05] *= 10
            values[rng.random(len(series)) < negative] *= -1
            if faults and rng.random() < 0.4:
                values[rng.integers(0, len(series))] = rng.choice(faults)
            history.append(tick_of(step), series, values)
        if silent:
            with programs[1].silenced():
                alike(plain, quick, tick_of(step))
        else:
            alike(plain, quick, tick_of(step))


def alike(plain: list[Query], quick: list[Query], tick: int) -> None:
    for one, other in zip(plain, quick, strict=True):
        refused = fails(one, tick)
        assert fails(other, tick) == refused
        if not refused:
            same(one, other, tick)


def fails(query: Query, tick: int) -> bool:
    try:
        query.evaluate(tick)
    except EvaluationError:
        return True
    return False


def test_a_tier_is_not_computed_where_a_weaker_one_before_it_is_clear() -> None:
    """And all share their label sets, however they were decided and whatever else is compared with their left side."""
    table = SeriesTable()
    history, series = History(table), table.register("x", [{"i": str(i)} for i in range(8)])
    program = Program(history)
    tiers = queries(program, [f"x > {factor} * x offset 2" for factor in (5, 2, 9)])
    (beside,) = queries(program, ["x > x offset 1"])
    joined, seen = Join.pairs, []
    for step in range(1, 12):
        values = np.ones(8)
        values[3] = {8: 3.0, 10: 30.0}.get(step, 1.0)
        history.append(tick_of(step), series, values)
        found: list[int] = []

        def pairs(join: Join, *sides: object, found: list[int] = found) -> object:
            found.append(id(join))
            return joined(join, *sides)  # type: ignore[arg-type]

        with program.silenced():
            with patch.object(Join, "pairs", pairs):
                results = [query.evaluate(tick_of(step)) for query in tiers]
            beside.evaluate(tick_of(step))
        if step > 2:
            seen.append((step, len(found), [int(result.kept.sum()) for result in results]))
            assert len({id(result.labels) for result in results}) == 1
    assert seen == [
        *((step, 2, [0, 0, 0]) for step in range(3, 8)),
        (8, 2, [0, 1, 0]),
        (9, 2, [0, 0, 0]),
        (10, 3, [1, 1, 1]),
        (11, 2, [0, 0, 0]),
    ]


def test_labels_that_are_gone_are_freed_without_the_garbage_collector() -> None:
    """Some trainers switch it off; what was worked out for a set of series must go with it."""
    table = SeriesTable()
    history = History(table)
    program = Program(history)
    texts = ["x", "x - x offset 1", "x * on (i) y", "x / y", "x or y", "sum by (i) (x)", "-x", "x + 1"]
    rules, seen = queries(program, texts), []
    gc.collect()
    gc.disable()
    try:
        for step in range(1, 20):
            for metric in "xy":
                series = table.register(metric, [{"i": str(i)} for i in range(step)])
                history.append(tick_of(step), series, np.ones(step))
            with program.silenced():
                labels = [query.vector.at(program.instant(tick_of(step))).labels for query in rules if query.vector]
            seen += [(step, ref(each)) for each in labels]
            del labels
        assert len(seen) == 19 * len(texts)
        assert {step for step, each in seen if each() is not None} == {19}
    finally:
        gc.enable()


def test_pairs_are_found_once_for_all_expressions_that_join_the_same() -> None:
    table = SeriesTable()
    history, series = History(table), table.register("x", [{"i": str(i)} for i in range(8)])
    program, build, built = Program(history), Matcher._build, []
    expressions = queries(program, [f"x > x offset {back}" for back in (1, 2, 3)])
    for step in range(1, 6):
        history.append(tick_of(step), series, np.ones(8))

    def counted(matcher: Matcher, *sides: object) -> object:
        built.append(matcher)
        return build(matcher, *sides)  # type: ignore[arg-type]

    with patch.object(Matcher, "_build", counted):
        labels = {id(query.evaluate(tick_of(5)).labels) for query in expressions}
    assert len(built) == len(labels) == 1
