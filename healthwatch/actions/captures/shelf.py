"""The captures that lie in a folder, read back: those of earlier attempts, of other processes, of runs long over."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from healthwatch.actions.captures.manifest import MANIFEST, CaptureNote, write_json
from healthwatch.actions.captures.trace import Breakdown, breakdown_of

OPERATORS = "operators.json"
ENDED = ("finished", "failed", "cancelled", "refused")


@dataclass(frozen=True, slots=True)
class Stored:
    """One capture as its manifest has it."""

    folder: Path
    manifest: dict[str, Any]

    @property
    def run(self) -> str:
        return str(self.manifest.get("run"))

    @property
    def kind(self) -> str:
        return str(self.manifest.get("kind", "incident"))

    @property
    def state(self) -> str:
        return str(self.manifest["state"])

    @property
    def over(self) -> bool:
        return self.state in ENDED

    @property
    def incidents(self) -> tuple[str, ...]:
        first = self.manifest.get("incident")
        return tuple(each["id"] for each in ([first] if first else []) + self.manifest["joined"])

    @property
    def boundaries(self) -> list[float]:
        return list(self.manifest["boundaries"])

    @property
    def recorded(self) -> int:
        return int(self.manifest["steps"]["recorded"])

    @property
    def steps(self) -> tuple[int, int]:
        return int(self.manifest["steps"]["first"]), int(self.manifest["steps"]["last"])

    @property
    def trace(self) -> Path | None:
        """Once it is whole."""
        trace = self.manifest.get("trace")
        return self.folder / trace if trace and self.state == "finished" else None

    @property
    def records(self) -> Path:
        """Where the profiler has written."""
        return self.folder / str(self.manifest.get("records") or ".")

    @property
    def size(self) -> int:
        return int(self.manifest.get("size") or 0)

    @property
    def healthy(self) -> bool:
        """Whether it can be what others are compared with, once it is analysed: nothing fired while it was taken."""
        return bool(self.manifest.get("healthy")) and self.state in ("finishing", "finished")

    @property
    def note(self) -> CaptureNote:
        first, last = self.steps
        problem = None if self.state == "finished" else self.manifest.get("problem")
        return CaptureNote(
            self.incidents, self.folder, first, last, self.manifest["state"], self.trace, problem, self.manifest["kind"]
        )

    def breakdown(self) -> Breakdown | None:
        """None where there is none, or it can't be read."""
        try:
            return breakdown_of(json.loads((self.folder / OPERATORS).read_text("utf-8")))
        except (OSError, ValueError, LookupError, TypeError):
            return None

    def amend(self, **changes: Any) -> Stored:
        """With some fields of the manifest written anew. Raises OSError."""
        changed = Stored(self.folder, {**self.manifest, **changes})
        write_json(self.folder / MANIFEST, changed.manifest)
        return changed


def stored(folder: Path) -> Stored | None:
    """The capture of a folder; None where there is no manifest of one."""
    try:
        manifest = json.loads((folder / MANIFEST).read_text("utf-8"))
        found = Stored(folder, manifest)
        _ = found.state, found.incidents, found.boundaries, found.recorded, found.steps, found.size, _begin(found)
    except (OSError, ValueError, LookupError, TypeError, AttributeError):
        return None
    return found


def shelf(folder: Path) -> list[Stored]:
    """Every capture below a rank's folder, in the order in which they began."""
    each = (stored(path.parent) for path in folder.glob(f"*/{MANIFEST}"))
    return sorted((one for one in each if one is not None), key=_begin)


def _begin(one: Stored) -> tuple[float, str]:
    asked = one.manifest.get("asked") or (one.manifest.get("incident") or {}).get("asked") or {}
    return next(iter(one.boundaries), float(asked.get("time", 0.0))), one.folder.name


def healthy_reference(captures: Iterable[Stored], before: float) -> tuple[Stored, bool] | None:
    """The last healthy reference that was over by then, or the last one at all, and whether it was over by then.

    `before` is unix seconds: since when what is compared with it has been wrong.
    """
    healthy = [one for one in captures if one.healthy and one.breakdown() is not None]
    early = [one for one in healthy if one.boundaries and one.boundaries[-1] <= before]
    if early:
        return early[-1], True
    return (healthy[-1], False) if healthy else None


def wrong_since(manifest: dict[str, Any]) -> float:
    """Unix seconds of the first breach of any incident behind a capture; where there is none, of its begin."""
    first = manifest.get("incident")
    incidents: Sequence[dict[str, Any]] = ([first] if first else []) + manifest["joined"]
    since = [each["since_time"] for each in incidents if isinstance(each.get("since_time"), (int, float))]
    begin = manifest["boundaries"][:1]
    return float(min([*since, *begin], default=0.0))
