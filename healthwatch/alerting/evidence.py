"""What was measured behind an alert: the series' sample, its baseline, and its recent past for a picture."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from healthwatch.alerting.model import Incident, LabelSet, Sample, Trace
from healthwatch.promql import ast
from healthwatch.stream import TICKS_PER_STEP, History, tick_of
from healthwatch.stream.ring import is_sample

WINDOW = 50  # steps of the baseline where the rule has no window
FEWEST_ROWS = 16  # of a window, as for the functions that compare with a baseline
MOST_POINTS = 240  # of a trace
MOST_TRACES = 3

_RATIOS = frozenset({"spike_ratio"})
_METRIC = "__name__"

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Evidence:
    """How to find the series that a rule looks at: its first selector, and the threshold on it."""

    selector: ast.VectorSelector | None
    metrics: tuple[str, ...]
    window: int  # ticks
    bound: float | None = None
    relative: bool = False  # the bound is a multiple of the baseline
    lowest: bool = False

    @classmethod
    def of(cls, tree: ast.Expr, *, lowest: bool) -> Evidence:
        selectors = [node for node in ast.walk(tree) if isinstance(node, ast.VectorSelector) and node.metric]
        windows = [node.window for node in ast.walk(tree) if isinstance(node, ast.MatrixSelector)]
        metrics = tuple(dict.fromkeys(node.metric for node in selectors if node.metric))
        bound, relative = _bound(tree)
        window = windows[0] if windows else WINDOW * TICKS_PER_STEP
        return cls(selectors[0] if selectors else None, metrics, window, bound, relative, lowest)

    def wants(self) -> ast.MatrixSelector | None:
        """The range that the history must keep, so that there is a baseline."""
        if self.selector is None:
            return None
        return ast.MatrixSelector(self.selector, WINDOW * TICKS_PER_STEP, self.selector.span)

    def attach(self, incident: Incident, history: History, step: int, limit: int) -> Incident:
        """The incident with what was measured at `step` behind the series that its message lists."""
        firing = tuple(self._measured(sample, history, step) for sample in incident.firing[:limit])
        details = tuple(self._measured(sample, history, step) for sample in incident.details[:limit])
        shown = [sample for sample in (*firing, *details) if sample.now is not None][:MOST_TRACES]
        traces = tuple(trace for sample in shown for trace in self._trace(sample, history, step))
        return replace(
            incident,
            firing=(*firing, *incident.firing[limit:]),
            details=(*details, *incident.details[limit:]),
            traces=traces,
        )

    def _measured(self, sample: Sample, history: History, step: int) -> Sample:
        for ticks, values in self._past(sample.labels, history, step):
            here = np.flatnonzero(ticks > tick_of(step - 1))
            if len(here):
                place = int(here[self._most(values[here])])
                baseline = _baseline(ticks, values, place, self.window)
                return replace(sample, now=float(values[place]), baseline=baseline)
        return sample

    def _most(self, values: Floats) -> int:
        """Which sample speaks for the step: what is not finite first, then what is furthest the wrong way."""
        wild = np.flatnonzero(~np.isfinite(values))
        if len(wild):
            return int(wild[0])
        return int(values.argmin() if self.lowest else values.argmax())

    def _trace(self, sample: Sample, history: History, step: int) -> Iterator[Trace]:
        for ticks, values in self._past(sample.labels, history, step):
            bound = self.bound
            if self.relative and bound is not None:
                bound = None if sample.baseline is None else bound * sample.baseline
            steps = ticks[-MOST_POINTS:] / TICKS_PER_STEP
            yield Trace(sample.labels, tuple(steps.tolist()), tuple(values[-MOST_POINTS:].tolist()), bound)
            return

    def _past(self, labels: LabelSet, history: History, step: int) -> Iterator[tuple[NDArray[np.int64], Floats]]:
        """The samples up to a step of the series with these very labels, oldest first, where a metric has it."""
        metrics: Sequence[str] = [value for name, value in labels if name == _METRIC] or self.metrics
        wanted = tuple(pair for pair in labels if pair[0] != _METRIC)
        for metric in metrics:
            column = history.table.column(metric, wanted)
            if column is None:
                continue
            ring = history.ring(metric)
            end = ring.find(tick_of(step))
            values = ring.columns(ring.first, end, np.array([column]))[:, 0]
            present = is_sample(values)
            yield np.array(ring.ticks(ring.first, end), np.int64)[present], values[present]


def _baseline(ticks: NDArray[np.int64], values: Floats, now: int, window: int) -> float | None:
    """The median of the finite samples before place `now`: a window, or 16 rows where that is further."""
    start = min(int(np.searchsorted(ticks, ticks[now] - window, "right")), max(now - FEWEST_ROWS, 0))
    before = values[start:now]
    before = before[np.isfinite(before)]
    return float(np.median(before)) if len(before) else None


def _bound(tree: ast.Expr) -> tuple[float | None, bool]:
    """The number that the rule compares its series with, and whether it is a multiple of the baseline."""
    match tree:
        case ast.Paren(expr=inner):
            return _bound(inner)
        case ast.Binary(op=">" | "<" | ">=" | "<=", left=left, right=right):
            bound = _number(right)
            inner = ast.unwrapped(left)
            if isinstance(inner, ast.VectorSelector):
                return bound, False
            if isinstance(inner, ast.Call) and inner.function in _RATIOS:
                return bound, True
            return None, False
        case ast.Binary(op="and" | "or" | "unless", left=left):
            return _bound(left)
        case _:
            return None, False


def _number(tree: ast.Expr) -> float | None:
    inner = ast.unwrapped(tree)
    return inner.value if isinstance(inner, ast.Number) and math.isfinite(inner.value) else None
