"""`record.max_size`: old frames go, what was said stays."""

from __future__ import annotations

import sqlite3
import time

import numpy as np

from healthwatch.alerting.model import Now, Phase, Transitions
from healthwatch.engine import Outcome
from healthwatch.recording import Recording, Run, upkeep
from healthwatch.stream import Frame, SeriesTable


def test_old_frames_are_thinned_and_transitions_never(tmp_path, monkeypatch):
    monkeypatch.setattr(upkeep, "SECONDS", 0.02)
    monkeypatch.setattr(upkeep, "BETWEEN", 0.0)
    monkeypatch.setattr(upkeep, "PROTECTED", 100)
    limit = 1_500_000
    path = tmp_path / "rank_0.sqlite"
    recording = Recording.create(path, {}, max_size=limit)
    series = SeriesTable().register("norm", [{"param": str(number)} for number in range(1000)])
    for step in range(1, 801):
        frame = Frame(step, 1, float(step))
        frame.add(series, np.full(1000, step, np.float32))
        frame.close()
        now = Now(step, float(step))
        fired = Transitions("A", Phase.PENDING, Phase.FIRING, "fired", now, [()], [None], [1.0])
        recording.commit(frame, Outcome(now, (fired,) if step % 50 == 0 else ()))
    end = time.monotonic() + 20
    while time.monotonic() < end:
        with sqlite3.connect(path) as file:
            if upkeep.used(file) <= limit:
                break
        time.sleep(0.05)
    assert recording.close() is None
    with Run.open(path) as run:
        steps = [frame.step for frame in run.frames()]
        assert run.thinned == 800 - len(steps) > 0
        assert [found.now.step for found in run.transitions()] == list(range(50, 801, 50))
        assert set(range(701, 801)) <= set(steps), "what a resumed run reads stays whole"
        assert set(range(50, 801, 50)) <= set(steps), "so do steps at which something happened"
        old, new = (sum(low < step <= low + 100 for step in steps) for low in (0, 600))
        assert old <= new
        for frame in run.frames():
            assert frame.columns[0].values.tolist() == [frame.step] * 1000


def test_a_limit_that_is_too_small_is_told(tmp_path, monkeypatch):
    monkeypatch.setattr(upkeep, "SECONDS", 0.02)
    monkeypatch.setattr(upkeep, "BETWEEN", 0.0)
    recording = Recording.create(tmp_path / "rank_0.sqlite", {}, max_size=1000)
    end = time.monotonic() + 20
    while not recording._upkeep.problem and time.monotonic() < end:
        time.sleep(0.02)
    assert "record.max_size can't be kept" in (recording.close() or "")
