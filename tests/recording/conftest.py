from __future__ import annotations

from collections.abc import Callable

import pytest

from healthwatch.alerting.model import Notice, Now
from healthwatch.engine import Outcome
from healthwatch.recording import Recording
from healthwatch.stream import SeriesTable
from healthwatch.stream.frame import Frame


@pytest.fixture
def table() -> SeriesTable:
    return SeriesTable()


@pytest.fixture
def commit(table) -> Callable[..., str | None]:
    """Record a step with one sample, `loss` equal to the step."""

    def one(recording: Recording, step: int, **more) -> str | None:
        frame = Frame(step, recording.attempt, 100.0 + step)
        frame.add(table.register("loss", [{}]), [float(step)])
        frame.close()
        return recording.commit(frame, Outcome(Now(step, frame.time, frame.attempt)), **more)

    return one


@pytest.fixture
def notice() -> Callable[[str], Notice]:
    def of(name: str) -> Notice:
        return Notice(name, "oncall", "opened", "critical", f"title of {name}", "body", ("A@1",), Now(1, 101.0))

    return of
