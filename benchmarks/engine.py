"""What the engine costs beside plain numpy: `python benchmarks/engine.py [--steps N] [--series N]`."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from time import thread_time as perf_counter

import numpy as np
from numpy.typing import NDArray
from workload import GROUP, RULES, Workload

from healthwatch.alerting.escalation import Policy
from healthwatch.engine import Engine
from healthwatch.promql import parse
from healthwatch.rulefile import Rule
from healthwatch.stream import SeriesTable
from healthwatch.stream.ticks import Duration

SPAN_OF_NOTHING = None


def rules_of(texts: Mapping[str, str]) -> list[Rule]:
    rules = []
    for name, text in texts.items():
        expression = parse(text).expression
        if expression is None:
            raise SystemExit(f"{text} is no rule")
        rules.append(Rule(name, "bench", expression, SPAN_OF_NOTHING, for_records=3))  # type: ignore[arg-type]
    return rules


SILENT = Policy(ladder=lambda _: (), group=lambda _: (), group_interval=lambda _: Duration(steps=50))  # type: ignore[arg-type,return-value]


def engine_times(work: Workload, texts: Mapping[str, str], warm: int) -> NDArray[np.float64]:
    """Seconds a step from a closed frame to the outcome, after `warm` steps."""
    table = SeriesTable()
    series = work.register(table)
    engine = Engine(rules_of(texts), table, SILENT)
    times = []
    for frame in work.frames(series):
        begun = perf_counter()
        engine.step(frame)
        times.append(perf_counter() - begun)
    return np.array(times[warm:])


class PlainNumpy:
    """The same rules as anybody would write them: sort the window, sort the deviations."""

    def __init__(self, rules: str, series: int) -> None:
        self.rules = rules
        self.rows: list[NDArray[np.float64]] = []
        self.ring = np.full((series, 50), np.nan, dtype=np.float32)  # the layout and width that sort fastest
        self.past = np.full((100, series), np.nan)
        self.weights = ((1 - 2 / 51) ** np.arange(50)).astype(np.float32)

    def step(self, number: int, row: NDArray[np.float32]) -> dict[str, NDArray[np.bool_]]:
        now = row.astype(np.float64)
        found: dict[str, NDArray[np.bool_]] = {}
        if {"a", "b"} & set(self.rules):
            median = np.sort(self.ring, axis=1)[:, 24:26].mean(axis=1)
            found["a"] = now > 8 * median
        if "b" in self.rules:
            deviation = np.sort(np.abs(self.ring - median[:, None]), axis=1)[:, 24:26].mean(axis=1)
            found["b"] = now - median > 6 * np.maximum(1.4826 * deviation, 1e-3 * np.abs(median))
        if "c" in self.rules:
            order = (number - 1 - np.arange(50)) % 50
            found["c"] = now > 3 * (self.ring @ self.weights[np.argsort(order)]) / self.weights.sum()
        if "d" in self.rules:
            found["d"] = ~np.isfinite(now)
        if "e" in self.rules:
            groups = now.reshape(-1, GROUP) if len(now) % GROUP == 0 else now[None]
            found["e"] = groups.max(axis=1) / groups.mean(axis=1) > 4
        if "f" in self.rules:
            found["f"] = now > 2 * self.past[number % 100]
        self.ring[:, number % 50] = row
        self.past[number % 100] = now
        return found


def plain_times(work: Workload, rules: str, warm: int) -> NDArray[np.float64]:
    plain = PlainNumpy(rules, work.values.shape[1])
    times = []
    with np.errstate(all="ignore"):
        for number, row in enumerate(work.values):
            begun = perf_counter()
            plain.step(number, row)
            times.append(perf_counter() - begun)
    return np.array(times[warm:])


def microseconds(times: NDArray[np.float64]) -> float:
    return float(np.median(times) * 1e6)


def report(rows: Sequence[tuple[str, float, float]]) -> None:
    print(f"{'what':58}{'engine us':>12}{'np.sort us':>12}{'ratio':>8}")
    for what, ours, theirs in rows:
        print(f"{what:58}{ours:12.0f}{theirs:12.0f}{ours / theirs:8.3f}")


def main() -> None:
    options = argparse.ArgumentParser()
    options.add_argument("--steps", type=int, default=600)
    options.add_argument("--series", type=int, default=20_480)
    chosen = options.parse_args()
    work = Workload.of(chosen.series, chosen.steps)
    rows = []
    for rules in ("acdef", "abcdef"):
        ours = engine_times(work, {name: RULES[name] for name in rules}, 150)
        theirs = plain_times(work, rules, 150)
        rows.append(
            (f"online, {chosen.series:,} series, rules {','.join(rules)}", microseconds(ours), microseconds(theirs))
        )
    report(rows)


if __name__ == "__main__":
    main()
