"""How the cost of a step grows with series, windows and rules: `python benchmarks/growth.py`.

Each line is beside the smallest: how many times the series and rules, and how many times the cost.
"""

from __future__ import annotations

import argparse
import gc
from collections.abc import Iterator
from dataclasses import dataclass

from harness.measure import BLOCK, engine_times, has_fast, microseconds
from harness.workload import SHAPES, Workload

SERIES = (1_000, 20_000, 100_000)
WINDOWS = (50, 200)
RULES = (1, 10, 100)
PARTS = (1, 2, 5)
"""The rules share windows of the whole length, a half and a fifth of it."""


@dataclass(frozen=True, slots=True)
class Cost:
    series: int
    window: int
    rules: int
    microseconds: float

    HEAD = f"{'series':>8}{'window':>8}{'rules':>7}{'us a step':>12}{'ns a sample':>13}{'x work':>9}{'x cost':>9}"

    def beside(self, smallest: Cost) -> str:
        work = self.series * self.rules / (smallest.series * smallest.rules)
        return (
            f"{self.series:>8,}{self.window:>8}{self.rules:>7}{self.microseconds:>12,.0f}"
            f"{self.microseconds * 1e3 / self.series:>13,.1f}{work:>9,.0f}"
            f"{self.microseconds / smallest.microseconds:>9,.1f}"
        )


def texts(rules: int, window: int) -> dict[str, str]:
    """All shapes in turn, over the windows in turn, each rule with a bound of its own."""
    return {
        f"r{number}": SHAPES[number % len(SHAPES)].format(
            w=window // PARTS[number // len(SHAPES) % len(PARTS)], k=6 + number / 10
        )
        for number in range(rules)
    }


def costs(series: int, blocks: int) -> Iterator[Cost]:
    warm = max(WINDOWS) + BLOCK
    work = Workload.of(series, warm + blocks * BLOCK)
    for window in WINDOWS:
        begin = max(WINDOWS) - window  # as many steps as fill this window
        part = Workload(work.values[begin:], work.labels)
        for rules in RULES:
            gc.collect()  # of the engine before
            times = engine_times(part, texts(rules, window), warm - begin)
            yield Cost(series, window, rules, microseconds(times))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--series", type=int, nargs="+", default=SERIES)
    parser.add_argument("--blocks", type=int, default=2, help=f"of {BLOCK} steps, measured after the windows are full")
    options = parser.parse_args()
    print(f"with the fast extra: {'yes' if has_fast() else 'no'}")
    print(Cost.HEAD)
    smallest: Cost | None = None
    for series in options.series:
        for cost in costs(series, options.blocks):
            smallest = smallest or cost
            print(cost.beside(smallest), flush=True)


if __name__ == "__main__":
    main()
