"""How time is taken: CPU time of the thread, both sides of a ratio in turn, what is done every few steps included."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from time import thread_time
from typing import Any
from unittest.mock import patch

import numpy as np
from numpy.typing import NDArray

from harness.workload import Workload
from healthwatch.alerting.escalation import Policy
from healthwatch.diagnostics import Span
from healthwatch.engine import FORESEEN, Engine
from healthwatch.promql import parse
from healthwatch.promql.fast import loops
from healthwatch.rulefile import Rule
from healthwatch.stream import SeriesTable
from healthwatch.stream.ticks import Duration

WARM = 150
"""Steps until the windows have filled."""

BLOCK = 20
"""Work that is put off for a few steps falls due within so many."""

Times = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Row:
    """One line of a table: what was measured, against what, and the target in words."""

    what: str
    ours: float
    theirs: float | None
    target: str
    unit: str = "us"

    HEAD = f"{'what':64}{'ours':>11}{'np.sort/peer':>13}{'ratio':>8}  {'unit':10}target"

    def __str__(self) -> str:
        theirs = "" if self.theirs is None else f"{self.theirs:,.0f}"
        ratio = "" if not self.theirs else f"{self.ours / self.theirs:.3f}"
        return f"{self.what:64}{self.ours:>11,.0f}{theirs:>13}{ratio:>8}  {self.unit:10}{self.target}"


def rules_of(texts: Mapping[str, str]) -> list[Rule]:
    rules = []
    for name, text in texts.items():
        expression = parse(text).expression
        if expression is None:
            raise SystemExit(f"{text} is no rule")
        rules.append(Rule(name, "bench", expression, Span("bench", 1, 1, 1), for_records=3))
    return rules


def _silent() -> Policy:
    anything: Any = lambda *_: ()  # noqa: E731
    interval: Any = lambda _: Duration(steps=50)  # noqa: E731
    return Policy(ladder=anything, group=anything, group_interval=interval)


SILENT = _silent()
"""Incidents are opened and closed, nobody is told."""


def engine_of(work: Workload, texts: Mapping[str, str]) -> tuple[Engine, Iterator[Any]]:
    """An engine with the rules, and the frames that it is to be given."""
    table = SeriesTable()
    series = work.register(table)
    return Engine(rules_of(texts), table, SILENT), work.frames(series)


def engine_times(work: Workload, texts: Mapping[str, str], warm: int = WARM) -> Times:
    """Seconds a step from a closed frame to the outcome, after `warm` steps."""
    engine, frames = engine_of(work, texts)
    return np.array([_timed(engine.step, frame) for frame in frames])[warm:]


def replay_times(work: Workload, texts: Mapping[str, str], warm: int = WARM) -> Times:
    """Seconds a step where many are there already, as in a replay."""
    engine, given = engine_of(work, texts)
    frames = list(given)
    found = []
    for begin in range(0, len(frames), FORESEEN):
        stretch = frames[begin : begin + FORESEEN]
        found += [_timed(lambda those: list(engine.steps(those)), stretch) / len(stretch)] * len(stretch)
    return np.array(found)[warm:]


def side_by_side(
    work: Workload, texts: Mapping[str, str], peer: Callable[[NDArray[np.float32]], object], warm: int = WARM
) -> tuple[Times, Times]:
    """The engine's and the peer's seconds a step, a block of steps each in turn: neither has the other's caches."""
    engine, frames = engine_of(work, texts)
    ours, theirs = [], []
    with np.errstate(all="ignore"):
        for begin in range(0, len(work.values), BLOCK):
            rows = work.values[begin : begin + BLOCK]
            ours += [_timed(engine.step, frame) for frame in islice(frames, len(rows))]
            theirs += [_timed(peer, row) for row in rows]
    return np.array(ours)[warm:], np.array(theirs)[warm:]


def _timed(call: Callable[[Any], object], argument: Any) -> float:
    begun = thread_time()
    call(argument)
    return thread_time() - begun


def microseconds(times: Times) -> float:
    """Of a usual step: the lower quartile over blocks of steps of their mean, for a core may be slow for a while."""
    blocks = times[: len(times) // BLOCK * BLOCK].reshape(-1, BLOCK)
    return float(np.quantile(blocks.mean(axis=1), 0.25) * 1e6)


@contextmanager
def numpy_only() -> Iterator[None]:
    """As if the `fast` extra were not installed."""
    with patch("healthwatch.promql.fast.loops", return_value=None):
        yield


def has_fast() -> bool:
    return loops() is not None
