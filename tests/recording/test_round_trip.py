"""Whatever goes into the file comes out again, bit by bit."""

from __future__ import annotations

import json
import math
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from healthwatch.alerting.model import Incident, Notice, Now, Phase, Sample, Transition, Transitions
from healthwatch.engine import Outcome
from healthwatch.recording import Recording, Run
from healthwatch.stream import Frame, SeriesTable

DTYPES = ("<f2", "<f4", "<f8", "i1", "u1", "<i4", "<i8", "<u8", ">f4")

names = st.text(st.characters(exclude_categories=("Cs",), exclude_characters="\0"), min_size=1, max_size=8)
floats = st.floats(allow_nan=True, allow_infinity=True)
nows = st.builds(Now, st.integers(1, 10**9), st.floats(0, 4e9), st.integers(1, 99), st.floats(0, 1e9, allow_nan=False))
label_sets = st.dictionaries(names.filter(lambda name: name != "__name__"), names, max_size=3).map(
    lambda labels: tuple(sorted(labels.items()))
)
samples = st.builds(Sample, label_sets, floats)


@st.composite
def frames(draw: st.DrawFn) -> list[tuple[str, list[dict[str, str]], list[tuple[int | None, np.ndarray]]]]:
    """Metrics with their label sets and, for some ticks of a step, values of some dtype."""
    metrics = []
    for metric in draw(st.lists(names, min_size=0, max_size=4, unique=True)):
        width = draw(st.integers(1, 5))
        columns = []
        for micro_step in draw(st.lists(st.sampled_from([None, 0, 1, 2]), max_size=3, unique=True)):
            dtype = np.dtype(draw(st.sampled_from(DTYPES)))
            raw = draw(st.binary(min_size=width * dtype.itemsize, max_size=width * dtype.itemsize))
            columns.append((micro_step, np.frombuffer(raw, dtype)))
        metrics.append((metric, [{"part": str(place)} for place in range(width)], columns))
    return metrics


@settings(max_examples=60, deadline=None)
@given(st.lists(frames(), min_size=1, max_size=4))
def test_frames_come_back_with_their_ticks_dtypes_and_bits(steps):
    with tempfile.TemporaryDirectory() as folder:
        recording, table = Recording.create(Path(folder) / "rank_0.sqlite", {}), SeriesTable()
        written = []
        for step, metrics in enumerate(steps, start=1):
            frame = Frame(step, recording.attempt, 1000.5 + step)
            for metric, labels, columns in metrics:
                for micro_step, values in columns:
                    frame.add(table.register(metric, labels), values, micro_step)
            frame.close()
            assert recording.commit(frame, Outcome(Now(step, frame.time))) is None
            written.append(frame)
        recording.close()
        with Run.open(folder) as run:
            read = list(run.frames())
    assert len(read) == len(written)
    for before, after in zip(written, read, strict=True):
        assert (before.step, before.attempt, before.time, before.micro_steps) == (
            *(after.step, after.attempt, after.time, after.micro_steps),
        )
        assert [_facts(column) for column in before.columns] == [_facts(column) for column in after.columns]


def _facts(column):
    series = column.series
    place = (column.tick, column.micro_step, series.metric, series.labels)
    return (*place, column.values.dtype.str, column.values.tobytes())


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_what_was_said_comes_back(data):
    changes = data.draw(st.lists(_changes(), max_size=5))
    incidents = data.draw(st.lists(_incidents(), max_size=3, unique_by=lambda one: one.id))
    notices = data.draw(st.lists(_notices(), max_size=3, unique_by=lambda one: one.id))
    with tempfile.TemporaryDirectory() as folder:
        recording = Recording.create(Path(folder) / "rank_0.sqlite", {})
        frame = Frame(1, 1, 5.0)
        frame.close()
        outcome = Outcome(Now(1, 5.0), tuple(changes), tuple(incidents))
        recording.commit(frame, outcome, notices=notices)
        recording.close()
        with Run.open(folder) as run:
            # repr, because NaN is not equal to itself
            assert list(map(repr, run.transitions())) == list(map(repr, outcome.transitions))
            assert len(outcome.transitions) == sum(map(len, changes))
            assert list(_rows(run.path)) == list(map(repr, outcome.transitions)), "the same for whoever asks in SQL"
            assert sorted(map(repr, run.incidents())) == sorted(map(repr, incidents))
            assert [repr(row.notice) for row in run.outbox()] == list(map(repr, notices))


@st.composite
def _changes(draw: st.DrawFn) -> Transitions:
    alerts = draw(st.lists(st.tuples(label_sets, st.none() | st.integers(1, 64), floats), min_size=1, max_size=5))
    reason = draw(st.sampled_from(["breach", "fired", "clear", "resolved", "expired", "rewound"]))
    phases = draw(st.sampled_from(Phase)), draw(st.sampled_from(Phase))
    return Transitions(draw(names), *phases, reason, draw(nows), *map(list, zip(*alerts, strict=True)))


def _rows(path: Path) -> Iterator[str]:
    with closing(sqlite3.connect(path)) as connection:
        for attempt, step, time, clock, rule, labels, before, after, reason, micro_step, value in connection.execute(
            "SELECT attempt, step, time, clock, rule, labels, before, after, reason, micro_step, value"
            " FROM transitions ORDER BY id"
        ):
            named = tuple((name, text) for name, text in json.loads(labels))
            now = Now(step, time, attempt, clock)
            yield repr(Transition(rule, named, Phase(before), Phase(after), reason, now, micro_step, float(value)))


@st.composite
def _incidents(draw: st.DrawFn) -> Incident:
    opened = draw(nows)
    incident = Incident(
        id=draw(names),
        rule=draw(names),
        severity=draw(st.sampled_from(["info", "warning", "critical"])),
        opened=opened,
        since=draw(nows),
        micro_step=draw(st.none() | st.integers(1, 8)),
        firing=tuple(draw(st.lists(samples, max_size=3))),
        count=draw(st.integers(0, 10**6)),
        joined=draw(st.integers(1, 10**6)),
        details=tuple(draw(st.lists(samples, max_size=2))),
    )
    if draw(st.booleans()):
        return replace(incident, ended=draw(nows), ending=draw(st.sampled_from(["resolved", "expired"])))
    return incident


def _notices() -> st.SearchStrategy[Notice]:
    return st.builds(
        Notice,
        *(names, names, st.sampled_from(["opened", "joined", "severity", "repeat", "resolved"])),
        *(st.sampled_from(["warning", "critical"]), names, names),
        *(st.lists(names, max_size=3).map(tuple), nows),
        st.dictionaries(names, st.integers() | names | st.none(), max_size=2),
    )


def test_a_value_that_is_not_finite_is_told_from_a_missing_one(tmp_path):
    recording, table = Recording.create(tmp_path / "rank_0.sqlite", {}), SeriesTable()
    frame = Frame(1)
    frame.add(table.register("loss", [{"split": "train"}, {"split": "val"}]), [math.nan, -math.inf])
    frame.close()
    recording.commit(frame, Outcome(Now(1, 0.0)))
    recording.close()
    with Run.open(tmp_path) as run:
        (column,) = next(run.frames()).columns
    assert np.isnan(column.values[0])
    assert column.values[1] == -math.inf


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(1, 12), min_size=1, max_size=30), st.integers(1, 12), st.integers(1, 8))
def test_what_fills_the_windows_holds_every_frame_that_counts(steps, step, reach):
    """However often the run went back: each step counts as it was run last, if none before it has come again since."""
    with tempfile.TemporaryDirectory() as folder:
        recording = Recording.create(Path(folder) / "rank_0.sqlite", {})
        for number, each in enumerate(steps):
            frame = Frame(each, 1, float(number))
            frame.close()
            recording.commit(frame, Outcome(Now(each, float(number))))
        recording.close()
        with Run.open(folder) as run:
            found = [(frame.step, frame.time) for frame in run.before(step, reach)]
    counting: list[tuple[int, float]] = []
    for number, each in enumerate(steps):
        counting = [*((earlier, time) for earlier, time in counting if earlier < each), (each, float(number))]
    wanted = [(each, time) for each, time in counting if step - reach <= each < step]
    assert set(wanted) <= set(found)
