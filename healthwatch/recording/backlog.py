"""What is to be written, step by step, and what happens to it while the file is locked."""

from __future__ import annotations

import sqlite3
import time
from collections import deque
from dataclasses import dataclass, field
from typing import Any

from healthwatch.recording import schema

MAX_BUFFERED = 64 * 2**20  # bytes of samples kept while the file is locked
RETRY_SECONDS = 0.25


@dataclass(slots=True)
class Batch:
    """What one step adds; samples are apart so that they can be given up first."""

    rows: list[tuple[str, list[tuple[Any, ...]]]] = field(default_factory=list)
    samples: list[tuple[Any, ...]] = field(default_factory=list)

    @property
    def size(self) -> int:
        return sum(len(row[-1]) for row in self.samples)

    def add(self, statement: str, rows: list[tuple[Any, ...]]) -> None:
        if rows:
            self.rows.append((statement, rows))


class Backlog:
    """Batches that are not in the file yet; as a rule there is none but that of the step under way."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self.stopped = ""  # why nothing is written any more
        self.dropped = 0  # steps whose samples were given up
        self._connection = connection
        self._queue: deque[Batch] = deque()
        self._retry_at = 0.0

    def __len__(self) -> int:
        return len(self._queue)

    def write(self, batch: Batch, *, patient: bool = False) -> str | None:
        """Everything that waits, and this batch, in one transaction; a locked file gets it another time.

        Returns why nothing is written any more, at the one call where that begins.
        """
        self._queue.append(batch)
        if not patient and time.monotonic() < self._retry_at:
            self._trim()
            return None
        try:
            self._transact()
        except sqlite3.Error as error:
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
            if not _locked(error):
                self.stopped = str(error)
                self._queue.clear()
                return self.stopped
            self._retry_at = time.monotonic() + RETRY_SECONDS
            self._trim()
            return None
        self._queue.clear()
        return None

    def _transact(self) -> None:
        self._connection.execute("BEGIN IMMEDIATE")
        for batch in self._queue:
            for statement, rows in batch.rows:
                self._connection.executemany(statement, rows)
            self._connection.executemany(schema.ADD_SAMPLES, batch.samples)
        self._connection.execute("COMMIT")

    def _trim(self) -> None:
        """Samples of the oldest waiting steps go first; transitions, incidents and notices stay."""
        excess = sum(batch.size for batch in self._queue) - MAX_BUFFERED
        for batch in self._queue:
            if excess <= 0:
                return
            excess -= batch.size
            self.dropped += bool(batch.samples)
            batch.samples.clear()


def _locked(error: sqlite3.Error) -> bool:
    return isinstance(error, sqlite3.OperationalError) and ("locked" in str(error) or "busy" in str(error))
