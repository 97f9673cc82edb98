"""A recorded run, read back: what the training saw and what healthwatch said."""

from __future__ import annotations

import json
import math
import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any

import numpy as np

from healthwatch.alerting.model import Incident, Notice, Transition, Untold
from healthwatch.recording import schema
from healthwatch.recording.codec import change_of, incident_of, notice_of, untold_of
from healthwatch.recording.delivered import Delivered
from healthwatch.recording.file import open_for_reading, refuse
from healthwatch.stream import Frame, Series, SeriesTable

FRAMES = """
SELECT f.id, f.attempt, f.step, f.time, f.micro_steps, s.micro_step, s.series, s.dtype, s.data
FROM frames f LEFT JOIN samples s ON s.frame = f.id
WHERE f.id > ? AND f.id <= ? ORDER BY f.id, s.rowid
"""


@dataclass(frozen=True, slots=True)
class Attempt:
    """One start of the run; `ended` is None while it runs and where it was killed."""

    number: int
    started: float
    ended: float | None
    reason: str | None
    meta: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Reload:
    """Other rules within an attempt: `step` is the first one that they judged, `time` that of its frame."""

    attempt: int
    step: int
    time: float
    meta: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Delivery:
    """A row of the outbox."""

    notice: Notice
    accepted: float | None


class Run:
    """A run file opened for reading; the training may still write it."""

    def __init__(self, path: Path, connection: sqlite3.Connection) -> None:
        self.path, self._connection = path, connection

    @classmethod
    def open(cls, path: Path | str) -> Run:
        """A run file, or a folder with run files: then the one of the lowest rank.

        Raises:
            Invalid: there is none, or it can't be read.
        """
        path = Path(path)
        if path.is_dir():
            found = sorted(path.glob("rank_*.sqlite"), key=lambda file: (len(file.name), file.name))
            if not found:
                raise refuse(f"{path.as_posix()} holds no recorded run (rank_<r>.sqlite)")
            path = found[0]
        return cls(path, open_for_reading(path))

    # Samples

    def frames(self, table: SeriesTable | None = None, after: int = 0) -> Iterator[Frame]:
        """Every frame in the order in which it was closed, closed again, with the dtypes that were recorded.

        Args:
            table: where its series are registered; `run.table` unless given.
            after: the number of frames to leave out at the start.
        """
        last = self._last_frame()  # asked first: a running training adds series and frames meanwhile
        series = self._register(self.table if table is None else table)
        rows = self._connection.execute(FRAMES, (after, last))
        for _, group in groupby(rows, key=itemgetter(0)):
            yield _frame(list(group), series)

    def before(self, step: int, reach: int, table: SeriesTable | None = None) -> Iterator[Frame]:
        """The frames that fill the windows of a run that goes on with `step`, or goes back to it.

        At least `reach` frames and `reach` steps of what counts, however often the run has gone back: a frame that
        counts comes after every frame of a lower step.
        """
        ids = "SELECT coalesce(max(id), 0) FROM frames WHERE step < ?"
        last, low = (int(self._connection.execute(ids, (end,)).fetchone()[0]) for end in (step, step - reach))
        return self.frames(table, after=max(0, min(low, last - reach)))

    def last_step(self) -> int:
        """Of the last frame; 0 without any."""
        found = self._connection.execute("SELECT step FROM frames ORDER BY id DESC LIMIT 1").fetchone()
        return 0 if found is None else int(found[0])

    def _last_frame(self) -> int:
        return int(self._connection.execute("SELECT coalesce(max(id), 0) FROM frames").fetchone()[0])

    @cached_property
    def table(self) -> SeriesTable:
        return SeriesTable()

    def _register(self, table: SeriesTable) -> dict[int, Series]:
        rows = self._connection.execute("SELECT id, metric, labels FROM series ORDER BY id")
        return {
            id_: table.register(metric, [dict(labels) for labels in json.loads(text)]) for id_, metric, text in rows
        }

    def label_names(self) -> set[str]:
        """Of every series that was recorded."""
        rows = self._connection.execute("SELECT labels FROM series")
        return {name for (text,) in rows for labels in json.loads(text) for name, _ in labels}

    @property
    def steps(self) -> tuple[int, int] | None:
        """The first and the last step with a frame."""
        first, last = self._connection.execute("SELECT min(step), max(step) FROM frames").fetchone()
        return None if first is None else (first, last)

    # What was said

    def clock_events(self) -> dict[tuple[int, int, float], list[float]]:
        """When rules on the wall clock were evaluated, by (attempt, step, time) of the frame before."""
        found: dict[tuple[int, int, float], list[float]] = {}
        rows = "SELECT attempt, step, since, time FROM clock_events ORDER BY id"
        for attempt, step, since, time in self._connection.execute(rows) if self._has("clock_events") else ():
            found.setdefault((attempt, step, since), []).append(time)
        return found

    def reloads(self) -> list[Reload]:
        """When other rules came into force within an attempt, in order."""
        rows = "SELECT attempt, step, time, meta FROM reloads ORDER BY id"
        found = self._connection.execute(rows) if self._has("reloads") else ()
        return [Reload(attempt, step, time, json.loads(meta)) for attempt, step, time, meta in found]

    def frames_before(self, attempt: int, reload: Reload | None = None) -> int:
        """How many frames come before the first one of an attempt, or before the first one after a reload within it."""
        ids = "SELECT min(id) FROM frames WHERE attempt = :attempt AND step = :step AND time = :time"
        later = "SELECT min(id) FROM frames WHERE attempt > :attempt OR (attempt = :attempt AND time >= :time)"
        place = {
            "attempt": attempt,
            "step": 0 if reload is None else reload.step,
            "time": -math.inf if reload is None else reload.time,
        }
        for query in (ids, later):  # the frame itself may have been lost
            (found,) = self._connection.execute(query, place).fetchone()
            if found is not None:
                return int(self._connection.execute("SELECT count(*) FROM frames WHERE id < ?", (found,)).fetchone()[0])
        return int(self._connection.execute("SELECT count(*) FROM frames").fetchone()[0])

    def _has(self, table: str) -> bool:
        named = "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ?"
        return self._connection.execute(named, (table,)).fetchone() is not None

    def transitions(self) -> list[Transition]:
        rows = self._connection.execute(
            "SELECT attempt, step, time, clock, rule, before, after, reason, alerts FROM changes ORDER BY id"
        )
        return [transition for row in rows for transition in change_of(row)]

    def incidents(self) -> list[Incident]:
        """As they stood last, in the order in which they opened."""
        rows = self._connection.execute("SELECT incident FROM incidents")
        found = [incident_of(text) for (text,) in rows]
        return sorted(found, key=lambda incident: (incident.opened.attempt, incident.opened.step, incident.id))

    def captures(self) -> list[dict[str, Any]]:
        rows = self._connection.execute("SELECT capture FROM captures ORDER BY step, folder")
        return [json.loads(text) for (text,) in rows]

    def outbox(self) -> list[Delivery]:
        """Accepted by every URL, whoever sent it: the run, or `deliver`."""
        elsewhere = {each.notice: each.time for each in Delivered(self.path).news() if each.whole}
        rows = self._connection.execute("SELECT id, notice, accepted FROM outbox ORDER BY rowid")
        return [
            Delivery(notice_of(text), accepted if accepted is not None else elsewhere.get(id_))
            for id_, text, accepted in rows
        ]

    def pending(self) -> list[Untold]:
        """Notices that not every URL of their receiver has taken, neither from the run nor from `deliver`."""
        return untold_of(self._connection.execute(schema.PENDING), Delivered(self.path).news())

    def acceptances(self) -> dict[str, dict[int, float]]:
        """By notice: which URL of its receiver (from 1) took it when, from the run or from `deliver`."""
        found: dict[str, dict[int, float]] = {}
        for notice, target, time in self._connection.execute("SELECT notice, target, time FROM acceptances"):
            found.setdefault(notice, {})[target] = time
        for each in Delivered(self.path).news():
            found.setdefault(each.notice, {}).setdefault(each.target, each.time)
        return found

    def state(self) -> dict[str, bytes]:
        """Where alerting stood at the last step, as `recording.state` reads it."""
        return {key: bytes(value) for key, value in self._connection.execute("SELECT key, value FROM state")}

    @property
    def thinned(self) -> int:
        """How many old frames were given up because of `record.max_size`."""
        row = self._connection.execute("SELECT value FROM meta WHERE key = 'thinned'").fetchone()
        return int(row[0]) if row else 0

    def attempts(self) -> list[Attempt]:
        rows = self._connection.execute("SELECT attempt, started, ended, reason, meta FROM attempts ORDER BY attempt")
        return [
            Attempt(number, started, ended, reason, json.loads(meta)) for number, started, ended, reason, meta in rows
        ]

    @property
    def meta(self) -> dict[str, Any]:
        """Of the last attempt: run, rank, config digest, rules as loaded."""
        attempts = self.attempts()
        return attempts[-1].meta if attempts else {}

    def close(self) -> None:
        self._connection.close()

    def __enter__(self) -> Run:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _frame(rows: list[tuple[Any, ...]], series: dict[int, Series]) -> Frame:
    _, attempt, step, time, micro_steps = rows[0][:5]
    frame = Frame(step, attempt, time)
    for *_, micro_step, id_, dtype, data in rows:
        if id_ is not None:
            frame.add(series[id_], np.frombuffer(data, dtype=dtype), micro_step)
    frame.close(micro_steps)
    return frame
