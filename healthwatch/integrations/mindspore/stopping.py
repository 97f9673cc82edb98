"""A training that its rules stop ends as its trainer ends one, where it can."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from healthwatch.integrations.mindspore.ranks import ranks
from healthwatch.session import Session, TrainingStopped


@contextmanager
def ending_by(session: Session, end: Callable[[], None]) -> Iterator[None]:
    """Around a call of `session.step`: let the trainer `end` its loop behind this step, its last callbacks included.

    One rank of several can't: the others would wait for it in their next collective operation, for ever. There the
    process ends with an exit code by which the launcher ends the whole job.
    """
    try:
        yield
    except TrainingStopped as stopped:
        if ranks() > 1:
            raise
        end()
        session.guard.say(str(stopped), logging.WARNING)
