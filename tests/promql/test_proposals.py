"""What help proposes is put in place of what was written, and means what was meant."""

from __future__ import annotations

import math

import numpy as np
import pytest

from healthwatch.promql import Program, parse
from healthwatch.stream import Frame, History, SeriesTable

STEPS = 6
SAMPLES = {
    "x": [5.0, 1.0, 2.0, 4.0, 3.0, 2.0],
    "y": [1.0, 3.0, 2.5, 0.5, 6.0, 1.0],
    "z": [1.0, math.nan, 3.0, math.inf, 0.0, 2.0],
}


def values(text: str) -> list[float | None]:
    """What the only series of a result holds at each step, None where there is none."""
    table = SeriesTable()
    history = History(table)
    program = Program(history)
    parsed = parse(text)
    assert parsed.expression is not None, (text, parsed.problems)
    query = program.add(parsed.expression)
    program.retain()
    found: list[float | None] = []
    for step in range(1, STEPS + 1):
        frame = Frame(step)
        for metric, samples in SAMPLES.items():
            frame.add(table.register(metric, [{}]), [samples[step - 1]])
        frame.close()
        history.extend(frame)
        vector = query.evaluate(frame.columns[0].tick)
        kept = np.flatnonzero(vector.kept)
        assert len(kept) <= 1
        found.append(float(vector.values[kept[0]]) if len(kept) else None)
    return found


def proposed(text: str) -> str:
    """What the only problem's help says to write."""
    (problem,) = parse(text).problems
    assert problem.help.startswith("write "), problem
    return problem.help.removeprefix("write ")


def above(bound: float, value: float) -> float | None:
    return value if value > bound else None


@pytest.mark.parametrize(
    ("text", "written", "meant"),
    [
        ("max(x, y) > 3", "max(x, y)", lambda x, y, z: above(3, max(x, y))),
        ("2 * max(x, y) > 3", "max(x, y)", lambda x, y, z: above(3, 2 * max(x, y))),
        ("2 * min(x, y) > 3", "min(x, y)", lambda x, y, z: above(3, 2 * min(x, y))),
        ("2 * maximum(x, y) > 3", "maximum(x, y)", lambda x, y, z: above(3, 2 * max(x, y))),
        ("2 * max(x - 1, y + 1) > 3", "max(x - 1, y + 1)", lambda x, y, z: above(3, 2 * max(x - 1, y + 1))),
        ("2 * max(x, 3) > 7", "max(x, 3)", lambda x, y, z: 2 * max(x, 3) if x > 3.5 else None),
        ("-max(x, y)", "max(x, y)", lambda x, y, z: -max(x, y)),
        ("abs(max(x, y) - 4)", "max(x, y)", lambda x, y, z: abs(max(x, y) - 4)),
        ("abs(max(x, y))", "max(x, y)", lambda x, y, z: max(x, y)),
        ("max(max(x, y)) * 2", "max(x, y)", lambda x, y, z: 2 * max(x, y)),
        ("2 * pow(x, 2) > 3", "pow(x, 2)", lambda x, y, z: above(3, 2 * x**2)),
        ("2 * pow(x - 1, y) > 3", "pow(x - 1, y)", lambda x, y, z: above(3, 2 * (x - 1) ** y)),
        ("pow(x, 2) ^ 3", "pow(x, 2)", lambda x, y, z: x**6),
        ("2 ^ pow(x, 2)", "pow(x, 2)", lambda x, y, z: 2 ** (x**2)),
        ("-pow(x, 2)", "pow(x, 2)", lambda x, y, z: -(x**2)),
        ("2 * isfinite(z) > 3", "isfinite(z)", lambda x, y, z: 2 * z if math.isfinite(z) and 2 * z > 3 else None),
        ("isfinite(z or y)", "isfinite(z or y)", lambda x, y, z: z if math.isfinite(z) else None),
        ("2 * x in (4, 10) > 9", "2 * x in (4, 10)", lambda x, y, z: 2 * x if 2 * x in (4, 10) and 2 * x > 9 else None),
        ("y > 1 and x in (2, 5)", "x in (2, 5)", lambda x, y, z: y if y > 1 and x in (2, 5) else None),
        ("x in (2, 5) and y > 1", "x in (2, 5)", lambda x, y, z: x if y > 1 and x in (2, 5) else None),
        ("y > 1 and x not in (2, 5)", "x not in (2, 5)", lambda x, y, z: y if y > 1 and x not in (2, 5) else None),
        ("y > 1 or x not in (2, 5)", "x not in (2, 5)", lambda x, y, z: y if y > 1 else x if x not in (2, 5) else None),
        ("y unless (x in (2, 5))", "x in (2, 5)", lambda x, y, z: y if x not in (2, 5) else None),
        ("abs(x{a=''}) in (2, 5) or y", "abs(x{a=''}) in (2, 5)", lambda x, y, z: x if x in (2, 5) else y),
        ("y and z is NaN", "z is NaN", lambda x, y, z: y if not math.isfinite(z) else None),
        ("2 * z is NaN", "2 * z is NaN", lambda x, y, z: 2 * z if not math.isfinite(z) else None),
        ("x / z is NaN", "x / z is NaN", lambda x, y, z: math.nan if math.isnan(z) else math.inf if z == 0 else None),
        ("y unless z is not NaN", "z is not NaN", lambda x, y, z: y if not math.isfinite(z) else None),
        ("y and 2 * z is not NaN", "2 * z is not NaN", lambda x, y, z: y if math.isfinite(z) else None),
        ("2 * np.power(x, 2)", "np.power(x, 2)", lambda x, y, z: 2 * x**2),
        ("np.pow(x, 2) ^ 2", "np.pow(x, 2)", lambda x, y, z: x**4),
        ("2 * math.isfinite(z)", "math.isfinite(z)", lambda x, y, z: 2 * z if math.isfinite(z) else None),
        ("max(z) is not NaN", "max(z) is not NaN", lambda x, y, z: z if math.isfinite(z) else None),
    ],
)  # fmt: skip
def test_a_proposal_with_operators_means_the_same_wherever_it_stands(text: str, written: str, meant: object) -> None:
    assert callable(meant)
    assert text.count(written) == 1
    applied = text.replace(written, proposed(text))
    expected = [meant(*row) for row in zip(*SAMPLES.values(), strict=True)]
    assert values(applied) == pytest.approx(expected, nan_ok=True), applied
    assert not all(each is None for each in expected)


@pytest.mark.parametrize(
    ("text", "help_"),
    [
        ("max(x, y)", "write x > y or y"),
        ("vector(1) + abs(max(x, y))", "write x > y or y"),
        ("(max(x, y)) > 3", "write x > y or y"),
        ("max by (a) (x, y) > 3", "write max by (a) (x > y or y)"),
        ("pow(x, 2) > 3", "write x ^ 2"),
        ("x in (1, 2)", "write x == 1 or x == 2"),
        ("abs(x in (1, 2)) > 3", "write x == 1 or x == 2"),
        ("y > 1 and x in (2)", "write x == 2"),
    ],
)
def test_no_parentheses_where_none_are_needed(text: str, help_: str) -> None:
    assert parse(text).problems[0].help == help_


def test_a_group_of_a_regular_expression_is_written_with_a_dollar() -> None:
    text = r'label_replace(x, "layer", "\1", "param", "layers.([0-9]+)")'
    parsed = parse(text.replace(r'"\1"', proposed(text)))
    assert parsed.expression is not None
    table = SeriesTable()
    history = History(table)
    program = Program(history)
    query = program.add(parsed.expression)
    frame = Frame(1)
    frame.add(table.register("x", [{"param": "layers.12"}]), [2.0])
    frame.close()
    history.extend(frame)
    assert dict(query.evaluate(frame.columns[0].tick).labels[0])["layer"] == "12"


@pytest.mark.parametrize(
    ("text", "written"), [("2 * lag(x, 2) - 1", "lag(x, 2)"), ("2 * x.shift(2) - 1", "x.shift(2)")]
)
def test_earlier_samples(text: str, written: str) -> None:
    found = values(text.replace(written, proposed(text)))
    assert found == [None, None, *(2 * each - 1 for each in SAMPLES["x"][:-2])]
