"""How long healthwatch's own calls take in 1,000 steps and after a restart; their receiver accepts and never answers.

All shipped packs over parameters at two micro-steps and two MoE layers. Faults fire all along, so that messages are
written and wait. Target: no call above 50 ms. On a busy machine a call waits for a processor as well, so the processor
time of the loop's own thread stands beside: what lies between them is no work of ours, but waits for machine or disk.
"""

from __future__ import annotations

import argparse
import gc
import os
import socket
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import yaml

import healthwatch
from healthwatch.recording import Run
from healthwatch.session import Session

PACKS = ("loss", "gradients", "moe", "attention")
THINKING = 0.005  # seconds of training between two steps
TARGET = 50.0  # ms

T = TypeVar("T")


@dataclass
class Stopwatch:
    """Wall and processor time of every call, by its name, in milliseconds."""

    taken: dict[str, list[tuple[float, float]]] = field(default_factory=dict)

    @contextmanager
    def __call__(self, name: str) -> Iterator[None]:
        began = time.perf_counter(), time.thread_time()
        yield
        wall, processor = time.perf_counter() - began[0], time.thread_time() - began[1]
        self.taken.setdefault(name, []).append((wall * 1000, processor * 1000))

    def wrap(self, name: str, call: Callable[..., T]) -> Callable[..., T]:
        def timed(*args: Any, **named: Any) -> T:
            with self(name):
                return call(*args, **named)

        return timed

    def rows(self) -> Iterator[str]:
        for name, taken in self.taken.items():
            median, p99, longest = np.percentile([wall for wall, _ in taken], (50, 99, 100))
            processor = max(processor for _, processor in taken)
            yield f"{name:<12} {len(taken):>6} {median:>9.3f} {p99:>9.3f} {longest:>9.3f} {processor:>9.3f}"

    def longest(self) -> tuple[float, float]:
        """Of all calls, by the wall and in processor time; not always the same call."""
        walls, processors = zip(*(each for taken in self.taken.values() for each in taken), strict=True)
        return max(walls), max(processors)


def split(hw: Session, timed: Stopwatch) -> None:
    """Time the two large parts of a step as well."""
    assert hw._pipeline is not None
    for part, name, owner in (
        ("- engine", "step", hw._pipeline.engine),
        ("- recording", "commit", hw._pipeline.recording),
    ):
        setattr(owner, name, timed.wrap(part, getattr(owner, name)))


def loop(hw: Session, parameters: int, steps: range, timed: Stopwatch) -> None:
    random = np.random.default_rng(3)
    params = [{"param": f"decoder.layers.{number}.w"} for number in range(parameters)]
    experts = [{"block": "decoder", "layer": str(layer), "expert": str(each)} for layer in (0, 1) for each in range(8)]
    heads = [{"block": "decoder", "layer": str(layer), "head": str(each)} for layer in (0, 1) for each in range(4)]
    layers = [{"block": "decoder", "layer": str(layer)} for layer in (0, 1)]
    log_values, log, end = (timed.wrap(call.__name__, call) for call in (hw.log_values, hw.log, hw.step))
    for step in steps:
        norms = np.exp(0.2 * random.standard_normal((2, parameters))).astype(np.float32)
        norms[1, step % parameters] *= 50 if step % 40 == 0 else 1
        for micro_step in (0, 1):
            log_values("micro_norm", norms[micro_step], params, micro_step)
            log_values("tokens_per_expert", random.multinomial(256, np.full(8, 1 / 8), 2).ravel(), experts)
        log(grad_norm=float(np.sqrt((norms**2).sum())), lr=1e-3)
        log_values("router_topk", [2, 2], layers)
        log_values("max_attention_logit", np.full(8, 200.0 if step % 20 < 6 else 5.0), heads)
        end(np.nan if step % 100 == 0 else 3.0 + 0.01 * random.standard_normal())
        time.sleep(THINKING)


def write_config(folder: Path, url: str) -> Path:
    section = {
        "run": "benchmark",
        "output": str(folder / "output"),
        "rules": [f"builtin:{pack}" for pack in PACKS],
        "escalation": {severity: [{"notify": "hole"}] for severity in ("critical", "warning")},
        "receivers": {"hole": {"urls": [url], "group_interval": 5}},
    }
    path = folder / "train.yaml"
    path.write_text(yaml.safe_dump({"healthwatch": section}))
    return path


def measure(parameters: int, steps: int) -> tuple[float, float]:
    """Run one loop, print its table, return the longest call in milliseconds, by the wall and in processor time."""
    gc.collect()  # what an earlier loop has left would be collected in one of our calls
    timed, restarted = Stopwatch(), Stopwatch()
    last = steps + max(1, steps // 10)
    with tempfile.TemporaryDirectory() as folder, socket.create_server(("127.0.0.1", 0)) as hole:
        config = write_config(Path(folder), f"json://127.0.0.1:{hole.getsockname()[1]}/")
        hw = healthwatch.load(config).attach()
        split(hw, timed)
        loop(hw, parameters, range(1, steps + 1), timed)
        began = time.perf_counter()
        hw.close()
        closing = time.perf_counter() - began
        with healthwatch.load(config).attach(first_step=steps + 1) as again:
            loop(again, parameters, range(steps + 1, last + 1), restarted)
        with Run.open(Path(folder) / "output") as run:
            said, waiting = len(run.transitions()), sum(row.accepted is None for row in run.outbox())
            size = run.path.stat().st_size / last
    print(f"\n{parameters:,} parameters, {steps:,} steps, {said} transitions, {waiting} notices wait")
    print(f"{'call':<12} {'calls':>6} {'median':>9} {'p99':>9} {'longest':>9} {'processor':>9}   ms")
    print("\n".join(timed.rows()))
    print(f"steps {steps + 1:,} to {last:,}, after a restart:", *restarted.rows(), sep="\n")
    print(f"per step: {hw.healthwatch_seconds / steps * 1000:.3f} ms, {size / 1000:.1f} kB; close: {closing:.2f} s")
    if hw.guard.failures:
        print(f"problems: {dict(hw.guard.failures)}")
    return max(timed.longest()[0], restarted.longest()[0]), max(timed.longest()[1], restarted.longest()[1])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--steps", type=int, default=1000)
    parser.add_argument("--parameters", type=int, nargs="+", default=[64, 1024])
    given = parser.parse_args()
    print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}")
    walls, processors = zip(*(measure(parameters, given.steps) for parameters in given.parameters), strict=True)
    print(f"\nlongest call {max(walls):.1f} ms, in processor time {max(processors):.1f} ms")
    print(f"target {TARGET:.0f} ms: {'met' if max(walls) <= TARGET else 'missed'}")


if __name__ == "__main__":
    main()
