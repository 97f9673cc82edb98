"""What the engine costs, lifecycle included, beside plain numpy on the same rules: `python benchmarks/engine.py`.

Use the ratios: both sides of each are measured in the same run, a few steps each in turn.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
from collections.abc import Iterator
from contextlib import nullcontext

from harness.measure import (
    Row,
    engine_of,
    engine_times,
    has_fast,
    microseconds,
    numpy_only,
    replay_times,
    side_by_side,
)
from harness.plain import PlainNumpy
from harness.workload import RULES, SHAPES, Workload


def online(work: Workload) -> Iterator[Row]:
    samples = work.values.shape[1]
    size = f"online, {samples:,} series"
    with numpy_only():
        ours, theirs = side_by_side(work, {name: RULES[name] for name in "acdef"}, PlainNumpy("acdef", samples).step)
    yield Row(f"{size}, rules a,c,d,e,f, numpy only", microseconds(ours), microseconds(theirs), "<= 1/5 of np.sort")
    for label, target, limit, context in (
        ("numpy only", "<= 1/2 of np.sort", "<= 200", numpy_only()),
        ("with fast", "<= 1/6 of np.sort", "<= 60", nullcontext()),
    ):
        if label == "with fast" and not has_fast():
            continue
        with context:
            ours, theirs = side_by_side(work, RULES, PlainNumpy("abcdef", samples).step)
        yield Row(f"{size}, all six, {label}", microseconds(ours), microseconds(theirs), target)
        with context if label == "with fast" else numpy_only():
            alone = replay_times(work, RULES)
        yield Row(f"replay, all six, {label}", microseconds(alone) * 1e3 / samples, None, limit, "ns/sample")


def many_rules() -> Iterator[Row]:
    small = Workload.of(1_000, 600)
    twenty = {f"r{i}": SHAPES[i % len(SHAPES)].format(w=(50, 100)[i % 2], k=5 + i) for i in range(20)}
    yield Row("online, 1,000 series, 20 rules", microseconds(engine_times(small, twenty)), None, "<= 400 us")
    windows = [20 + 10 * i for i in range(10)]
    ten = {f"w{w}": f"spike_ratio(x[{w}]) > 8" for w in windows}
    large = Workload.of(20_480, 350)
    for bounds, apart in (("8 to 27", 1.0), ("8 to 12, all pending at a spike", 0.2)):
        many = {f"r{i}": f"spike_ratio(x[{windows[i % 10]}]) > {8 + apart * (i // 10)}" for i in range(200)}
        engine, frames = engine_of(large, ten)
        ours, theirs = side_by_side(large, many, lambda _: engine.step(next(frames)))  # noqa: B023
        yield Row(f"200 rules over 10 windows, bounds {bounds}", microseconds(ours), microseconds(theirs), "<= 3")


def memory(work: Workload) -> Iterator[Row]:
    engine, frames = engine_of(work, RULES)
    for frame in frames:
        engine.step(frame)
    longest = 100 * work.values.shape[1] * 8
    what = "history memory (against rows x columns x 8 of [100])"
    yield Row(what, engine.history.nbytes(), longest, "<= 1.25", "bytes")


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
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, "-c", code], stdout=subprocess.DEVNULL, check=False)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--steps", type=int, default=2_000)
    options.add_argument("--series", type=int, default=20_480)
    chosen = options.parse_args()
    work = Workload.of(chosen.series, chosen.steps)
    print(Row.HEAD)
    for part in (online(work), many_rules(), memory(work), start_up()):
        for row in part:
            print(row, flush=True)


if __name__ == "__main__":
    main()
