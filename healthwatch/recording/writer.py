"""What a running training writes: one transaction a step, and nothing that waits."""

from __future__ import annotations

import json
import os
import sqlite3
import time
from collections.abc import Iterable, Mapping, Sequence
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from healthwatch.alerting.model import Acceptance, Incident, Notice, Untold
from healthwatch.diagnostics import Invalid
from healthwatch.recording import schema
from healthwatch.recording.backlog import Backlog, Batch
from healthwatch.recording.codec import change_row, dump, incident_row, labels_text, notice_row, untold_of
from healthwatch.recording.delivered import Delivered
from healthwatch.recording.file import be_brief, be_patient, cannot_record, open_for_writing, refuse
from healthwatch.recording.lock import Lock
from healthwatch.recording.upkeep import Upkeep

if TYPE_CHECKING:
    from healthwatch.engine import Outcome
    from healthwatch.stream import Frame, Series, SeriesTable

CLOSE_SECONDS = 2.0


class Recording:
    """The run file of this process, and its outbox (`alerting.ports.Outbox`)."""

    def __init__(self, path: Path, meta: Mapping[str, Any], max_size: int | None = None) -> None:
        self.path, self.meta = path, meta
        self._lock = _locked_for_us(path)
        self._owner = os.getpid()
        try:
            self._connection, wal = open_for_writing(path)
        except Invalid:
            self._lock.release()
            raise
        self.delivered = Delivered(path)
        self._backlog = Backlog(self._connection)
        self._next = Batch()  # what came between two steps goes in with the next one
        self._shown: dict[str, tuple[Any, ...]] = {}
        self._state: dict[str, bytes] = {}
        self._buffered_notices: list[Notice] = []
        self._series_ids: dict[int, int] = {}
        try:
            self._continue(meta)
        except sqlite3.Error as error:
            self._lock.release()
            raise cannot_record(path, error) from None
        self._upkeep = Upkeep(path, wal=wal, max_size=max_size)

    @classmethod
    def create(cls, path: Path, meta: Mapping[str, Any], max_size: int | None = None) -> Recording:
        """Begin a recording, or the next attempt of the one that is there.

        Args:
            path: `<output>/rank_<r>.sqlite`; folders above it are created.
            meta: what belongs to this attempt (rules as loaded, config digest, ...), written as JSON.
            max_size: bytes beyond which old frames are thinned.

        Raises:
            Invalid: it can't be written there, or another process writes it.
        """
        return cls(path, meta, max_size)

    def _continue(self, meta: Mapping[str, Any]) -> None:
        one = self._connection.execute
        self.attempt: int = one("SELECT coalesce(max(attempt), 0) + 1 FROM attempts").fetchone()[0]
        self._frame = one("SELECT coalesce(max(id), 0) FROM frames").fetchone()[0]
        rows = one("SELECT id, metric, labels FROM series ORDER BY id")
        self._known: dict[tuple[str, str], int] = {(metric, labels): file_id for file_id, metric, labels in rows}
        self._state = {key: bytes(value) for key, value in one("SELECT key, value FROM state")}
        self._next.add(schema.BEGIN_ATTEMPT, [(self.attempt, time.time(), dump(meta))])
        be_brief(self._connection)

    def restore(self, table: SeriesTable) -> None:
        """Register the series of earlier attempts in the order in which a replay will."""
        for metric, labels in self._known:
            table.register(metric, [dict(pairs) for pairs in json.loads(labels)])

    @property
    def behind(self) -> bool:
        """Whether steps are missing from the file: it is locked, or no longer written."""
        return bool(len(self._backlog) or self.stopped)

    @property
    def stopped(self) -> str:
        """Why nothing is recorded any more."""
        return self._backlog.stopped

    @property
    def dropped(self) -> int:
        """Steps whose samples were given up while the file was locked."""
        return self._backlog.dropped

    def declare(self, series: Iterable[Series]) -> None:
        """Write series down in this order, if they are new; before the first step it costs no step."""
        for each in series:
            if each.id not in self._series_ids:
                self._add_series(each)

    # The step

    def commit(
        self,
        frame: Frame | None,
        outcome: Outcome,
        captures: Sequence[Any] = (),
        notices: Sequence[Notice] = (),
        accepted: Sequence[Acceptance] = (),
        state: Mapping[str, bytes] | None = None,
        since: float | None = None,
    ) -> str | None:
        """Write one step in one transaction; a locked file gets it later. Without a frame: what came between steps.

        `captures` are notes of those begun or changed at this step, each with a `folder`; `state` is where alerting
        stands now (None: where it stood). `since`, for a clock event, is when the last step ended.

        Returns:
            Why the recording has stopped, at the one step where it did; else None.
        """
        if self.stopped or os.getpid() != self._owner:
            return None
        columns = frame.columns if frame is not None else ()
        self.declare(sorted({column.series for column in columns}, key=attrgetter("id")))
        batch, self._next = self._next, Batch()
        if frame is not None:
            self._add_frame(batch, frame)
        if since is not None:
            now = outcome.now
            batch.add(schema.ADD_CLOCK_EVENT, [(now.attempt, now.step, since, now.time)])
        batch.add(schema.ADD_CHANGE, [change_row(found) for found in outcome.changes])
        batch.add(schema.PUT_INCIDENT, [incident_row(found) for found in outcome.incidents if self._changed(found)])
        batch.add(schema.PUT_CAPTURE, [_capture_row(note, outcome.now.step) for note in captures])
        self._add_notices(batch, notices)
        _add_accepted(batch, accepted)
        if state is not None:
            self._add_state(batch, state)
        return self._write(batch)

    def _write(self, batch: Batch, *, patient: bool = False) -> str | None:
        problem = self._backlog.write(batch, patient=patient)
        if not self.behind:
            self._buffered_notices.clear()
        return problem

    def _add_frame(self, batch: Batch, frame: Frame) -> None:
        self._frame += 1
        micro_steps = frame.micro_steps
        batch.add(schema.ADD_FRAME, [(self._frame, frame.attempt, frame.step, frame.time, micro_steps)])
        for column in frame.columns:
            place = (self._frame, column.tick, column.micro_step, self._series_ids[column.series.id])
            batch.samples.append((*place, column.values.dtype.str, column.values.tobytes()))

    def _add_series(self, series: Series) -> None:
        key = (series.metric, labels_text(series.labels))
        file_id = self._known.get(key)
        if file_id is None:
            file_id = self._known[key] = len(self._known) + 1
            self._next.add(schema.ADD_SERIES, [(file_id, *key)])
        self._series_ids[series.id] = file_id

    def _changed(self, incident: Any) -> bool:
        """Only what tells one state of an incident from another is worth a row; its values move at every step."""
        state = (
            *(incident.severity, incident.count, incident.joined),
            *(incident.inhibited, incident.silenced, incident.ended, incident.ending),
        )
        if self._shown.get(incident.id) == state:
            return False
        self._shown[incident.id] = state
        if not incident.active:
            del self._shown[incident.id]
        return True

    def _add_notices(self, batch: Batch, notices: Sequence[Notice]) -> None:
        batch.add(schema.PUT_NOTICE, [notice_row(notice) for notice in notices])
        self._buffered_notices += notices

    def _add_state(self, batch: Batch, state: Mapping[str, bytes]) -> None:
        """Only what differs from what the file holds, or will hold once it is written."""
        batch.add(schema.PUT_STATE, [(key, value) for key, value in state.items() if self._state.get(key) != value])
        batch.add(schema.DROP_STATE, [(key,) for key in self._state if key not in state])
        self._state = dict(state)

    @property
    def state(self) -> Mapping[str, bytes]:
        """Where alerting stood when an earlier attempt closed its last step."""
        return self._state

    def reloaded(self, step: int, time: float, meta: Mapping[str, Any]) -> None:
        """Other rules are in force from a step on, whose frame has this time; written before it."""
        self._next.add(schema.ADD_RELOAD, [(self.attempt, step, time, dump(meta))])

    def note(self, incidents: Sequence[Incident]) -> None:
        """Incidents that no rule has, written with the next step."""
        self._next.add(schema.PUT_INCIDENT, [incident_row(found) for found in incidents])

    def keep(self, captures: Sequence[Any], step: int) -> None:
        """Notes that come after the last step, written when the recording is closed."""
        self._next.add(schema.PUT_CAPTURE, [_capture_row(note, step) for note in captures])

    # The outbox

    def put(self, notice: Notice) -> None:
        self._add_notices(self._next, [notice])

    def accepted(self, acceptance: Acceptance) -> None:
        _add_accepted(self._next, [acceptance])

    def pending(self) -> list[Untold]:
        """What not every URL has taken yet, earlier attempts included, oldest first.

        What `deliver` has delivered meanwhile is accepted here.
        """
        elsewhere = self.delivered.news()
        _add_accepted(self._next, elsewhere)
        written = untold_of(self._connection.execute(schema.PENDING), elsewhere)
        known = {untold.notice.id for untold in written} | {each.notice for each in elsewhere}
        return [*written, *(Untold(found) for found in self._buffered_notices if found.id not in known)]

    # The file

    def close(self, reason: str = "end") -> str | None:
        """End the attempt and fold the log into the file. Closing twice does no harm.

        Returns:
            What could not be written, if anything.
        """
        if os.getpid() != self._owner:
            return None  # a forked child shares the descriptors, not the run
        problem = None
        if not self.stopped:
            self._next.add(schema.END_ATTEMPT, [(time.time(), reason, self.attempt)])
            be_patient(self._connection)
            problem = self._write(self._next, patient=True)
            if len(self._backlog):
                problem = f"the file was still locked at the end; its last {len(self._backlog) - 1} steps are lost"
            self._backlog.stopped = "closed"
        if self._upkeep.close(CLOSE_SECONDS):
            self._connection.close()
        self._lock.release()
        return problem or self._upkeep.problem or None


def _locked_for_us(path: Path) -> Lock:
    """Two processes in one file would count each other's steps as their own."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise cannot_record(path, error) from None
    lock = Lock(path.with_suffix(".lock"))
    holder = lock.take()
    if holder is not None:
        help_ = "give each run an `output` of its own, and each rank its number (RANK_ID)"
        raise refuse(f"{path.as_posix()} is being written by {holder}", help_)
    return lock


def _add_accepted(batch: Batch, accepted: Sequence[Acceptance]) -> None:
    batch.add(schema.ADD_ACCEPTANCE, [(each.notice, each.target, each.time) for each in accepted])
    batch.add(schema.ACCEPT_NOTICE, [(each.time, each.notice) for each in accepted if each.whole])


def _capture_row(note: Any, step: int) -> tuple[str, int, str]:
    return (str(note.folder), step, dump(note))
