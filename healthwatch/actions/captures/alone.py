"""One at a time explains the captures of a folder: threads of a training, and processes that outlive theirs."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_threads = threading.Lock()


@contextmanager
def alone(folder: Path) -> Iterator[None]:
    """Wait until nobody else is at work in a rank's folder of captures.

    The lock of the system ends with its process; where there is none, only the threads of one process take turns.
    """
    with _threads:
        descriptor = _locked(folder.with_name(f"{folder.name}.lock"))
        try:
            yield
        finally:
            if descriptor is not None:
                os.close(descriptor)


def _locked(path: Path) -> int | None:
    try:
        import fcntl

        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    except (ImportError, OSError):
        return None
    try:
        fcntl.lockf(descriptor, fcntl.LOCK_EX)
    except OSError:
        os.close(descriptor)
        return None
    return descriptor
