"""Who writes a file: one process at a time, for as long as it lives."""

from __future__ import annotations

import contextlib
import os
import socket
from pathlib import Path

_mine: set[str] = set()


class Lock:
    """A lock beside a file, held until `release` or the end of the process.

    A POSIX lock: it ends with its process, however that ends, and is not handed on to forked children, so an orphaned
    data worker locks nobody out.
    """

    def __init__(self, path: Path) -> None:
        self._path, self._name = path, os.path.realpath(path)
        self._descriptor: int | None = None

    def take(self) -> str | None:
        """None where it is ours now; else who has it."""
        if self._name in _mine:
            return "this process"
        try:
            import fcntl

            self._descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT, 0o600)
        except (ImportError, OSError):  # no such locks here: whoever starts a run twice is on his own
            return None
        try:
            fcntl.lockf(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except (BlockingIOError, PermissionError):
            holder = os.pread(self._descriptor, 200, 0).decode("utf-8", "replace").strip()
            self._close()
            return holder or "another process"
        except OSError:  # the file system has none
            self._close()
            return None
        with contextlib.suppress(OSError):
            os.ftruncate(self._descriptor, 0)
            os.pwrite(self._descriptor, f"process {os.getpid()} on {socket.gethostname()}\n".encode(), 0)
        _mine.add(self._name)
        return None

    def release(self) -> None:
        if self._descriptor is not None:
            _mine.discard(self._name)
            self._close()

    def _close(self) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None
