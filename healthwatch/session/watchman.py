"""The thread beside the loop: it sees what people ask for, and that no step comes any more."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

EVERY = 1.0  # seconds between two looks


class Watchman:
    """Calls `look(seconds since the last step)` every second; a step calls `step_ended`."""

    def __init__(self, look: Callable[[float], None]) -> None:
        self._look = look
        self._last = time.monotonic()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._work, name="healthwatch-watchman", daemon=True)
        self._thread.start()

    def step_ended(self) -> None:
        self._last = time.monotonic()

    def _work(self) -> None:
        while not self._stop.wait(EVERY):
            self._look(time.monotonic() - self._last)

    def close(self) -> None:
        self._stop.set()
        self._thread.join(EVERY)
