"""Ends a window, waits for its trace, checks it and says where the time went, beside the training."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from healthwatch.actions.captures.afterwards import explain
from healthwatch.actions.captures.alone import alone
from healthwatch.actions.captures.limits import folder_size
from healthwatch.actions.captures.manifest import Capture
from healthwatch.actions.captures.trace import Breakdown, read_aside
from healthwatch.alerting.ports import Profiler

GRACE = 0.03  # seconds that a step waits for the stop: normally over in two milliseconds, and best not overlapped
ANALYSIS_LIMIT = 600.0  # seconds
_LOOK_AGAIN = 0.1  # seconds


@dataclass(slots=True, eq=False)
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
        self.changed(self.capture)  # how long the stop took
        breakdown = self._read()
        self.changed(self.capture)
        if breakdown is not None:
            self._explain(breakdown)
        self.done.set()

    def _explain(self, breakdown: Breakdown) -> None:
        capture = self.capture
        with alone(capture.folder.parent):
            capture.remark = explain(capture.folder, breakdown) or capture.remark
            capture.stage = "finished"
            self.changed(capture)

    def _stop(self) -> None:
        try:
            self.profiler.stop()
        except Exception as error:
            self.capture.problem = f"the profiler did not stop properly: {error}"
        self.capture.stop_seconds = self.waited()
        self.stopped.set()

    def _read(self) -> Breakdown | None:
        """What the trace says, None where it is of no use."""
        capture, breakdown = self.capture, None
        try:
            if capture.problem is None:
                capture.trace = self._await_trace()
                capture.check, breakdown = read_aside(capture.trace, capture.boundaries)
                capture.problem = capture.check.problem
            capture.size = _written(capture)
        except Exception as error:
            capture.problem = str(error)
        if capture.problem is None:
            return breakdown
        capture.stage = "failed"
        return None

    def _await_trace(self) -> Path:
        while (trace := self.profiler.trace(self.capture.records)) is None:
            if self.waited() > ANALYSIS_LIMIT:
                self.profiler.abandon(self.capture.records)
                raise TimeoutError(f"the analysis took longer than {ANALYSIS_LIMIT:g} s and was ended")
            time.sleep(_LOOK_AGAIN)
        return trace


def _written(capture: Capture) -> int:
    """Bytes below its own folder; of a static window those of its trace, which lies among others."""
    if capture.trace is None or capture.trace.is_relative_to(capture.folder):
        return folder_size(capture.folder)
    return folder_size(capture.trace.parent)
