"""What a capture is, for the message, the record and the engineer who opens its folder."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, TypeAlias

from healthwatch.actions.captures.trace import TraceCheck
from healthwatch.alerting.model import Incident, Now, Sample
from healthwatch.config import ProfilerSection
from healthwatch.recording.codec import dump

KEPT_SAMPLES = 20  # of an incident's firing series

Stage: TypeAlias = Literal["armed", "recording", "finishing", "finished", "failed", "cancelled", "refused"]


@dataclass(frozen=True, slots=True)
class CaptureNote:
    """Where an incident's capture is or will be: `trace` once it is whole, `refused` where there will be none.

    `incidents` are the ids of the one that asked and of those that joined.
    """

    incidents: tuple[str, ...]
    folder: Path
    first_step: int
    last_step: int
    state: Stage
    trace: Path | None = None
    refused: str | None = None


@dataclass(slots=True)
class Capture:
    """One capture from the request to the check of its trace."""

    folder: Path
    incident: Incident
    steps: int
    armed: Now
    joined: list[tuple[Incident, Now]] = field(default_factory=list)
    stage: Stage = "armed"
    first_step: int = 0
    boundaries: list[float] = field(default_factory=list)  # unix seconds: begin of the window, end of each step
    stop_seconds: float | None = None
    trace: Path | None = None
    check: TraceCheck | None = None
    size: int = 0  # bytes of the whole folder
    problem: str | None = None

    @property
    def recorded(self) -> int:
        """Steps that ended inside the window."""
        return max(len(self.boundaries) - 1, 0)

    def note(self) -> CaptureNote:
        ids = (self.incident.id, *(incident.id for incident, _ in self.joined))
        steps = self.recorded if self.stage in ("finishing", "finished") else self.steps
        ended = self.stage in ("failed", "cancelled")
        return CaptureNote(
            incidents=ids,
            folder=self.folder,
            first_step=self.first_step,
            last_step=self.first_step + max(steps, 1) - 1,
            state=self.stage,
            trace=self.trace if self.stage == "finished" else None,
            refused=self.problem if ended else None,
        )


def refused(incident: Incident, folder: Path, now: Now, reason: str) -> CaptureNote:
    return CaptureNote((incident.id,), folder, now.step, now.step, "refused", refused=reason)


def failed(note: CaptureNote, reason: str) -> CaptureNote:
    return replace(note, state="failed", refused=reason)


def folder_name(incident_id: str) -> str:
    """The incident's id with `-` for every character that a profiler might not accept in a path."""
    return re.sub(r"[^\w.-]", "-", incident_id, flags=re.ASCII)


def write_manifest(capture: Capture, section: ProfilerSection, meta: Mapping[str, Any]) -> None:
    """Write `manifest.json` so that a reader finds the old one or the new one, never half of it."""
    path = capture.folder / "manifest.json"
    text = json.dumps(json.loads(dump(_manifest(capture, section, meta))), ensure_ascii=False, indent=2)
    half = path.with_suffix(".json.tmp")
    half.write_text(text + "\n", encoding="utf-8")
    half.replace(path)


def _manifest(capture: Capture, section: ProfilerSection, meta: Mapping[str, Any]) -> dict[str, Any]:
    note = capture.note()
    return {
        **meta,
        "state": capture.stage,
        "problem": capture.problem,
        "incident": _incident(capture.incident, capture.armed),
        "joined": [_incident(incident, now) for incident, now in capture.joined],
        "steps": {"first": note.first_step, "last": note.last_step, "recorded": capture.recorded},
        "boundaries": capture.boundaries,
        "stop_seconds": capture.stop_seconds,
        "trace": capture.trace and capture.trace.relative_to(capture.folder),
        "check": capture.check and asdict(capture.check),
        "size": capture.size,
        "settings": asdict(section),
    }


def _incident(incident: Incident, now: Now) -> dict[str, Any]:
    worst = incident.firing[0] if incident.firing else None
    return {
        "id": incident.id,
        "rule": incident.rule,
        "severity": incident.severity,
        "asked": {"step": now.step, "time": now.time, "attempt": now.attempt},
        "since": incident.since.step,
        "opened": incident.opened.step,
        "micro_step": incident.micro_step,
        "labels": dict(worst.labels) if worst else {},
        "value": worst.value if worst else None,
        "firing": _samples(incident.firing),
        "details": _samples(incident.details),
        "count": incident.count,
    }


def _samples(samples: tuple[Sample, ...]) -> list[dict[str, Any]]:
    return [{"labels": dict(each.labels), "value": each.value} for each in samples[:KEPT_SAMPLES]]
