"""Profiles that incidents, people and the config ask for: one at a time, within limits, never at training's expense."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from pathlib import Path
from typing import Any

from healthwatch.actions.captures.draft import draft, draft_window
from healthwatch.actions.captures.earlier import earlier, follow_all
from healthwatch.actions.captures.endings import Endings
from healthwatch.actions.captures.finishing import Finishing
from healthwatch.actions.captures.limits import Limits, Reason, captures_on, free_disk
from healthwatch.actions.captures.manifest import Capture, CaptureNote, Kind, folder_name, refused
from healthwatch.actions.captures.notes import Notes
from healthwatch.actions.captures.reference import STEPS as REFERENCE_STEPS
from healthwatch.actions.captures.reference import ReferencePlan
from healthwatch.actions.captures.requests import Requests
from healthwatch.actions.captures.window import StaticWindow
from healthwatch.actions.noprofiler import WHY, NoProfiler
from healthwatch.alerting.model import Incident, Now
from healthwatch.alerting.ports import Profiler
from healthwatch.config import CaptureSettings, ProfilerSection

STOP_LIMIT = 60.0  # seconds after which a stop is taken to hang


class State(Enum):
    """Of the profiler as a whole; a trace may still be analysed while it is idle again."""

    IDLE = "idle"
    ARMED = "armed"
    RECORDING = "recording"
    FINISHING = "finishing"
    FAILED = "failed"


class Captures:
    """Records the steps that follow an incident, the static window of the config, and the healthy reference.

    `request` arms, `step_end` begins, counts and ends the window. One capture an incident: incidents that
    come while one is armed or recording join it. A stop that hangs makes the state `failed` for good: nothing is
    started again.

    Args:
        profiler: the framework's.
        settings: limits.
        folder: `<output>/captures/rank_<r>`; each capture has a folder of its own in it. What earlier attempts of
            the run have left there counts.
        meta: goes into every manifest as it is; `rank` is the rank of this process.
        section: how to profile.
        tell: hears of each problem as (what kind, what happened).
        window: the static one, if it is ours to record on this rank.
        requests: what people ask of this rank.
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
        window: StaticWindow | None = None,
        requests: Requests | None = None,
        free: Callable[[Path], int] = free_disk,
        stop_limit: float = STOP_LIMIT,
    ) -> None:
        self.state = State.IDLE
        self._profiler, self._section = profiler, section
        self._folder, self._meta, self._tell = folder, meta, tell
        self._notes = Notes(section, meta, tell)
        self._limits = Limits(settings, folder, int(meta.get("rank", 0)), free)
        self._window, self._requests = window, requests
        self._reference = ReferencePlan(settings.reference_at)
        self._endings = Endings(profiler, self._notes.write_manifest, tell, stop_limit)
        self._current: Capture | None = None
        self._closed = self._over = False
        self._restore()

    def start(self, first_step: int) -> None:
        """The first step is about to run; a window may begin with it."""
        if self._window is not None and self._window.last < first_step:
            self._tell("static window", f"the {self._window} lies before step {first_step}, with which this run begins")
            self._window = None
        self._begin_due(first_step, firing=False)

    def request(self, incident: Incident, steps: int, now: Now) -> CaptureNote | None:
        """Ask for a profile of the `steps` steps after `now`. None if the incident has one or it was asked before."""
        before = self.notes.get(incident.id)
        if self._closed or (before is not None and before.refused is None):
            return None
        self._look()  # a stop that took longer than the step's grace may have ended by now
        if self.state is State.IDLE and self._window is not None and self._window.due(now.step + 1):
            self._arm(draft_window(self._folder, self._window, now))
        if self._current is not None:
            return self._join(self._current, incident, now)
        capture = draft(self._folder, "incident", incident.id, steps, now, self._window, incident)
        reason = self._refusal("incident", steps, now) or self._arm(capture)
        if reason is None:
            return self.notes[incident.id]
        if before is not None and before.refused == reason[1]:
            return None
        return self._refuse("incident", incident.id, incident, now, reason)

    def ask(self, steps: int, now: Now) -> CaptureNote | None:
        """A person asks for the `steps` steps after `now`; limits of incidents are not theirs. None after `close`."""
        if self._closed:
            return None
        self._look()
        capture = draft(self._folder, "request", f"request@{now.step}", steps, now, self._window)
        reason: Reason | None = ("active", "a profile is being recorded already")
        if self._current is None:
            reason = self._refusal("request", steps, now) or self._arm(capture)
        if reason is None:
            return capture.note()
        return self._refuse("request", capture.name, None, now, reason)

    def step_end(self, step: int, firing: bool = False) -> None:
        """A step has ended. Takes a few milliseconds where a window begins or ends, and nothing otherwise.

        `firing`: whether any incident is open at it; then no healthy reference is taken.
        """
        for request in self._requests.poll() if self._requests is not None else ():
            self.ask(request.steps, self._now(step))
        capture = self._current
        self._reference.seen += 1
        if capture is not None and self.state is State.ARMED:
            self._start(capture, step + 1)
        elif capture is not None and self.state is State.RECORDING:
            capture.quiet = capture.quiet and not firing
            self._count(capture, step)
        self._look()
        if self.state is State.IDLE:
            self._begin_due(step + 1, firing)

    @property
    def notes(self) -> Mapping[str, CaptureNote]:
        """By incident: where its capture is or will be, or why there is none."""
        return self._notes.by_incident

    def changed(self) -> tuple[CaptureNote, ...]:
        """What is new since the last call, one note a capture."""
        return self._notes.changed()

    def no_more(self) -> None:
        """No step comes any more: whoever asks from now on is refused."""
        self._over = True
        if self._current is not None and self.state is State.ARMED:
            self._end(self._current, "cancelled", "the run ended before the profile began")

    def close(self, timeout: float = 10.0) -> None:
        """The run ends: keep what an open window has recorded, and wait for traces; safe to call more than once."""
        if self._closed:
            return
        self._closed = True
        self.no_more()
        capture = self._current
        if capture is not None and self.state is State.RECORDING:
            self._finish(capture)
        self._endings.close(timeout)
        self._look()

    # Asking

    def _restore(self) -> None:
        """What earlier attempts of this run have taken."""
        known = earlier(self._folder, self._tell)
        self._limits.restore(known)
        self._notes.by_incident = {incident: one.note for one in known for incident in one.incidents}
        taken = any(one.healthy and one.over for one in known)
        if taken or not captures_on(self._limits.settings.ranks, self._limits.rank):
            self._reference.at = None
        analysed = [one for one in known if not one.over and not isinstance(self._profiler, NoProfiler)]
        self._reference.under_way = any(one.healthy for one in analysed)
        if analysed:
            folders = [one.folder for one in analysed]
            threading.Thread(target=self._follow, args=(folders,), name="healthwatch-captures", daemon=True).start()

    def _follow(self, folders: Sequence[Path]) -> None:
        healthy = follow_all(folders, self._profiler.trace_pattern, self._tell)
        if self._reference.under_way:
            self._reference.ended(healthy)

    def _refusal(self, kind: Kind, steps: int, now: Now) -> Reason | None:
        """What speaks against a capture, if anything."""
        if isinstance(self._profiler, NoProfiler):
            return "no profiler", WHY
        if self._over:
            return "over", "no step comes after it"
        limit = self._limits.refusal(kind, now)
        if limit is not None:
            return limit
        if self.state is State.FAILED:
            return "failed", "an earlier profile never ended, and the profiler is not started again"
        if self.state is State.FINISHING:
            return "finishing", "an earlier profile is still being ended"
        if self._profiler.busy(steps):
            return "busy", "another profiler is active in this process"
        return None

    def _refuse(self, kind: Kind, name: str, incident: Incident | None, now: Now, reason: Reason) -> CaptureNote:
        if kind != "incident" or reason[1] != WHY:  # of ladders it is said at the start
            self._tell(f"capture refused: {reason[0]}", f"{name} is not profiled: {reason[1]}")
        return self._notes.keep(refused(kind, incident, self._folder / folder_name(name), now, reason[1]))

    def _arm(self, capture: Capture) -> Reason | None:
        try:
            self._notes.first(capture)
        except OSError as error:
            return "folder", f"{capture.folder} can't be written: {error.strerror}"
        self._current, self.state = capture, State.ARMED
        return None

    def _join(self, capture: Capture, incident: Incident, now: Now) -> CaptureNote:
        capture.joined.append((incident, now))
        return self._notes.write(capture)

    def _now(self, step: int) -> Now:
        return Now(step, time.time(), self._meta.get("attempt", 1))

    def _begin_due(self, step: int, firing: bool) -> None:
        """Begin what the config wants to begin with this step: the static window, or the reference."""
        window, now = self._window, self._now(step - 1)
        if window is not None and window.due(step):
            capture = draft_window(self._folder, window, now)
            self._window = None
        elif self._reference.due(step, firing) and not (window and window.overlaps(step, step + REFERENCE_STEPS - 1)):
            capture = draft(self._folder, "reference", f"reference@{now.step}", REFERENCE_STEPS, now, window)
        else:
            return
        reason = self._refusal(capture.kind, capture.steps, now) or self._arm(capture)
        if reason is None:
            self._start(capture, step)
            return
        if capture.kind == "reference":
            self._reference.postpone(step)
        self._refuse(capture.kind, capture.name, None, now, reason)

    # Recording

    def _start(self, capture: Capture, first_step: int) -> None:
        capture.first_step = first_step
        if capture.kind == "window":
            self._window = None
        if capture.kind == "reference":
            self._reference.began()
        try:
            self._profiler.start(capture.records, capture.steps, self._section)
        except Exception as error:
            self._end(capture, "failed", f"the profiler did not start: {error}")
            self._tell("capture start", f"{capture.name} is not profiled: {capture.problem}")
            return
        self._limits.taken += capture.kind == "incident"
        capture.boundaries.append(time.time())
        capture.stage, self.state = "recording", State.RECORDING
        self._notes.write(capture)

    def _count(self, capture: Capture, step: int) -> None:
        capture.boundaries.append(time.time())
        if capture.kind == "incident":
            self._limits.last_step = step
        try:
            self._profiler.step()
        except Exception as error:
            self._tell("capture step", f"the profile of {capture.name} is cut short: {error}")
            self._finish(capture)
            return
        if capture.recorded >= capture.steps:
            self._finish(capture)

    def _finish(self, capture: Capture) -> None:
        if len(capture.boundaries) == 1:
            capture.boundaries.append(time.time())  # no step has ended: keep the piece of one that there is
        capture.stage, self.state = "finishing", State.FINISHING
        self._notes.write(capture)
        self._current = None
        self._endings.begin(capture)

    def _look(self) -> None:
        """See what the threads that end windows have come to."""
        for each in self._endings.look():
            self._conclude(each)
        if self.state is State.FINISHING and not self._endings.stopping:
            self.state = State.IDLE

    def _conclude(self, finishing: Finishing) -> None:
        capture = finishing.capture
        self._limits.total_size += capture.size if capture.kind != "window" else 0
        if capture.kind == "reference":
            self._reference.ended(capture.healthy)
        if not finishing.stopped.is_set():
            self.state = State.FAILED
        if capture.problem is not None:
            self._tell("capture", f"the profile of {capture.name} can't be used: {capture.problem}")
        self._notes.keep(capture.note())

    def _end(self, capture: Capture, stage: Any, problem: str) -> None:
        capture.stage, capture.problem = stage, problem
        self._current, self.state = None, State.IDLE
        if capture.kind == "reference":
            self._reference.ended(healthy=False)
        self._notes.write(capture)
