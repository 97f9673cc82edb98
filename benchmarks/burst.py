"""What one step takes when thousands of alerts change their phase in it: 10,000 of 20,480 series fire, half of them end.

Through the whole session: rules, incidents, messages with a plot, the recording, a receiver that never answers. Target: no call
above 50 ms.
"""

from __future__ import annotations

import argparse
import logging
import os
import socket
import tempfile
import time
from pathlib import Path

import numpy as np
import yaml

import healthwatch
from healthwatch.recording import Run
from healthwatch.session import Session

SERIES = 20_480
FIRE, REST = 10_000, 5_000  # series in breach from one step on, and those that are left after another
FIRING, ENDING, AGAIN = 30, 50, 70  # steps at which many begin, half of them end, and the rest does
LAST = 80
TARGET = 50.0  # ms

RULES = """
groups:
  - name: burst
    rules:
      - alert: NormHigh
        expr: local_norm > 5
        labels: {severity: critical}
        annotations: {summary: "{{ $labels.param }}: {{ $value }}", action: "look at it"}
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


def write_config(folder: Path, url: str) -> Path:
    (folder / "rules.yaml").write_text(RULES)
    section = {
        "run": "burst",
        "output": str(folder / "output"),
        "rules": ["./rules.yaml"],
        "escalation": {
            severity: [{"log": "warning"}, {"notify": "hole"}, {"command": ["/bin/true"]}]
            for severity in ("critical", "warning")
        },
        "receivers": {"hole": {"urls": [url], "group_interval": 5}},
    }
    path = folder / "train.yaml"
    path.write_text(yaml.safe_dump({"healthwatch": section}))
    return path


def loop(hw: Session, thinking: float) -> dict[int, float]:
    """Milliseconds of healthwatch's own calls, by step."""
    random = np.random.default_rng(3)
    labels = [
        {"param": f"decoder.layers.{number // 128}.w{number % 128}", "layer": str(number // 128), "stage": "0"}
        for number in range(SERIES)
    ]
    chosen = random.permutation(SERIES)
    taken = {}
    for step in range(1, LAST + 1):
        norms = np.exp(0.1 * random.standard_normal(SERIES)).astype(np.float32)
        if FIRING <= step < AGAIN:
            norms[chosen[: FIRE if step < ENDING else REST]] *= 100
        before = hw.healthwatch_seconds
        hw.log_values("local_norm", norms, labels)
        hw.step(2.0)
        taken[step] = (hw.healthwatch_seconds - before) * 1000
        time.sleep(thinking)
    return taken


def measure(thinking: float) -> float:
    with tempfile.TemporaryDirectory() as folder, socket.create_server(("127.0.0.1", 0)) as hole:
        hw = healthwatch.load(write_config(Path(folder), f"json://127.0.0.1:{hole.getsockname()[1]}/")).attach()
        taken = loop(hw, thinking)
        longest = hw.longest_call * 1000
        hw.close()
        with Run.open(Path(folder) / "output") as run:
            said = len(run.transitions())
    print(f"{SERIES:,} series, {said:,} transitions; longest call {longest:.1f} ms")
    events = {
        1: "first step",
        FIRING: "10,000 fire",
        FIRING + 2: "10,000 more fire",
        ENDING: "5,000 end",
        AGAIN: "the rest",
    }
    for step, event in events.items():
        print(f"  step {step:>3} {event:<18} {taken[step]:>8.1f} ms")
    others = [ms for step, ms in taken.items() if step not in events]
    print(f"  other steps: median {np.median(others):.1f}, longest {max(others):.1f} ms")
    return longest


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--thinking", type=float, default=0.02, help="seconds of training between two steps")
    options = parser.parse_args()
    logging.disable(logging.CRITICAL)
    print(f"load average {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    longest = max(measure(options.thinking) for _ in range(options.runs))
    if longest > TARGET:
        print(f"above the target of {TARGET:.0f} ms")


if __name__ == "__main__":
    main()
