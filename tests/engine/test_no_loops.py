"""What no step does: a loop of Python over series."""

from __future__ import annotations

import gc
import sys
from types import FrameType
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from healthwatch.diagnostics import Span
from healthwatch.engine import Engine
from healthwatch.promql import parse
from healthwatch.rulefile import Rule
from healthwatch.stream import Frame, SeriesTable


@pytest.mark.parametrize(
    "text",
    [
        "spike_ratio(x[20]) > 8",
        "robust_zscore(x[20]) > 6",
        "ema_ratio(x[20]) > 3",
        "growth(x[20]) >= 2 and deriv(finite(x[20])) > 0",
        "nonfinite(x)",
        "max by (g) (x) / avg by (g) (x) > 4",
        "x > 2 * x offset 10",
        "x / ignoring (i) group_left () sum without (i) (x) > 0.9",
        "quantile by (g) (0.5, x) > 3",
        "x > 3 or x < 1",
        "max_over_time(x[20]) == 0 and x offset 10",
        "max_over_time((x > 3)[5:1])",
        "count(x > 8) > 5",
        "topk by (g) (1, x) > 3",
    ],
)
def test_a_step_runs_no_python_over_series(text: str) -> None:
    """With the set of series unchanged a step of the engine runs about as many instructions of Python for 2,000 series
    as for 40: the shortest loop takes three for each.
    """

    def instructions(size: int) -> int:
        table = SeriesTable()
        series = table.register("x", [{"g": str(i % 4), "i": str(i)} for i in range(size)])
        expression = parse(text).expression
        assert expression is not None
        engine = Engine([Rule("High", "test", expression, Span("test", 1, 1, 1))], table)
        rng = np.random.default_rng(0)

        def step(number: int, values: NDArray[np.float64]) -> None:
            frame = Frame(number, time=float(number))
            frame.add(series, values)
            frame.close()
            engine.step(frame)

        for number in range(1, 60):
            step(number, 1 + 0.01 * rng.random(size))
        seen = 0

        def count(frame: FrameType, event: str, _: object) -> Any:
            nonlocal seen
            frame.f_trace_opcodes = True
            seen += event == "opcode"
            return count

        before = sys.gettrace()
        gc.disable()
        sys.settrace(count)
        try:
            step(60, np.full(size, 1.005))
        finally:
            sys.settrace(before)
            gc.enable()
        return seen

    few, many = instructions(40), instructions(2000)
    assert few > 1000, "a step of the engine is counted"
    assert many < few + 2 * (2000 - 40), (few, many)
