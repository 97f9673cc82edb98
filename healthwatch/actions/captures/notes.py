"""What is told of captures: manifests for people, notes for messages and the record."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from healthwatch.actions.captures.manifest import Capture, CaptureNote, write_manifest
from healthwatch.config import ProfilerSection

MOST_NOTES = 1000


class Notes:
    """Keeps the last note of each incident, and which notes are new.

    Args:
        section: how captures are profiled, for their manifests.
        meta: goes into every manifest as it is.
        tell: hears of each problem as (what kind, what happened).
    """

    def __init__(self, section: ProfilerSection, meta: Mapping[str, Any], tell: Callable[[str, str], Any]) -> None:
        self.by_incident: dict[str, CaptureNote] = {}
        self._section, self._meta, self._tell = section, dict(meta), tell
        self._changed: dict[Path, CaptureNote] = {}

    def keep(self, note: CaptureNote) -> CaptureNote:
        self._changed[note.folder] = note
        self.by_incident |= dict.fromkeys(note.incidents, note)
        for oldest in list(self.by_incident)[:-MOST_NOTES]:
            del self.by_incident[oldest]
        return note

    def changed(self) -> tuple[CaptureNote, ...]:
        """What is new since the last call, one note a capture."""
        changed, self._changed = tuple(self._changed.values()), {}
        return changed

    def first(self, capture: Capture) -> None:
        """Make the capture's folder and say that it is armed. Raises OSError."""
        capture.folder.mkdir(parents=True)
        write_manifest(capture, self._section, self._meta)
        self.keep(capture.note())

    def write(self, capture: Capture) -> CaptureNote:
        """Say how a capture stands."""
        note = self.keep(capture.note())
        self.write_manifest(capture)
        return note

    def write_manifest(self, capture: Capture) -> None:
        """The part of it that may run on any thread."""
        try:
            write_manifest(capture, self._section, self._meta)
        except OSError as error:
            self._tell("capture manifest", f"{capture.folder} can't be written: {error.strerror}")
