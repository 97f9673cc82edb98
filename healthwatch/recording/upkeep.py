"""The thread that keeps a run file in shape: the log moved into the database, old frames thinned."""

from __future__ import annotations

import contextlib
import sqlite3
import threading
from pathlib import Path

from healthwatch.recording.file import connect

SECONDS = 2.0
BETWEEN = 0.05  # seconds between two batches, so that steps get the lock
BATCH = 16  # frames looked at in one transaction
PROTECTED = 2000  # the newest frames, which a resumed run reads
AIM = 0.9  # thinned down to this share of the limit

COUNT = "UPDATE meta SET value = CAST(value AS INTEGER) + ? WHERE key = 'thinned'"
CANDIDATES = (
    "SELECT id FROM frames WHERE id > ? AND id <= ? AND step NOT IN (SELECT step FROM changes) ORDER BY id LIMIT ?"
)


class Upkeep:
    """Checkpointing on the step itself made one step 69 ms; here it costs none."""

    def __init__(self, path: Path, *, wal: bool, max_size: int | None) -> None:
        self.problem = ""  # why the file is larger than it should be
        self._path, self._wal, self._max_size = path, wal, max_size
        self._cursor = 0
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        if wal or max_size is not None:
            self._thread = threading.Thread(target=self._work, name="healthwatch-upkeep", daemon=True)
            self._thread.start()

    def _work(self) -> None:
        with contextlib.suppress(sqlite3.Error), contextlib.closing(connect(self._path.as_posix())) as connection:
            connection.execute("PRAGMA synchronous=NORMAL")
            connection.execute("PRAGMA wal_autocheckpoint=0")
            while not self._stop.wait(SECONDS):
                with contextlib.suppress(sqlite3.OperationalError):
                    self._checkpoint(connection)
                    self._thin(connection)

    def _checkpoint(self, connection: sqlite3.Connection) -> None:
        if self._wal:
            # PASSIVE waits for nobody and holds no lock that a commit needs.
            connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()

    def _thin(self, connection: sqlite3.Connection) -> None:
        if self._max_size is None or used(connection) <= self._max_size:
            return
        fruitless = 0
        while used(connection) > AIM * self._max_size and not self._stop.is_set():
            gone, at_end = self._thin_batch(connection)
            fruitless = 0 if gone else fruitless + at_end
            if fruitless > 1:
                self.problem = "record.max_size can't be kept: what is left is needed"
                return
            if self._stop.wait(BETWEEN):
                return

    def _thin_batch(self, connection: sqlite3.Connection) -> tuple[int, bool]:
        """Drop every second one of some old frames, oldest first; how many are gone, and whether a pass has ended."""
        newest, count = connection.execute("SELECT coalesce(max(id), 0), count(*) FROM frames").fetchone()
        last = newest - min(PROTECTED, count // 2)
        found = [row[0] for row in connection.execute(CANDIDATES, (self._cursor, last, BATCH))]
        gone = [(id_,) for id_ in found[1::2]]
        if gone:
            connection.execute("BEGIN IMMEDIATE")
            connection.executemany("DELETE FROM samples WHERE frame = ?", gone)
            connection.executemany("DELETE FROM frames WHERE id = ?", gone)
            connection.execute(COUNT, (len(gone),))
            connection.execute("COMMIT")
        at_end = len(found) < BATCH
        self._cursor = 0 if at_end else found[-1]
        return len(gone), at_end

    def close(self, timeout: float) -> bool:
        """Whether the thread has ended; a hung disk must not hold the exit."""
        self._stop.set()
        if self._thread is None:
            return True
        self._thread.join(timeout)
        return not self._thread.is_alive()


def used(connection: sqlite3.Connection) -> int:
    """Bytes of the database that hold something."""
    pages, free, size = (
        connection.execute(f"PRAGMA {name}").fetchone()[0] for name in ("page_count", "freelist_count", "page_size")
    )
    return int((pages - free) * size)
