"""What speaks against one more capture."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from healthwatch.actions.captures.manifest import Kind
from healthwatch.actions.captures.shelf import Stored
from healthwatch.alerting.model import Now
from healthwatch.config import CaptureSettings

Reason: TypeAlias = tuple[str, str]
"""The kind of a refusal, and the words for it."""


@dataclass(slots=True)
class Limits:
    """The limits of the config, and what the captures of this run have used up, earlier attempts included.

    `max_captures`, `cooldown` and `ranks` are for what incidents ask for, the disk's for all but the static window.
    """

    settings: CaptureSettings
    folder: Path
    rank: int
    free: Callable[[Path], int]
    taken: int = 0
    last_step: int | None = None
    total_size: int = 0

    def restore(self, earlier: Iterable[Stored]) -> None:
        for one in earlier:
            if one.kind == "incident" and one.boundaries:
                self.taken += 1
                self.last_step = one.steps[1]
        self.total_size = folder_size(self.folder)

    def refusal(self, kind: Kind, now: Now) -> Reason | None:
        if kind == "window":
            return None
        of_incidents = self._of_incidents(now) if kind == "incident" else None
        return of_incidents or self._of_disk()

    def _of_incidents(self, now: Now) -> Reason | None:
        limits = self.settings
        if not captures_on(limits.ranks, self.rank):
            named = ", ".join(map(str, limits.ranks))
            return "ranks", f"captures are taken on ranks {named} alone, and this is rank {self.rank}"
        if self.taken >= limits.max_captures:
            return "max_captures", f"all {limits.max_captures} captures of this run are taken"
        if self.last_step is not None:
            self.last_step = min(self.last_step, now.step - 1)  # the run may have gone back
            if now.step - self.last_step < limits.cooldown:
                return "cooldown", f"{limits.cooldown} steps must lie between two captures"
        return None

    def _of_disk(self) -> Reason | None:
        limits = self.settings
        if self.total_size >= limits.max_total_size:
            return "max_total_size", f"captures take {_gib(self.total_size)} of {_gib(limits.max_total_size)} allowed"
        free = self.free(self.folder)
        if free < limits.min_free_disk:
            return "min_free_disk", f"{_gib(free)} are free on the disk, {_gib(limits.min_free_disk)} must be"
        return None


def captures_on(ranks: Iterable[int | str], rank: int) -> bool:
    """Whether a rank captures what it sees itself. Until ranks agree with each other, that is all they see."""
    return any(each == rank or isinstance(each, str) for each in ranks)


def free_disk(folder: Path) -> int:
    """Bytes free where a folder is or will be."""
    while not folder.exists():
        folder = folder.parent
    return shutil.disk_usage(folder).free


def folder_size(folder: Path) -> int:
    """Bytes of all files below a folder; files that vanish meanwhile count nothing."""
    total = 0
    for root, _, files in os.walk(folder):
        for name in files:
            with suppress(OSError):
                total += (Path(root) / name).stat().st_size
    return total


def _gib(size: int) -> str:
    return f"{size / 2**30:.1f} GiB"
