"""What is looked after while no step ends: wishes of people, rules on the wall clock, a training that stands still."""

from __future__ import annotations

import logging
from dataclasses import dataclass, field

from healthwatch.alerting.escalation import LONGEST_WAIT
from healthwatch.alerting.model import Acceptance
from healthwatch.alerting.silence import Silence
from healthwatch.session.control import Silences
from healthwatch.session.pipeline import Pipeline
from healthwatch.session.watchman import Watchman

STANDSTILL = LONGEST_WAIT
MOST_OFTEN = 1.0  # seconds between two evaluations of rules on the wall clock


@dataclass(slots=True)
class Between:
    """What the watchman does whenever he looks."""

    pipeline: Pipeline
    silences: Silences
    _paused: float = 0.0
    _ticked: float = 0.0
    _silences: tuple[Silence, ...] = ()
    _accepted: list[Acceptance] = field(default_factory=list)  # by `deliver`, and not taken in yet

    @classmethod
    def begin(cls, pipeline: Pipeline) -> None:
        """From now on somebody looks; what people asked for before is in force at the first step."""
        between = cls(pipeline, Silences(pipeline.config.output))
        with pipeline.guard("control"):
            between._read()
            between._heed()
            pipeline.reloader.begin()
            pipeline.watchman = Watchman(between.look)

    def look(self, still: float) -> None:
        """No step has ended for `still` seconds. A step that is under way goes first, and none waits for a disk."""
        with self.pipeline.guard("reload"):
            self.pipeline.reloader.look()
        with self.pipeline.guard("control"):
            self._read()
        if not self.pipeline.turn.acquire(blocking=False):
            return
        try:
            with self.pipeline.guard("control"):
                self._heed()
            self._mind_the_clock(still)
            self._mind_the_standstill(still)
        finally:
            self.pipeline.turn.release()

    def _read(self) -> None:
        """What stands in files, before the turn is ours."""
        self._silences = self.silences.look()
        for problem in self.silences.problems:
            self.pipeline.guard.tell("control", f"a silence can't be used: {problem}", logging.WARNING)
        self.silences.problems.clear()
        if self.pipeline.delivery is not None:
            self._accepted += self.pipeline.recording.delivered.news()

    def _heed(self) -> None:
        pipeline = self.pipeline
        pipeline.engine.silence(self._silences, {"run": pipeline.config.run, "rank": str(pipeline.rank)})
        if pipeline.delivery is not None:
            pipeline.delivery.told_elsewhere(self._accepted)
            self._accepted = []

    def _mind_the_clock(self, still: float) -> None:
        """Rules on the wall clock (R11), more and more rarely."""
        if still < self._ticked:
            self._ticked = 0.0
        if still - self._ticked >= max(MOST_OFTEN, still / 50) and self.pipeline.engine.uses_clock:
            self._ticked = still
            self.pipeline.tick()

    def _mind_the_standstill(self, still: float) -> None:
        if still < STANDSTILL:
            self._paused = 0.0
        elif still - self._paused >= STANDSTILL / 6:
            self._paused = still
            self.pipeline.tell_between("standstill")
