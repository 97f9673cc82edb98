"""The windows that are being ended, beside the training."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from healthwatch.actions.captures.afterwards import leave
from healthwatch.actions.captures.finishing import Finishing
from healthwatch.actions.captures.manifest import Capture
from healthwatch.alerting.ports import Profiler


class Endings:
    """One window at a time is stopped; earlier ones may still be analysed meanwhile.

    Args:
        profiler: the framework's.
        changed: hears of every capture whose manifest is to be written, on any thread.
        tell: hears of each problem as (what kind, what happened).
        stop_limit: seconds after which a stop is taken to hang.
    """

    def __init__(
        self,
        profiler: Profiler,
        changed: Callable[[Capture], None],
        tell: Callable[[str, str], Any],
        stop_limit: float,
    ) -> None:
        self._profiler, self._changed, self._tell, self._stop_limit = profiler, changed, tell, stop_limit
        self._under_way: list[Finishing] = []

    def begin(self, capture: Capture) -> None:
        finishing = Finishing(capture, self._profiler, self._changed)
        self._under_way.append(finishing)
        finishing.start()

    @property
    def stopping(self) -> bool:
        """Whether a stop is still under way."""
        return any(not each.stopped.is_set() for each in self._under_way)

    def look(self) -> list[Finishing]:
        """Those that are over since the last look; one whose stop hangs is given up."""
        for each in self._under_way:
            if not each.stopped.is_set() and not each.done.is_set() and each.waited() > self._stop_limit:
                each.give_up(f"the profiler's stop has been hanging for {each.waited():.0f} s")
        over = [each for each in self._under_way if each.done.is_set()]
        for each in over:
            self._under_way.remove(each)
        return over

    def close(self, timeout: float) -> None:
        """Wait for all of them; an analysis that takes longer goes on without anybody waiting for it."""
        deadline = time.monotonic() + timeout
        for each in self._under_way:
            if each.done.wait(max(deadline - time.monotonic(), 0.0)):
                continue
            if each.stopped.is_set():
                self._leave(each.capture)
            else:
                each.give_up("the profiler's stop was still hanging when the run ended")

    def _leave(self, capture: Capture) -> None:
        try:
            leave(capture.folder, self._profiler.trace_pattern)
        except OSError as error:
            self._tell("capture analysis", f"nobody waits for the trace in {capture.records}: {error.strerror}")
