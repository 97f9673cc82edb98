"""What a capture is, for the message, the record and the engineer who opens its folder."""

from __future__ import annotations

import json
import os
import re
import threading
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal, TypeAlias

from healthwatch.actions.captures.trace import TraceCheck
from healthwatch.alerting.model import Incident, Now, Sample
from healthwatch.config import ProfilerSection
from healthwatch.recording.codec import dump

MANIFEST = "manifest.json"
KEPT_SAMPLES = 20  # of an incident's firing series

Kind: TypeAlias = Literal["incident", "request", "reference", "window"]
"""Who asked: an incident, a person, the config's `reference_at`, or its static window."""
Stage: TypeAlias = Literal["armed", "recording", "finishing", "finished", "failed", "cancelled", "refused"]


@dataclass(frozen=True, slots=True)
class CaptureNote:
    """Where a capture is or will be: `trace` once it is whole, `refused` where there will be none.

    `incidents` are the ids of the one that asked, if it was one, and of those that joined.
    """

    incidents: tuple[str, ...]
    folder: Path
    first_step: int
    last_step: int
    state: Stage
    trace: Path | None = None
    refused: str | None = None
    kind: Kind = "incident"


@dataclass(slots=True)
class Capture:
    """One capture from the request to the check of its trace.

    `name` is what it is called; `folder` holds manifest and summary, `records` what the profiler writes.
    """

    kind: Kind
    name: str
    folder: Path
    records: Path
    steps: int
    armed: Now
    incident: Incident | None = None
    joined: list[tuple[Incident, Now]] = field(default_factory=list)
    stage: Stage = "armed"
    quiet: bool = True  # nothing fired while it was recorded
    remark: str | None = None
    first_step: int = 0
    boundaries: list[float] = field(default_factory=list)  # unix seconds: begin of the window, end of each step
    stop_seconds: float | None = None
    trace: Path | None = None
    check: TraceCheck | None = None
    size: int = 0  # bytes that it has written
    problem: str | None = None

    @property
    def recorded(self) -> int:
        """Steps that ended inside the window."""
        return max(len(self.boundaries) - 1, 0)

    @property
    def healthy(self) -> bool:
        """Whether others may be compared with it, also where its analysis outlives the run."""
        recorded = self.stage in ("finishing", "finished")
        return self.kind == "reference" and recorded and self.quiet and not self.joined

    @property
    def asked_by(self) -> tuple[tuple[Incident, Now], ...]:
        """Every incident that has a part in it, and when it asked."""
        first = () if self.incident is None else ((self.incident, self.armed),)
        return (*first, *self.joined)

    def note(self) -> CaptureNote:
        steps = self.recorded if self.stage in ("finishing", "finished") else self.steps
        ended = self.stage in ("failed", "cancelled")
        return CaptureNote(
            incidents=tuple(incident.id for incident, _ in self.asked_by),
            folder=self.folder,
            first_step=self.first_step,
            last_step=self.first_step + max(steps, 1) - 1,
            state=self.stage,
            trace=self.trace if self.stage == "finished" else None,
            refused=self.problem if ended else None,
            kind=self.kind,
        )


def refused(kind: Kind, incident: Incident | None, folder: Path, now: Now, reason: str) -> CaptureNote:
    ids = () if incident is None else (incident.id,)
    return CaptureNote(ids, folder, now.step, now.step, "refused", refused=reason, kind=kind)


def folder_name(name: str) -> str:
    """A name with `-` for every character that a profiler might not accept in a path."""
    return re.sub(r"[^\w.-]", "-", name, flags=re.ASCII)


def write_manifest(capture: Capture, section: ProfilerSection, meta: Mapping[str, Any]) -> None:
    write_json(capture.folder / MANIFEST, _manifest(capture, section, meta))


def write_json(path: Path, data: object) -> None:
    """Write so that a reader finds the old file or the new one, never half of it."""
    text = json.dumps(json.loads(dump(data)), ensure_ascii=False, indent=2)
    write_whole(path, text + "\n")


def write_whole(path: Path, text: str) -> None:
    half = path.with_name(f"{path.name}.{os.getpid()}-{threading.get_ident()}.tmp")  # others may write it as well
    try:
        half.write_text(text, encoding="utf-8")
        half.replace(path)
    except OSError:
        half.unlink(missing_ok=True)
        raise


def _manifest(capture: Capture, section: ProfilerSection, meta: Mapping[str, Any]) -> dict[str, Any]:
    note = capture.note()
    return {
        **meta,
        "kind": capture.kind,
        "name": capture.name,
        "state": capture.stage,
        "problem": capture.problem,
        "remark": capture.remark,
        "healthy": capture.healthy,
        "asked": _moment(capture.armed),
        "incident": None if capture.incident is None else _incident(capture.incident, capture.armed),
        "joined": [_incident(incident, now) for incident, now in capture.joined],
        "steps": {"first": note.first_step, "last": note.last_step, "recorded": capture.recorded},
        "boundaries": capture.boundaries,
        "stop_seconds": capture.stop_seconds,
        "records": _relative(capture.records, capture.folder),
        "trace": capture.trace and _relative(capture.trace, capture.folder),
        "check": capture.check and asdict(capture.check),
        "size": capture.size,
        "settings": asdict(section),
    }


def _relative(path: Path, folder: Path) -> Path:
    """Where a capture can be moved as a whole, its trace is found again; that of a static window lies elsewhere."""
    return path.relative_to(folder) if path.is_relative_to(folder) else path.absolute()


def _incident(incident: Incident, now: Now) -> dict[str, Any]:
    worst = incident.firing[0] if incident.firing else None
    return {
        "id": incident.id,
        "rule": incident.rule,
        "severity": incident.severity,
        "asked": _moment(now),
        "since": incident.since.step,
        "since_time": incident.since.time,
        "opened": incident.opened.step,
        "micro_step": incident.micro_step,
        "labels": dict(worst.labels) if worst else {},
        "value": worst.value if worst else None,
        "measured": worst.now if worst else None,
        "before": worst.baseline if worst else None,
        "firing": _samples(incident.firing),
        "details": _samples(incident.details),
        "count": incident.count,
    }


def _moment(now: Now) -> dict[str, Any]:
    return {"step": now.step, "time": now.time, "attempt": now.attempt}


def _samples(samples: tuple[Sample, ...]) -> list[dict[str, Any]]:
    return [
        {"labels": dict(each.labels), "value": each.value, "measured": each.now, "before": each.baseline}
        for each in samples[:KEPT_SAMPLES]
    ]
