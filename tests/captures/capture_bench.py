"""A run of steps with the captures beside it, and a profiler that fails where it is told to."""

from __future__ import annotations

import json
import threading
import time
from pathlib import Path
from typing import Any

from healthwatch.actions.captures.requests import Requests
from healthwatch.actions.captures.window import StaticWindow
from healthwatch.actions.profile import Captures
from healthwatch.alerting.model import Incident, Now, Sample
from healthwatch.config import CaptureSettings, ProfilerSection

GIB = 2**30


class RecordingProfiler:
    """Writes a trace with one operator a step, and fails where it is told to."""

    def __init__(self) -> None:
        self.concurrent_stop = True
        self.takes_window = True
        self.trace_pattern = "trace.json"
        self.others_active = False
        self.start_raises: Exception | None = None
        self.step_raises: Exception | None = None
        self.stop_raises: Exception | None = None
        self.stop_blocks = threading.Event()
        self.stop_blocks.set()
        self.analysis_raises: Exception | None = None
        self.analysed = True
        self.spoil = ""
        self.calls: list[str] = []
        self.steps = 0
        self.folder = Path()
        self.operators: list[tuple[str, float, float]] = []  # name, begin, milliseconds

    def busy(self, steps: int) -> bool:
        return self.others_active

    def start(self, folder: Path, steps: int, settings: ProfilerSection) -> None:
        self.calls.append("start")
        if self.start_raises:
            raise self.start_raises
        folder.mkdir(parents=True, exist_ok=True)
        self.folder, self.steps, self.operators = folder, steps, []

    def operator(self, name: str = "MatMul", ms: float = 0.0015) -> None:
        self.operators.append((name, time.time(), ms))

    def step(self) -> None:
        self.calls.append("step")
        if self.step_raises:
            raise self.step_raises

    def stop(self) -> None:
        self.calls.append("stop")
        self.stop_blocks.wait(30)
        if self.stop_raises:
            raise self.stop_raises
        events = [
            {"ph": "X", "name": f"Default/{name}-op3", "pid": 2, "tid": 0, "ts": f"{at * 1e6:.3f}", "dur": ms * 1e3}
            for name, at, ms in self.operators
        ]
        (self.folder / "trace.json").write_text(json.dumps(events) + self.spoil)

    def trace(self, folder: Path) -> Path | None:
        if self.analysis_raises:
            raise self.analysis_raises
        return folder / "trace.json" if self.analysed else None

    def abandon(self, folder: Path) -> None:
        self.calls.append("abandon")


class Bench:
    """A run of steps with a capture machine beside it."""

    def __init__(
        self, folder: Path, window: StaticWindow | None = None, requests: Requests | None = None, **limits: Any
    ) -> None:
        self.profiler = RecordingProfiler()
        self.told: list[tuple[str, str]] = []
        self.free = 100 * GIB
        self.stop_limit = 0.05
        settings = CaptureSettings(**{"max_captures": 2, "cooldown": 0, "min_free_disk": 50 * GIB, **limits})
        self.captures = Captures(
            self.profiler,
            settings,
            folder / "captures" / "rank_0",
            {"run": "bench", "rank": 0, "config_digest": "abc"},
            ProfilerSection(),
            lambda part, message: self.told.append((part, message)),
            window=window,
            requests=requests,
            free=lambda _: self.free,
            stop_limit=self.stop_limit,
        )

    def alert(self, step: int, rule: str = "Spike", steps: int = 3) -> Any:
        return self.captures.request(incident(rule, step), steps, now(step))

    def run(self, first: int, last: int, firing: bool = False) -> None:
        for step in range(first, last + 1):
            self.profiler.operator()
            self.captures.step_end(step, firing)

    def settle(self, step: int) -> None:
        """Let the threads come to their end, and look once more."""
        for each in list(self.captures._endings._under_way):
            assert each.done.wait(20)
        self.captures.step_end(step)

    def manifest(self, incident_id: str) -> dict[str, Any]:
        loaded: dict[str, Any] = json.loads((self.captures.notes[incident_id].folder / "manifest.json").read_text())
        return loaded


def incident(rule: str, step: int) -> Incident:
    firing = (Sample((("layer", "1"), ("param", "w")), float("inf")), Sample((("param", "v"),), 8.5))
    return Incident(
        id=f"{rule}@{step}",
        rule=rule,
        severity="critical",
        opened=now(step),
        since=now(step - 1),
        micro_step=2,
        firing=firing,
        count=2,
        joined=2,
    )


def now(step: int) -> Now:
    return Now(step, 1000.0 + step)
