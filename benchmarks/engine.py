"""What the engine costs beside plain numpy and other tools, lifecycle included: `python benchmarks/engine.py`.

Times are CPU time of the thread, medians over the steps after the windows have filled. Use the ratios: both sides of
each are measured in the same run, one after the other.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from time import thread_time
from typing import Any
from unittest.mock import patch

import numpy as np
from numpy.typing import NDArray
from workload import GROUP, RULES, Workload

from healthwatch.alerting.escalation import Policy
from healthwatch.diagnostics import Span
from healthwatch.engine import Engine
from healthwatch.promql import parse
from healthwatch.rulefile import Rule
from healthwatch.stream import SeriesTable
from healthwatch.stream.ticks import Duration

WARM = 150
Times = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table: what was measured, against what, and the target in words."""

    what: str
    ours: float
    theirs: float | None
    target: str
    unit: str = "us"

    def __str__(self) -> str:
        theirs = "" if self.theirs is None else f"{self.theirs:,.0f}"
        ratio = "" if not self.theirs else f"{self.ours / self.theirs:.3f}"
        return f"{self.what:62}{self.ours:>10,.0f}{theirs:>12}{ratio:>8}  {self.unit:10}{self.target}"


def rules_of(texts: Mapping[str, str]) -> list[Rule]:
    rules = []
    for name, text in texts.items():
        expression = parse(text).expression
        if expression is None:
            raise SystemExit(f"{text} is no rule")
        rules.append(Rule(name, "bench", expression, Span("bench", 1, 1, 1), for_records=3))
    return rules


def silent() -> Policy:
    """Incidents are opened and closed, nobody is told."""
    anything: Any = lambda *_: ()  # noqa: E731
    interval: Any = lambda _: Duration(steps=50)  # noqa: E731
    return Policy(ladder=anything, group=anything, group_interval=interval)


SILENT = silent()


def engine_times(work: Workload, texts: Mapping[str, str], warm: int = WARM) -> Times:
    """Seconds a step from a closed frame to the outcome, after `warm` steps."""
    table = SeriesTable()
    series = work.register(table)
    engine = Engine(rules_of(texts), table, SILENT)
    return _timed(work.frames(series), engine.step)[warm:]


def _timed(items: Iterator[Any], call: Callable[[Any], object]) -> Times:
    times = []
    for item in items:
        begun = thread_time()
        call(item)
        times.append(thread_time() - begun)
    return np.array(times)


class PlainNumpy:
    """The same rules as anybody would write them: sort the window, sort the deviations.

    Series stand in rows of float32, the layout and type in which numpy sorts fastest.
    """

    def __init__(self, rules: str, series: int, window: int = 50) -> None:
        self.rules, self.window = rules, window
        self.ring = np.full((series, window), np.nan, dtype=np.float32)
        self.past = np.full((100, series), np.nan, dtype=np.float32)
        self.weights = ((1 - 2 / (window + 1)) ** np.arange(window)).astype(np.float32)
        self.number = 0

    def step(self, now: NDArray[np.float32]) -> dict[str, NDArray[np.bool_]]:
        found: dict[str, NDArray[np.bool_]] = {}
        if {"a", "b"} & set(self.rules):
            self._against_median(now, found)
        if "c" in self.rules:
            age = (self.number - 1 - np.arange(self.window)) % self.window
            found["c"] = now > 3 * (self.ring @ self.weights[age]) / self.weights.sum()
        if "d" in self.rules:
            found["d"] = ~np.isfinite(now)
        if "e" in self.rules:
            groups = now.reshape(-1, GROUP) if len(now) % GROUP == 0 else now[None]
            found["e"] = groups.max(axis=1) / groups.mean(axis=1) > 4
        if "f" in self.rules:
            found["f"] = now > 2 * self.past[self.number % 100]
        self.ring[:, self.number % self.window] = now
        self.past[self.number % 100] = now
        self.number += 1
        return found

    def _against_median(self, now: NDArray[np.float32], found: dict[str, NDArray[np.bool_]]) -> None:
        low, high = (self.window - 1) // 2, self.window // 2 + 1
        median = np.sort(self.ring, axis=1)[:, low:high].mean(axis=1)
        found["a"] = now > 8 * median
        if "b" in self.rules:
            deviation = np.sort(np.abs(self.ring - median[:, None]), axis=1)[:, low:high].mean(axis=1)
            found["b"] = now - median > 6 * np.maximum(1.4826 * deviation, 1e-3 * np.abs(median))


def plain_times(work: Workload, rules: str, window: int = 50) -> Times:
    plain = PlainNumpy(rules, work.values.shape[1], window)
    with np.errstate(all="ignore"):
        return _timed(iter(work.values), plain.step)[WARM:]


def microseconds(times: Times) -> float:
    return float(np.median(times) * 1e6)


@contextmanager
def numpy_only() -> Iterator[None]:
    """As if the `fast` extra were not installed."""
    with patch("healthwatch.promql.screens.loops", return_value=None):
        yield


def has_fast() -> bool:
    from healthwatch.promql.ordered import loops

    return loops() is not None


def online(work: Workload) -> Iterator[Row]:
    size = f"{work.values.shape[1]:,} series"
    five, six = plain_times(work, "acdef"), plain_times(work, "abcdef")
    with numpy_only():
        ours = engine_times(work, {name: RULES[name] for name in "acdef"})
    yield Row(
        f"online, {size}, rules a,c,d,e,f, numpy only", microseconds(ours), microseconds(five), "<= 1/5 of np.sort"
    )
    for label, target, context in (
        ("numpy only", "<= 1/2 of np.sort", numpy_only()),
        ("with fast", "<= 1/6 of np.sort", nullcontext()),
    ):
        if label == "with fast" and not has_fast():
            continue
        with context:
            ours = engine_times(work, RULES)
        yield Row(f"online, {size}, all six, {label}", microseconds(ours), microseconds(six), target)
        samples = work.values.shape[1]
        limit = "<= 200" if label == "numpy only" else "<= 60"
        yield Row(f"replay, all six, {label}", microseconds(ours) * 1e3 / samples, None, limit, "ns/sample")


def many_rules() -> Iterator[Row]:
    small = Workload.of(1_000, 400)
    shapes = (
        "spike_ratio(x[{w}]) > {k}",
        "robust_zscore(x[{w}]) > {k}",
        "ema_ratio(x[{w}]) > {k}",
        "nonfinite(x)",
        "x > {k} * x offset {w}",
        "max by (layer) (x) / avg by (layer) (x) > {k}",
    )
    twenty = {f"r{i}": shapes[i % len(shapes)].format(w=(50, 100)[i % 2], k=5 + i) for i in range(20)}
    yield Row("online, 1,000 series, 20 rules", microseconds(engine_times(small, twenty)), None, "<= 400 us")
    windows = [20 + 10 * i for i in range(10)]
    ten = {f"w{w}": f"spike_ratio(x[{w}]) > 8" for w in windows}
    many = {f"r{i}": f"spike_ratio(x[{windows[i % 10]}]) > {8 + i / 50}" for i in range(200)}
    large = Workload.of(20_480, 250)
    ours, theirs = engine_times(large, many), engine_times(large, ten)
    yield Row(
        "20,480 series, 200 rules over 10 windows (against 10 rules)", microseconds(ours), microseconds(theirs), "<= 3"
    )


def growth() -> Iterator[Row]:
    for series in (1_000, 20_000, 100_000):
        for window in (50, 200):
            work = Workload.of(series, 2 * WARM + window)
            texts = {name: RULES[name].replace("[50]", f"[{window}]") for name in "abc"}
            ours = engine_times(work, texts, WARM + window)
            theirs = plain_times(work, "abc", window)[window:]
            yield Row(f"rules a,b,c, {series:,} series, window {window}", microseconds(ours), microseconds(theirs), "")


def peers(work: Workload) -> Iterator[Row]:
    """Rule (a) over a whole history at once, in nanoseconds a sample."""
    values = work.values[:300].astype(np.float64)
    samples = values.size
    try:
        import bottleneck
    except ImportError:
        return
    begun = thread_time()
    bottleneck.move_median(values, 50, axis=0)
    theirs = (thread_time() - begun) * 1e9 / samples
    ours = engine_times(Workload(work.values[:300], work.labels), {"a": RULES["a"]}, 0).sum() * 1e9 / samples
    yield Row("rule (a) over 300 steps (against bottleneck.move_median)", ours, theirs, "", "ns/sample")


def start_up() -> Iterator[Row]:
    for what, code, target in (
        ("import healthwatch", "import healthwatch", "<= 300 ms"),
        (
            "healthwatch --help",
            "import sys; sys.argv = ['healthwatch', '--help']; from healthwatch.cli import main; main()",
            "<= 500 ms",
        ),
    ):
        yield Row(what, min(_run_time(code) for _ in range(5)) * 1e3, None, target, "ms")


def _run_time(code: str) -> float:
    import resource

    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, "-c", code], stdout=subprocess.DEVNULL, check=False)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


def memory(work: Workload) -> Iterator[Row]:
    table = SeriesTable()
    series = work.register(table)
    engine = Engine(rules_of(RULES), table, SILENT)
    for frame in work.frames(series):
        engine.step(frame)
    longest = 100 * work.values.shape[1] * 8
    yield Row(
        "history memory (against rows x columns x 8 of [100])", engine.history.nbytes(), longest, "<= 1.25", "bytes"
    )


def main() -> None:
    options = argparse.ArgumentParser()
    options.add_argument("--steps", type=int, default=600)
    options.add_argument("--series", type=int, default=20_480)
    options.add_argument("--quick", action="store_true", help="leave out how the cost grows")
    chosen = options.parse_args()
    work = Workload.of(chosen.series, chosen.steps)
    print(f"{'what':62}{'ours':>10}{'np.sort/peer':>12}{'ratio':>8}  {'unit':10}target")
    parts = [online(work), many_rules(), memory(work), peers(work), start_up()]
    for part in parts if chosen.quick else [*parts, growth()]:
        for row in part:
            print(row, flush=True)


if __name__ == "__main__":
    main()
