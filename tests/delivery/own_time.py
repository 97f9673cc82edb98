"""How long calls take, without the time for which the kernel let the thread wait for a core."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

SCHEDSTAT = Path("/proc/thread-self/schedstat")


class OwnTime:
    """Measures calls: `longest` is the longest of them in seconds, whatever else runs on the machine.

    What a call waits for itself counts: a disk, a lock, a receiver, the interpreter's lock.
    """

    def __init__(self) -> None:
        self.longest = 0.0

    def __call__(self, call: Callable[..., Any], *args: Any, **named: Any) -> None:
        waited, began = _waited(), time.perf_counter()
        call(*args, **named)
        took = time.perf_counter() - began
        self.longest = max(self.longest, took - (_waited() - waited))


def _waited() -> float:
    """Seconds for which this thread could have run and no core was free."""
    return int(SCHEDSTAT.read_text().split()[1]) / 1e9
