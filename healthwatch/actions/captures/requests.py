"""What people ask of a running training: files in `<output>/control/captures/`, put there whole and never changed.

Every rank of a run reads them, so that nobody takes one away; each process remembers what it has seen.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

_COARSE = 2 * 10**9  # nanoseconds: within these, a second file need not change a folder's time


@dataclass(frozen=True, slots=True)
class Request:
    """A profile of the next `steps` steps on some ranks; `time` is when it was asked for, unix seconds."""

    steps: int
    ranks: tuple[int, ...]
    time: float


def folder_of(output: Path) -> Path:
    return output / "control" / "captures"


def put(output: Path, steps: int, ranks: Iterable[int]) -> Path:
    """Ask the run that records into `output`; picked up when the step under way ends."""
    folder = folder_of(output)
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{time.time_ns()}-{os.getpid()}.json"
    half = path.with_suffix(".tmp")
    half.write_text(json.dumps({"steps": steps, "ranks": list(ranks)}) + "\n", encoding="utf-8")
    half.replace(path)
    return path


class Requests:
    """What is asked of one rank from `since` (unix seconds) on, each request once."""

    def __init__(self, output: Path, rank: int, since: float) -> None:
        self._folder, self._rank, self._since = folder_of(output), rank, since
        self._seen: set[str] = set()
        self._looked_at = -1  # the folder's time when it was last read, if nothing can have slipped in since

    def poll(self) -> list[Request]:
        """New requests, oldest first. Where there are none it costs a look at the folder's time."""
        try:
            changed = self._folder.stat().st_mtime_ns
        except OSError:
            return []
        if changed == self._looked_at:
            return []
        self._looked_at = changed if time.time_ns() - changed > _COARSE else -1
        new = sorted({path.name for path in self._folder.glob("*.json")} - self._seen)
        self._seen.update(new)
        found = [_read(self._folder / name) for name in new]
        return [one for one in found if one is not None and self._rank in one.ranks and one.time >= self._since]


def _read(path: Path) -> Request | None:
    """None for what is no request."""
    try:
        data = json.loads(path.read_text("utf-8"))
        request = Request(int(data["steps"]), tuple(map(int, data["ranks"])), int(path.name.partition("-")[0]) / 1e9)
    except (OSError, ValueError, LookupError, TypeError):
        return None
    return request if request.steps > 0 else None
