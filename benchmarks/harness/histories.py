"""A whole history at once: the engine, and peers that take arrays, on the rules that each can express."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from time import process_time
from typing import Any

import numpy as np
from numpy.typing import NDArray

from harness.measure import engine_of
from harness.workload import RULES, Workload
from healthwatch.engine import FORESEEN

BASELINE = 49
"""Samples before the one that is judged: `[50]` is left-open and holds that one too."""

Floats = NDArray[np.floating[Any]]


@dataclass(frozen=True, slots=True)
class Replay:
    """`seconds` of processor time; `breaches`: how many samples each rule found in breach, summed over the rules."""

    seconds: float
    breaches: int

    def nanoseconds(self, work: Workload) -> float:
        """A sample, whatever number of rules looks at it."""
        return self.seconds * 1e9 / work.values.size


class Stopwatch:
    seconds = 0.0


@contextmanager
def _timed() -> Iterator[Stopwatch]:
    watch, begun = Stopwatch(), process_time()
    yield watch
    watch.seconds = process_time() - begun


def engine(work: Workload, rules: str) -> Replay:
    """Every frame through the public engine, as in a replay. An alert that a NaN holds counts as in breach."""
    engine, frames = engine_of(work, {rule: RULES[rule] for rule in rules})
    breaches = 0
    with _timed() as watch:
        while stretch := list(islice(frames, FORESEEN)):
            for _ in engine.steps(stretch):
                breaches += sum(len(engine.book.page(rule).ledger) for rule in rules)
    return Replay(watch.seconds, breaches)


def bottleneck(work: Workload) -> Replay:
    import bottleneck

    rows = np.ascontiguousarray(work.values.T)  # its faster layout
    with _timed() as watch:
        finite = np.where(np.isfinite(rows), rows, np.nan)
        median = bottleneck.move_median(finite, BASELINE, min_count=3, axis=1)
        breaches = int((rows[:, 1:] > 8 * median[:, :-1]).sum())
    return Replay(watch.seconds, breaches)


def screamer(work: Workload) -> Replay:
    """Rules a, b, c, d and f. Its functions take each column of an array as a series."""
    import screamer

    samples = work.values.astype(np.float64)
    with np.errstate(all="ignore"), _timed() as watch:
        isfinite = screamer.IsFinite()(samples) == 1
        finite = np.where(isfinite, samples, np.nan)
        now = samples[1:]

        def before(function: Callable[[Floats], Floats], least: int) -> Floats:
            values = function(finite)[:-1]
            values[: least - 1] = np.nan
            return values

        median = before(screamer.RollingMedian(BASELINE), 3)
        deviation = before(screamer.RollingMedianAD(BASELINE, "expanding"), 16)
        mean = before(screamer.EwMean(span=BASELINE + 1), 3)
        found = (
            now > 8 * median,
            now - median > 6 * np.maximum(1.4826 * deviation, 1e-3 * np.abs(median)),
            now > 3 * mean,
            ~isfinite,
            samples > 2 * screamer.Lag(100)(samples),
        )
        breaches = sum(int(each.sum()) for each in found)
    return Replay(watch.seconds, breaches)
