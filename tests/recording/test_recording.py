from __future__ import annotations

import os
import sqlite3
import stat
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest

from healthwatch.alerting.model import Acceptance, Incident, Now, Sample
from healthwatch.diagnostics import Invalid
from healthwatch.engine import Outcome
from healthwatch.recording import Recording, Run, backlog, upkeep
from healthwatch.recording import file as run_file
from healthwatch.stream import Frame


def steps_of(folder: Path) -> list[int]:
    with Run.open(folder) as run:
        return [frame.step for frame in run.frames()]


def test_only_the_owner_may_read_it(tmp_path, commit):
    recording = Recording.create(tmp_path / "deep" / "down" / "rank_0.sqlite", {})
    commit(recording, 1)
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in (tmp_path / "deep" / "down").iterdir()}
    assert modes == dict.fromkeys(("rank_0.lock", "rank_0.sqlite", "rank_0.sqlite-wal", "rank_0.sqlite-shm"), 0o600)
    recording.close()


def test_a_file_that_others_may_read_is_closed_to_them(tmp_path):
    path = tmp_path / "rank_0.sqlite"
    Recording.create(path, {}).close()
    path.chmod(0o644)
    Recording.create(path, {}).close()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_the_step_never_checkpoints_and_never_waits_for_a_disk(tmp_path):
    connection, wal = run_file.open_for_writing(tmp_path / "rank_0.sqlite")
    pragmas = [connection.execute(f"PRAGMA {name}").fetchone()[0] for name in ("wal_autocheckpoint", "synchronous")]
    run_file.be_brief(connection)
    assert (wal, pragmas) == (True, [0, 0])
    assert connection.execute("PRAGMA busy_timeout").fetchone()[0] == 20
    connection.close()


def test_a_thread_checkpoints(tmp_path, commit, monkeypatch):
    monkeypatch.setattr(upkeep, "SECONDS", 0.02)
    path = tmp_path / "rank_0.sqlite"
    recording = Recording.create(path, {})
    before = path.stat().st_size
    for step in range(1, 200):
        commit(recording, step)
    deadline = time.monotonic() + 20
    while path.stat().st_size == before and time.monotonic() < deadline:
        time.sleep(0.02)
    assert path.stat().st_size > before
    recording.close()
    assert not path.with_name("rank_0.sqlite-wal").exists()


def test_without_shared_memory_it_takes_a_rollback_journal(tmp_path, commit, monkeypatch):
    """The VFS `unix-dotfile`, for file systems without POSIX locks, can't do WAL."""
    plain = run_file.connect

    def without_shared_memory(database, **options):
        return plain(Path(database).absolute().as_uri() + "?vfs=unix-dotfile", **{**options, "uri": True})

    with monkeypatch.context() as patched:
        patched.setattr(run_file, "connect", without_shared_memory)
        recording = Recording.create(tmp_path / "rank_0.sqlite", {})
    assert recording._connection.execute("PRAGMA journal_mode").fetchone()[0] == "persist"
    for step in range(1, 4):
        assert commit(recording, step) is None
    recording.close()
    assert steps_of(tmp_path) == [1, 2, 3]


@pytest.mark.parametrize("where", ["file/below", "folder"])
def test_what_cannot_be_written_is_refused_before_step_1(tmp_path, where):
    (tmp_path / "file").write_text("not a folder")
    (tmp_path / "folder" / "rank_0.sqlite").mkdir(parents=True)
    with pytest.raises(Invalid) as refused:
        Recording.create(tmp_path / where / "rank_0.sqlite", {})
    (found,) = refused.value.diagnostics
    assert "can't be recorded" in found.message
    assert "`output`" in found.help


READ_ONLY = """
import os, sys
from pathlib import Path
from healthwatch.diagnostics import Invalid
from healthwatch.recording import Recording
if os.getuid() == 0:
    os.setgid(65534); os.setuid(65534)
try:
    Recording.create(Path(sys.argv[1]) / "rank_0.sqlite", {})
except Invalid as refused:
    print(refused)
"""


def test_a_read_only_folder_is_refused(tmp_path):
    folder = tmp_path / "output"
    folder.mkdir(mode=0o555)
    for above in [*tmp_path.parents][:3]:
        if above.stat().st_uid == os.getuid() and above != Path("/tmp"):
            above.chmod(above.stat().st_mode | 0o111)
    tmp_path.chmod(0o755)
    ended = subprocess.run([sys.executable, "-c", READ_ONLY, str(folder)], capture_output=True, text=True, check=True)
    assert "can't be recorded" in ended.stdout
    assert "ermission denied" in ended.stdout or "unable to open" in ended.stdout


def test_a_file_that_is_something_else_is_refused(tmp_path):
    (tmp_path / "rank_0.sqlite").write_bytes(b"no database at all" * 100)
    with pytest.raises(Invalid, match="can't be recorded"):
        Recording.create(tmp_path / "rank_0.sqlite", {})
    with pytest.raises(Invalid, match="can't be read"):
        Run.open(tmp_path / "rank_0.sqlite")


@pytest.mark.parametrize(("written", "writer"), [("1", "an older"), ("99", "a newer")])
def test_a_file_of_another_version_is_refused_as_it_is(tmp_path, written, writer):
    path = tmp_path / "rank_0.sqlite"
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL)")
        connection.execute("INSERT INTO meta VALUES ('format', ?)", (written,))
    connection.close()
    before = path.read_bytes()
    with pytest.raises(Invalid, match="this version writes 2") as refused:
        Recording.create(path, {})
    assert f"{writer} version of healthwatch wrote it: move it away, or set another `output`" in str(refused.value)
    with pytest.raises(Invalid, match=f"{writer} version of healthwatch wrote it: read it with that version"):
        Run.open(path)
    assert path.read_bytes() == before


def test_a_locked_file_buffers_and_commits_later(tmp_path, commit, monkeypatch):
    monkeypatch.setattr(backlog, "RETRY_SECONDS", 0.0)
    recording = Recording.create(tmp_path / "rank_0.sqlite", {})
    commit(recording, 1)
    other = sqlite3.connect(tmp_path / "rank_0.sqlite", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    assert commit(recording, 2) is None
    assert commit(recording, 3) is None
    assert steps_of(tmp_path) == [1]
    other.execute("ROLLBACK")
    assert commit(recording, 4) is None
    assert steps_of(tmp_path) == [1, 2, 3, 4]
    other.close()
    recording.close()


def test_what_is_buffered_is_written_at_the_end(tmp_path, commit, notice):
    recording = Recording.create(tmp_path / "rank_0.sqlite", {})
    other = sqlite3.connect(tmp_path / "rank_0.sqlite", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    commit(recording, 1, notices=[notice("n")])
    assert [found.notice.id for found in recording.pending()] == ["n"]
    other.execute("ROLLBACK")
    other.close()
    recording.close()
    assert steps_of(tmp_path) == [1]


def test_a_file_that_stays_locked_to_the_end_is_told(tmp_path, commit, monkeypatch):
    recording = Recording.create(tmp_path / "rank_0.sqlite", {})
    commit(recording, 1)
    other = sqlite3.connect(tmp_path / "rank_0.sqlite", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    commit(recording, 2)
    monkeypatch.setattr(run_file, "OPEN_SECONDS", 0.05)
    assert "its last 1 steps are lost" in recording.close()
    assert recording.close() is None
    other.execute("ROLLBACK")
    other.close()
    assert steps_of(tmp_path) == [1]


def test_a_buffer_that_grows_too_large_gives_up_samples_first(tmp_path, commit, notice, monkeypatch):
    monkeypatch.setattr(backlog, "MAX_BUFFERED", 3 * 8)
    recording = Recording.create(tmp_path / "rank_0.sqlite", {})
    other = sqlite3.connect(tmp_path / "rank_0.sqlite", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    for step in range(1, 6):
        commit(recording, step, notices=[notice(f"n{step}")])
    other.execute("ROLLBACK")
    other.close()
    recording.close()
    assert recording.dropped == 2
    with Run.open(tmp_path) as run:
        assert [len(frame.columns) for frame in run.frames()] == [0, 0, 1, 1, 1]
        assert len(run.outbox()) == 5


def test_a_full_disk_stops_the_recording_and_says_so_once(tmp_path, commit):
    recording = Recording.create(tmp_path / "rank_0.sqlite", {})
    commit(recording, 1)
    pages = recording._connection.execute("PRAGMA page_count").fetchone()[0]
    recording._connection.execute(f"PRAGMA max_page_count = {pages + 2}")  # the disk has room for two pages more
    reasons = [commit(recording, step) for step in range(2, 500)]
    assert [reason for reason in reasons if reason] == ["database or disk is full"]
    assert recording.stopped == "database or disk is full"
    recording.close()
    steps = steps_of(tmp_path)
    assert steps == list(range(1, len(steps) + 1))  # all that was finished before


def test_the_next_start_is_the_next_attempt(tmp_path, commit):
    path = tmp_path / "rank_0.sqlite"
    first = Recording.create(path, {"run": "a"})
    for step in (1, 2, 3):
        commit(first, step)
    first.close()
    second = Recording.create(path, {"run": "b"})
    assert (first.attempt, second.attempt) == (1, 2)
    commit(second, 3)
    with Run.open(path) as run:
        assert [(frame.attempt, frame.step) for frame in run.frames()] == [(1, 1), (1, 2), (1, 3), (2, 3)]
        assert [frame.step for frame in run.before(4, 2)] == [2, 3, 3]
        assert len(run.table.series) == 1
        ends = [(attempt.number, attempt.reason, attempt.ended is None) for attempt in run.attempts()]
        assert ends == [(1, "end", False), (2, None, True)]
        assert run.meta == {"run": "b"}
        assert run.steps == (1, 3)
    second.close()


def test_the_outbox_keeps_what_no_receiver_took(tmp_path, commit, notice):
    path = tmp_path / "rank_0.sqlite"
    recording = Recording.create(path, {})
    commit(recording, 1, notices=[notice("a"), notice("b")])
    recording.put(notice("c"))
    commit(recording, 2, notices=[notice("a")], accepted=[Acceptance("b", 1, 7.5, whole=True)])
    recording.accepted(Acceptance("c", 1, 8.5, whole=True))
    recording.close()
    again = Recording.create(path, {})
    assert [found.notice.id for found in again.pending()] == ["a"]
    assert again.pending()[0].notice == notice("a")
    again.close()
    with Run.open(path) as run:
        assert [(row.notice.id, row.accepted) for row in run.outbox()] == [("a", None), ("b", 7.5), ("c", 8.5)]


def test_an_incident_is_written_when_it_changes(tmp_path):
    recording = Recording.create(tmp_path / "rank_0.sqlite", {})

    def write(step: int, value: float, **changes) -> None:
        now = Now(step, 0.0)
        firing = (Sample((("param", "wq"),), value),)
        known = {"opened": Now(1, 0.0), "since": Now(1, 0.0), "micro_step": 2, "count": 1, "joined": 1}
        incident = Incident("A@1", "A", "warning", firing=firing, **{**known, **changes})
        frame = Frame(step)
        frame.close()
        recording.commit(frame, Outcome(now, incidents=(incident,)))

    def stored() -> Incident:
        with Run.open(tmp_path) as run:
            (found,) = run.incidents()
            return found

    write(1, 1.0)
    write(2, 2.0)
    assert stored().firing[0].value == 1.0
    write(3, 3.0, count=2, joined=2)
    assert (stored().firing[0].value, stored().joined) == (3.0, 2)
    write(4, 4.0, count=2, joined=2, ended=Now(4, 0.0), ending="resolved")
    assert (stored().ending, stored().ended) == ("resolved", Now(4, 0.0))
    recording.close()


def test_a_run_can_be_read_while_it_is_written(tmp_path, commit, table):
    recording = Recording.create(tmp_path / "rank_0.sqlite", {})
    commit(recording, 1)
    with Run.open(tmp_path) as run:
        frames = run.frames()
        assert next(frames).step == 1
        frame = Frame(2)
        frame.add(table.register("new", [{}]), [1.0])
        frame.close()
        recording.commit(frame, Outcome(Now(2, 0.0)))
        assert list(frames) == []
        assert [column.series.metric for frame in run.frames() for column in frame.columns] == ["loss", "new"]
    recording.close()


def test_a_folder_means_its_lowest_rank(tmp_path, commit):
    for rank in (10, 2):
        Recording.create(tmp_path / f"rank_{rank}.sqlite", {"rank": rank}).close()
    with Run.open(tmp_path) as run:
        assert run.meta == {"rank": 2}


@pytest.mark.parametrize("name", ["nothing.sqlite", "."])
def test_what_is_no_run_is_refused(tmp_path, name):
    with pytest.raises(Invalid, match="no recorded run"):
        Run.open(tmp_path / name)


def test_a_forked_child_leaves_the_file_alone(tmp_path, commit):
    recording = Recording.create(tmp_path / "rank_0.sqlite", {})
    commit(recording, 1)
    child = os.fork()
    if child == 0:
        commit(recording, 2)
        recording.close()
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    commit(recording, 3)
    recording.close()
    assert steps_of(tmp_path) == [1, 3]


def test_series_can_be_declared_before_the_first_step(tmp_path, table):
    recording = Recording.create(tmp_path / "rank_0.sqlite", {})
    series = table.register("local_norm", [{"param": f"p{number}"} for number in range(3)])
    recording.declare(table.series)
    frame = Frame(1)
    frame.add(series, np.arange(3, dtype=np.float16))
    frame.close()
    recording.commit(frame, Outcome(Now(1, 0.0)))
    recording.close()
    with Run.open(tmp_path) as run:
        (column,) = next(run.frames()).columns
        assert column.series.labels == series.labels


def test_closing_twice_or_writing_afterwards_does_no_harm(tmp_path, commit):
    recording = Recording.create(tmp_path / "rank_0.sqlite", {})
    commit(recording, 1)
    recording.close()
    recording.close()
    assert commit(recording, 2) is None
    assert steps_of(tmp_path) == [1]
    assert not [thread for thread in threading.enumerate() if thread.name == "healthwatch-checkpoint"]
