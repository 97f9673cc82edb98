"""What runs have left in their outboxes, sent by somebody else: after a crash, or from a node that has a network."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from healthwatch.actions.notify import Delivery
from healthwatch.alerting.model import Untold
from healthwatch.config import Receiver
from healthwatch.diagnostics import Invalid
from healthwatch.recording import Run
from healthwatch.recording.delivered import Delivered

PATIENCE = 30.0  # seconds for which a run that may be alive is left to send a notice itself


class Leftovers:
    """Sends what the run files in a folder hold; the run files are only read.

    `sent` counts notices that every URL has accepted, `unknown` those of receivers that the config does not have.
    """

    def __init__(self, place: Path, receivers: Mapping[str, Receiver], patience: float = PATIENCE) -> None:
        self.delivery = Delivery(receivers)
        self.sent = self.unknown = self.young = 0
        self.unreadable: dict[Path, str] = {}  # files that could not be read at the last sweep, and why
        self._place, self._receivers, self._patience = place, receivers, patience
        self._files: list[Path] = []  # only appended to: a file's number stands in the ids of its notices

    def _look(self) -> None:
        found = sorted(self._place.glob("**/rank_*.sqlite")) if self._place.is_dir() else [self._place]
        self._files += [file for file in found if file not in self._files]

    def sweep(self) -> None:
        """Queue what is due, and write down what has been accepted."""
        self.unknown = self.young = 0
        self.unreadable.clear()
        self._look()
        for number, file in enumerate(self._files):
            try:
                with Run.open(file) as run:
                    found, attempts = run.pending(), run.attempts()
            except (Invalid, sqlite3.Error, OSError) as error:  # one that is being made, or is none of ours
                self.unreadable[file] = str(error)
                continue
            over = bool(attempts) and attempts[-1].ended is not None
            self.delivery.resume(_named(each, number) for each in self._due(found, over=over))
        self.settle()

    def _due(self, found: list[Untold], *, over: bool) -> Iterator[Untold]:
        for each in found:
            if each.notice.receiver not in self._receivers:
                self.unknown += 1
            elif not over and time.time() - each.notice.now.time < self._patience:
                self.young += 1
            else:
                yield each

    def settle(self) -> None:
        for acceptance in self.delivery.drain():
            number, _, notice = acceptance.notice.partition(" ")
            Delivered(self._files[int(number)]).add(replace(acceptance, notice=notice))
            self.sent += acceptance.whole

    @property
    def waiting(self) -> int:
        return sum(lane.waiting for lane in self.delivery.state())

    @property
    def hopeless(self) -> bool:
        """Whether everything that waits does so behind a URL that fails."""
        return all(lane.failing for lane in self.delivery.state() if lane.waiting)


def _named(untold: Untold, number: int) -> Untold:
    """Two ranks may have the same news under the same id."""
    return replace(untold, notice=replace(untold.notice, id=f"{number} {untold.notice.id}"))
