"""What a step takes when thousands of alerts change their phase in it: 10,000 of 20,480 series fire, half of them end.

Through a whole session: rules, incidents, messages, the recording, a receiver that never answers. Once with one rule,
once with three that fire on the same series, one of them held back by another. Target: no call above 50 ms after the
first step, in which everything is new. `own` is the time without waiting for a core of a busy machine.
"""

from __future__ import annotations

import argparse
import logging
import os
import socket
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import yaml

import healthwatch
from healthwatch.recording import Run
from healthwatch.session import Session

FIRING, ENDING, AGAIN = 30, 50, 70  # steps at which many begin, half of them end, and the others do
LAST = 80
TARGET = 50.0  # ms
SCHEDSTAT = Path("/proc/thread-self/schedstat")

HIGH = """
groups:
  - name: burst
    rules:
      - alert: NormHigh
        expr: local_norm > 5
        labels: {severity: critical}
        annotations: {summary: "{{ $labels.param }}: {{ $value }}", action: "look at it"}
"""
OTHERS = """
      - alert: NormSpike
        when: {spike_ratio: {metric: local_norm, window: 20, above: 8}}
        labels: {severity: warning}
        inhibited_by: [NormHigh]
      - alert: NormHeld
        expr: local_norm > 4
        for_records: 3
        keep_firing_for: 5
        labels: {severity: warning}
"""


def write_config(folder: Path, url: str, rules: str) -> Path:
    (folder / "rules.yaml").write_text(rules)
    ladder = [{"log": "warning"}, {"notify": "hole"}]
    section = {
        "run": "burst",
        "output": str(folder / "output"),
        "rules": ["./rules.yaml"],
        "escalation": {"critical": ladder, "warning": ladder},
        "receivers": {"hole": {"urls": [url], "group_interval": 5}},
    }
    path = folder / "train.yaml"
    path.write_text(yaml.safe_dump({"healthwatch": section}))
    return path


@contextmanager
def stopwatch(into: list[tuple[float, float]]) -> Iterator[None]:
    """Milliseconds by the wall, and without those for which the thread could have run and no core was free."""
    waited, began = _waited(), time.perf_counter()
    yield
    took = time.perf_counter() - began
    into.append((took * 1000, (took - (_waited() - waited)) * 1000))


def _waited() -> float:
    return int(SCHEDSTAT.read_text().split()[1]) / 1e9 if SCHEDSTAT.exists() else 0.0


def loop(hw: Session, series: int, thinking: float) -> list[tuple[float, float]]:
    """The longest call of each step."""
    random = np.random.default_rng(3)
    labels = [{"param": f"decoder.layers.{number // 128}.w{number % 128}", "stage": "0"} for number in range(series)]
    chosen = random.permutation(series)
    longest = []
    for step in range(1, LAST + 1):
        norms = np.exp(0.1 * random.standard_normal(series)).astype(np.float32)
        if FIRING <= step < AGAIN:
            norms[chosen[: series // 2 if step < ENDING else series // 4]] *= 100
        calls: list[tuple[float, float]] = []
        with stopwatch(calls):
            hw.log_values("local_norm", norms, labels)
        with stopwatch(calls):
            hw.step(2.0)
        longest.append((max(wall for wall, _ in calls), max(own for _, own in calls)))
        time.sleep(thinking)
    return longest


def measure(rules: str, series: int, thinking: float) -> float:
    """Run one loop, print its table, return the longest call after the first step in milliseconds of its own."""
    with tempfile.TemporaryDirectory() as folder, socket.create_server(("127.0.0.1", 0)) as hole:
        url = f"json://127.0.0.1:{hole.getsockname()[1]}/"
        hw = healthwatch.load(write_config(Path(folder), url, rules)).attach()
        longest = loop(hw, series, thinking)
        hw.close()
        with Run.open(Path(folder) / "output") as run:
            said = len(run.transitions())
    watched = "1 rule" if len(hw.rules) == 1 else f"{len(hw.rules)} rules"
    print(f"\n{watched}, {series:,} series, {said:,} transitions: longest call of a step in ms")
    print(f"{'step':<24} {'wall':>7} {'own':>7}")
    events = {1: "everything is new", FIRING: "half of them fire", ENDING: "half of those end", AGAIN: "the others end"}
    for step, event in events.items():
        wall, own = longest[step - 1]
        print(f"{step:<4}{event:<20} {wall:>7.1f} {own:>7.1f}")
    wall, own = map(max, zip(*(each for step, each in enumerate(longest, start=1) if step not in events), strict=True))
    print(f"{'any other':<24} {wall:>7.1f} {own:>7.1f}")
    return max(own for _, own in longest[1:])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--series", type=int, default=20_480)
    parser.add_argument("--thinking", type=float, default=0.02, help="seconds of training between two steps")
    options = parser.parse_args()
    logging.disable(logging.CRITICAL)
    print(f"load average {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    longest = max(measure(rules, options.series, options.thinking) for rules in (HIGH, HIGH + OTHERS))
    print(f"\nlongest call after the first step {longest:.1f} ms of its own; the target is {TARGET:.0f} ms")


if __name__ == "__main__":
    main()
