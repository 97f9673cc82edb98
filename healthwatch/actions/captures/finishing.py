"""Ends a window, waits for its trace and checks it, beside the training."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from healthwatch.actions.captures.manifest import Capture
from healthwatch.actions.captures.trace import check_aside
from healthwatch.alerting.ports import Profiler

GRACE = 0.03  # seconds that a step waits for the stop: normally over in two milliseconds, and best not overlapped
ANALYSIS_LIMIT = 600.0  # seconds
_LOOK_AGAIN = 0.1  # seconds


@dataclass(slots=True)
class Finishing:
    """One window on its way to a checked trace. `stopped` and `done` are set by its own thread."""

    capture: Capture
    profiler: Profiler
    changed: Callable[[Capture], None]  # the capture's manifest is to be written
    stopped: threading.Event = field(default_factory=threading.Event)
    done: threading.Event = field(default_factory=threading.Event)
    given_up: bool = False
    began: float = field(default_factory=time.monotonic)

    def start(self) -> None:
        """Stop the window: on a thread of its own where the profiler allows it, else here and now."""
        if not self.profiler.concurrent_stop:
            self._stop()
        thread = threading.Thread(target=self._run, name="healthwatch-capture", daemon=True)
        try:
            thread.start()
        except RuntimeError:  # the interpreter is ending and starts no more threads
            self._run()
        self.stopped.wait(GRACE)

    def waited(self) -> float:
        """Seconds since the stop was asked for."""
        return time.monotonic() - self.began

    def give_up(self, problem: str) -> None:
        """The stop hangs: whatever its thread still does is of no account any more."""
        self.given_up = True
        self.capture.problem, self.capture.stage = problem, "failed"
        self.changed(self.capture)
        self.done.set()

    def _run(self) -> None:
        if not self.stopped.is_set():
            self._stop()
        if self.given_up:
            return
        self._conclude()
        self.changed(self.capture)
        self.done.set()

    def _stop(self) -> None:
        try:
            self.profiler.stop()
        except Exception as error:
            self.capture.problem = f"the profiler did not stop properly: {error}"
        self.capture.stop_seconds = self.waited()
        self.stopped.set()

    def _conclude(self) -> None:
        capture = self.capture
        try:
            if capture.problem is None:
                capture.trace = self._await_trace()
            if capture.trace is not None:
                capture.check = check_aside(capture.trace, capture.boundaries)
                capture.problem = capture.check.problem
            capture.size = folder_size(capture.folder)
        except Exception as error:
            capture.problem = str(error)
        capture.stage = "finished" if capture.problem is None else "failed"

    def _await_trace(self) -> Path | None:
        while (trace := self.profiler.trace(self.capture.folder)) is None:
            if self.waited() > ANALYSIS_LIMIT:
                self.profiler.abandon(self.capture.folder)
                raise TimeoutError(f"the analysis took longer than {ANALYSIS_LIMIT:g} s and was ended")
            time.sleep(_LOOK_AGAIN)
        return trace


def folder_size(folder: Path) -> int:
    """Bytes of all files below a folder; files that vanish meanwhile count nothing."""
    total = 0
    for root, _, files in os.walk(folder):
        for name in files:
            with suppress(OSError):
                total += (Path(root) / name).stat().st_size
    return total
