"""Profiles that incidents ask for: at most one at a time, within limits, and never at the training's expense."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from enum import Enum
from pathlib import Path
from typing import Any

from healthwatch.actions.captures.finishing import Finishing, folder_size
from healthwatch.actions.captures.manifest import Capture, CaptureNote, folder_name, refused, write_manifest
from healthwatch.alerting.model import Incident, Now
from healthwatch.alerting.ports import Profiler
from healthwatch.config import CaptureSettings, ProfilerSection

STOP_LIMIT = 60.0  # seconds after which a stop is taken to hang
MOST_NOTES = 1000


class State(Enum):
    """Of the profiler as a whole; a trace may still be analysed while it is idle again."""

    IDLE = "idle"
    ARMED = "armed"
    RECORDING = "recording"
    FINISHING = "finishing"
    FAILED = "failed"


class Captures:
    """Records the steps that follow an incident.

    `request` arms, `step_end` begins, counts and ends the window. One capture an incident: incidents that come while
    one is armed or recording join it. A stop that hangs makes the state `failed` for good: nothing is started again.

    Args:
        profiler: the framework's.
        settings: limits.
        folder: `<output>/captures/rank_<r>`; each capture has a folder of its own in it.
        meta: goes into every manifest as it is.
        section: how to profile.
        tell: hears of each problem as (what kind, what happened).
        free: bytes free on the disk of a folder.
        stop_limit: seconds after which a stop is taken to hang.
    """

    def __init__(
        self,
        profiler: Profiler,
        settings: CaptureSettings,
        folder: Path,
        meta: Mapping[str, Any],
        section: ProfilerSection,
        tell: Callable[[str, str], Any],
        *,
        free: Callable[[Path], int] | None = None,
        stop_limit: float = STOP_LIMIT,
    ) -> None:
        self.state = State.IDLE
        self.notes: dict[str, CaptureNote] = {}
        self._profiler, self._settings, self._section = profiler, settings, section
        self._folder, self._meta, self._tell = folder, dict(meta), tell
        self._free = free or free_disk
        self._stop_limit = stop_limit
        self._current: Capture | None = None
        self._finishing: list[Finishing] = []
        self._changed: dict[Path, CaptureNote] = {}
        self._taken = 0
        self._last_step: int | None = None
        self._total_size = folder_size(folder)
        self._closed = False

    def request(self, incident: Incident, steps: int, now: Now) -> CaptureNote | None:
        """Ask for a profile of the `steps` steps after `now`. None if the incident has one or it was asked before."""
        before = self.notes.get(incident.id)
        if self._closed or (before is not None and before.refused is None):
            return None
        self._look()  # a stop that took longer than the step's grace may have ended by now
        if self._current is not None and self.state in (State.ARMED, State.RECORDING):
            return self._join(self._current, incident, now)
        reason = self._refusal(steps, now) or self._arm(incident, steps, now)
        if reason is None:
            return self.notes[incident.id]
        kind, text = reason
        if before is not None and before.refused == text:
            return None
        self._tell(f"capture refused: {kind}", f"{incident.id} is not profiled: {text}")
        return self._keep(refused(incident, self._folder / folder_name(incident.id), now, text))

    def step_end(self, step: int) -> None:
        """A step has ended. Takes a few milliseconds where a window begins or ends, and nothing otherwise."""
        capture = self._current
        if capture is not None and self.state is State.ARMED:
            self._start(capture, step)
        elif capture is not None and self.state is State.RECORDING:
            self._count(capture, step)
        self._look()

    def changed(self) -> tuple[CaptureNote, ...]:
        """What is new since the last call, one note a capture."""
        changed, self._changed = tuple(self._changed.values()), {}
        return changed

    def close(self, timeout: float = 10.0) -> None:
        """The run ends: keep what an open window has recorded, and wait for traces; safe to call more than once."""
        if self._closed:
            return
        self._closed = True
        capture = self._current
        if capture is not None and self.state is State.ARMED:
            self._end(capture, "cancelled", "the run ended before the profile began")
        elif capture is not None and self.state is State.RECORDING:
            self._finish(capture)
        deadline = time.monotonic() + timeout
        for each in list(self._finishing):
            if each.done.wait(max(deadline - time.monotonic(), 0.0)):
                continue
            if each.stopped.is_set():
                self._tell("capture analysis", f"the trace in {each.capture.folder} is still being analysed")
            else:
                each.give_up("the profiler's stop was still hanging when the run ended")
        self._look()

    # Asking

    def _refusal(self, steps: int, now: Now) -> tuple[str, str] | None:
        """What speaks against a capture, if anything: its kind and the words for it."""
        limits = self._settings
        if self._taken >= limits.max_captures:
            return "max_captures", f"all {limits.max_captures} captures of this run are taken"
        if self.state is State.FAILED:
            return "failed", "an earlier profile never ended, and the profiler is not started again"
        if self.state is State.FINISHING:
            return "finishing", "an earlier profile is still being ended"
        if self._last_step is not None:
            self._last_step = min(self._last_step, now.step - 1)  # the run may have gone back
            if now.step - self._last_step < limits.cooldown:
                return "cooldown", f"{limits.cooldown} steps must lie between two captures"
        if self._total_size >= limits.max_total_size:
            return "max_total_size", f"captures take {_gib(self._total_size)} of {_gib(limits.max_total_size)} allowed"
        free = self._free(self._folder)
        if free < limits.min_free_disk:
            return "min_free_disk", f"{_gib(free)} are free on the disk, {_gib(limits.min_free_disk)} must be"
        if self._profiler.busy(steps):
            return "busy", "another profiler is active in this process"
        return None

    def _arm(self, incident: Incident, steps: int, now: Now) -> tuple[str, str] | None:
        capture = Capture(self._new_folder(incident.id), incident, steps, now, first_step=now.step + 1)
        try:
            capture.folder.mkdir(parents=True)
            write_manifest(capture, self._section, self._meta)
        except OSError as error:
            return "folder", f"{capture.folder} can't be written: {error.strerror}"
        self._current, self.state = capture, State.ARMED
        self._keep(capture.note())
        return None

    def _join(self, capture: Capture, incident: Incident, now: Now) -> CaptureNote:
        capture.joined.append((incident, now))
        self._write(capture)
        return self._keep(capture.note())

    def _new_folder(self, incident_id: str) -> Path:
        """The incident's own folder; numbered where an earlier run into the same output has left one."""
        folder, number = self._folder / folder_name(incident_id), 1
        while folder.exists():
            number += 1
            folder = self._folder / f"{folder_name(incident_id)}-{number}"
        return folder

    # Recording

    def _start(self, capture: Capture, step: int) -> None:
        capture.first_step = step + 1
        try:
            self._profiler.start(capture.folder, capture.steps, self._section)
        except Exception as error:
            self._end(capture, "failed", f"the profiler did not start: {error}")
            self._tell("capture start", f"{capture.incident.id} is not profiled: {capture.problem}")
            return
        self._taken += 1
        capture.boundaries.append(time.time())
        capture.stage, self.state = "recording", State.RECORDING
        self._write(capture)

    def _count(self, capture: Capture, step: int) -> None:
        capture.boundaries.append(time.time())
        self._last_step = step
        try:
            self._profiler.step()
        except Exception as error:
            self._tell("capture step", f"the profile of {capture.incident.id} is cut short: {error}")
            self._finish(capture)
            return
        if capture.recorded >= capture.steps:
            self._finish(capture)

    def _finish(self, capture: Capture) -> None:
        if len(capture.boundaries) == 1:
            capture.boundaries.append(time.time())  # no step has ended: keep the piece of one that there is
        capture.stage, self.state = "finishing", State.FINISHING
        self._write(capture)
        self._current = None
        finishing = Finishing(capture, self._profiler, self._write_manifest)
        self._finishing.append(finishing)
        finishing.start()

    def _look(self) -> None:
        """See what the threads that end windows have come to."""
        for each in list(self._finishing):
            if not each.stopped.is_set() and not each.done.is_set() and each.waited() > self._stop_limit:
                each.give_up(f"the profiler's stop has been hanging for {each.waited():.0f} s")
            if self.state is State.FINISHING and each.stopped.is_set():
                self.state = State.IDLE
            if each.done.is_set():
                self._finishing.remove(each)
                self._conclude(each)

    def _conclude(self, finishing: Finishing) -> None:
        capture = finishing.capture
        self._total_size += capture.size
        if not finishing.stopped.is_set():
            self.state = State.FAILED
        if capture.problem is not None:
            self._tell("capture", f"the profile of {capture.incident.id} can't be used: {capture.problem}")
        self._keep(capture.note())

    def _end(self, capture: Capture, stage: Any, problem: str) -> None:
        capture.stage, capture.problem = stage, problem
        self._current, self.state = None, State.IDLE
        self._write(capture)

    # Telling

    def _write(self, capture: Capture) -> None:
        self._keep(capture.note())
        self._write_manifest(capture)

    def _write_manifest(self, capture: Capture) -> None:
        try:
            write_manifest(capture, self._section, self._meta)
        except OSError as error:
            self._tell("capture manifest", f"{capture.folder} can't be written: {error.strerror}")

    def _keep(self, note: CaptureNote) -> CaptureNote:
        self._changed[note.folder] = note
        for incident in note.incidents:
            self.notes[incident] = replace(note)
        for oldest in list(self.notes)[:-MOST_NOTES]:
            del self.notes[oldest]
        return note


def free_disk(folder: Path) -> int:
    """Bytes free where a folder is or will be."""
    while not folder.exists():
        folder = folder.parent
    return shutil.disk_usage(folder).free


def _gib(size: int) -> str:
    return f"{size / 2**30:.1f} GiB"
