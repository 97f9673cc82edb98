"""One at a time explains the captures of a folder: threads of a training, and processes that outlive theirs."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from healthwatch.recording.lock import Lock

_LOOK_AGAIN = 0.05  # seconds
_threads = threading.Lock()  # a lock of the system is a process's, not a thread's


@contextmanager
def alone(folder: Path) -> Iterator[None]:
    """Wait until nobody else is at work in a rank's folder of captures."""
    lock = Lock(folder.with_name(f"{folder.name}.lock"))
    with _threads:
        while lock.take() is not None:
            time.sleep(_LOOK_AGAIN)
        try:
            yield
        finally:
            lock.release()
