"""The SQLite file itself: how it is opened."""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path

from healthwatch.diagnostics import Diagnostic, Invalid
from healthwatch.recording.schema import FORMAT, TABLES

OPEN_SECONDS = 5.0
BUSY_SECONDS = 0.02


def refuse(message: str, help_: str = "") -> Invalid:
    return Invalid([Diagnostic("HW301", "error", message, help=help_)])


def other_format(path: Path, found: str, does: str, mend: str) -> Invalid:
    """A file of another version of healthwatch."""
    writer = "an older" if found.isdecimal() and int(found) < FORMAT else "a newer"
    message = f"{path.as_posix()} has format {found}; this version {does} {FORMAT}"
    return refuse(message, f"{writer} version of healthwatch wrote it: {mend}")


def cannot_record(path: Path, error: OSError | sqlite3.Error) -> Invalid:
    reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    help_ = "`output` in the healthwatch section says where the run is recorded"
    return refuse(f"the run can't be recorded in {path.as_posix()}: {reason}", help_)


def open_for_writing(path: Path) -> tuple[sqlite3.Connection, bool]:
    """The step's own connection, and whether the file is in WAL mode.

    Raises:
        Invalid: the folder or the file can't be written, or the file is none of ours.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
        path.chmod(0o600)  # the -wal and -shm files take it over
        connection = connect(path.as_posix(), timeout=OPEN_SECONDS)
        found = _format(connection)
        if found is not None and found != str(FORMAT):
            connection.close()  # before anything is changed
            raise other_format(path, found, "writes", "move it away, or set another `output`")
        wal = _choose_journal(connection)
        _create_tables(connection)
    except (OSError, sqlite3.Error) as error:
        raise cannot_record(path, error) from None
    return connection, wal


def be_brief(connection: sqlite3.Connection) -> None:
    """From the first step on nothing waits longer than this for a lock."""
    connection.execute(f"PRAGMA busy_timeout={round(BUSY_SECONDS * 1000)}")


def be_patient(connection: sqlite3.Connection) -> None:
    """At the end there is time to wait for a lock, and for the disk."""
    connection.execute(f"PRAGMA busy_timeout={round(OPEN_SECONDS * 1000)}")
    connection.execute("PRAGMA synchronous=NORMAL")


def connect(database: str, *, uri: bool = False, timeout: float = BUSY_SECONDS) -> sqlite3.Connection:
    return sqlite3.connect(database, timeout=timeout, isolation_level=None, check_same_thread=False, uri=uri)


def _choose_journal(connection: sqlite3.Connection) -> bool:
    """WAL, or a rollback journal where the file system can't share memory (NFS and the like).

    A commit is a write(2), which outlives the process: SIGKILL loses nothing even though the step's connection
    never waits for a disk (`synchronous=OFF`). In WAL mode the thread that checkpoints syncs the log first.
    """
    try:
        wal = bool(connection.execute("PRAGMA journal_mode=WAL").fetchone()[0] == "wal")
        connection.execute("BEGIN IMMEDIATE")
        connection.execute("COMMIT")
    except sqlite3.OperationalError:
        wal = False
    if not wal:
        connection.execute("PRAGMA journal_mode=PERSIST")
    connection.execute("PRAGMA synchronous=OFF")
    connection.execute("PRAGMA wal_autocheckpoint=0")
    return wal


def _create_tables(connection: sqlite3.Connection) -> None:
    connection.executescript(TABLES)
    connection.execute("INSERT OR IGNORE INTO meta VALUES ('format', ?), ('thinned', '0')", (str(FORMAT),))


def _format(connection: sqlite3.Connection) -> str | None:
    """The format of a file; None where it is new."""
    named = "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'meta'"
    if connection.execute(named).fetchone() is None:
        return None
    found = connection.execute("SELECT value FROM meta WHERE key = 'format'").fetchone()
    return None if found is None else str(found[0])


def open_for_reading(path: Path) -> sqlite3.Connection:
    """A connection that never writes, also while the run goes on or where the folder is read-only.

    Raises:
        Invalid: there is no such file, or it is no run file.
    """
    if not path.is_file():
        missing = "" if path.exists() else ": there is no such file"
        mend = "name a rank_<r>.sqlite file or the folder that holds it"
        raise refuse(f"{path.as_posix()} is no recorded run{missing}", mend)
    address = path.absolute().as_uri()
    try:
        try:
            connection = connect(f"{address}?mode=ro", uri=True, timeout=OPEN_SECONDS)
            found = connection.execute("SELECT value FROM meta WHERE key = 'format'").fetchone()
        except sqlite3.OperationalError:
            log = path.with_name(path.name + "-wal")
            if log.exists() and log.stat().st_size:
                raise
            # WAL needs a -shm file; without a log to read there is nothing that it would protect.
            connection = connect(f"{address}?mode=ro&immutable=1", uri=True)
            found = connection.execute("SELECT value FROM meta WHERE key = 'format'").fetchone()
    except sqlite3.Error as error:
        other = getattr(error, "sqlite_errorcode", None) == sqlite3.SQLITE_NOTADB
        mend = "a log can only be read and replayed: healthwatch read LOG, healthwatch replay LOG" if other else ""
        reason = "it is another database" if "no such table" in str(error) else str(error)
        raise refuse(f"{path.as_posix()} can't be read as a recorded run: {reason}", mend) from None
    if found is None:
        raise refuse(f"{path.as_posix()} can't be read as a recorded run: it names no format")
    if found[0] != str(FORMAT):
        raise other_format(path, found[0], "reads", "read it with that version")
    return connection
