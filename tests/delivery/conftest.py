from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest
from receiving import Inbox

from healthwatch import pictures
from healthwatch.actions.notify import Delivery, Pace
from healthwatch.session import pipeline


@pytest.fixture
def quick(monkeypatch):
    """Messages don't keep their usual distance of a second, and have no pictures."""
    pace = Pace(interval=0.0, first=0.05, longest=0.2, after_429=0.3, connect=2.0, read=2.0)
    monkeypatch.setattr(pipeline, "Delivery", partial(Delivery, pace=pace))
    monkeypatch.setattr(pictures, "find_spec", lambda _: None)


@pytest.fixture
def inbox() -> Iterator[Inbox]:
    server = Inbox()
    yield server
    server.shutdown()
    server.server_close()


@pytest.fixture
def second_inbox() -> Iterator[Inbox]:
    server = Inbox()
    yield server
    server.shutdown()
    server.server_close()


@pytest.fixture
def subprocess_holding():
    """Another process that holds a lock file while the block runs; gives its number."""

    @contextmanager
    def hold(path: Path) -> Iterator[int]:
        program = "import sys, pathlib; from healthwatch.recording.lock import Lock"
        program += "; l = Lock(pathlib.Path(sys.argv[1])); print(l.take(), flush=True); sys.stdin.read()"
        with subprocess.Popen(
            [sys.executable, "-c", program, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        ) as process:
            assert process.stdout is not None
            assert process.stdout.readline() == "None\n"
            yield process.pid
            assert process.stdin is not None
            process.stdin.close()

    return hold
