"""What becomes of a closed frame: decide, capture, write down, tell."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from healthwatch.actions import log
from healthwatch.actions.captures.requests import Requests
from healthwatch.actions.captures.window import static_window
from healthwatch.actions.notify import Delivery
from healthwatch.actions.profile import Captures
from healthwatch.alerting.message import render
from healthwatch.alerting.model import Intent, Notice, Now, Transition
from healthwatch.alerting.policy import policy_of
from healthwatch.alerting.ports import Profiler
from healthwatch.config import Config
from healthwatch.engine import Engine, Outcome
from healthwatch.recording import Recording, Run, describe
from healthwatch.rulefile import Rule
from healthwatch.session.guard import Guard
from healthwatch.stream import Frame, SeriesTable

RESUMED_STEPS = 2000


@dataclass(slots=True)
class Pipeline:
    """Everything behind the frame. `captures` and `delivery` are None where nobody is to profile or to send."""

    config: Config
    rank: int
    rules: Mapping[str, Rule]
    engine: Engine
    recording: Recording
    captures: Captures | None
    delivery: Delivery | None
    guard: Guard
    last_step: int = 0

    def begin(self, first_step: int) -> None:
        """The first step is about to run."""
        if self.captures is not None:
            with self.guard("profile"):
                self.captures.start(first_step)

    def step(self, frame: Frame) -> None:
        """Captures come first, so that messages can name their folder; nothing is sent before it is recorded."""
        outcome = self._decide(frame)
        for intent in _of("profile", outcome):
            self._capture(intent)
        notices = [notice for intent in _of("notify", outcome) for notice in self._render(intent)]
        self._record(frame, outcome, notices)
        for intent in _of("log", outcome):
            with self.guard("log"):
                log.write(intent)
        self._send(notices)
        if self.captures is not None:
            with self.guard("profile"):
                self.captures.step_end(frame.step, any(one.active and not one.shadow for one in outcome.incidents))

    def resume(self, table: SeriesTable) -> None:
        """Take in what earlier attempts recorded, about which everything has been decided, and tell what is untold."""
        if self.recording.attempt == 1:
            return
        with Run.open(self.recording.path) as run:
            for frame in run.tail(RESUMED_STEPS, table):
                self._rewind(frame)
                self.engine.step(frame)
                self.last_step = frame.step
        self._send([notice for notice in self.recording.pending() if notice.receiver in self.config.receivers])

    def _decide(self, frame: Frame) -> Outcome:
        outcome = Outcome(Now(frame.step, frame.time, frame.attempt))
        with self.guard("engine"):
            rewound = self._rewind(frame)
            self.last_step = frame.step
            outcome = self.engine.step(frame)
            outcome = replace(outcome, transitions=(*rewound, *outcome.transitions))
        for problem in outcome.problems:
            level = logging.ERROR if problem.kind == "failed" else logging.WARNING
            self.guard.tell(f"{problem.rule}: {problem.kind}", f"rule {problem.rule}: {problem.message}", level)
        return outcome

    def _rewind(self, frame: Frame) -> tuple[Transition, ...]:
        return self.engine.rewind(frame.step) if frame.step <= self.last_step else ()

    def _capture(self, intent: Intent) -> None:
        if self.captures is None:
            return
        for incident in intent.incidents:
            with self.guard("profile"):
                self.captures.request(incident, int(intent.argument["steps"]), intent.now)

    def _render(self, intent: Intent) -> list[Notice]:
        notices = []
        with self.guard("message"):
            notes = self.captures.notes if self.captures is not None else {}
            notice = render(intent, run=self.config.run, rank=self.rank, rules=self.rules, captures=notes)
            notices.append(notice)
        return notices

    def _record(self, frame: Frame, outcome: Outcome, notices: Sequence[Notice]) -> None:
        with self.guard("recording"):
            self.recording.declare(self.engine.history.table.series)
            captures = self.captures.changed() if self.captures is not None else ()
            accepted = self.delivery.drain() if self.delivery is not None else ()
            queued = notices if self.delivery is not None else ()
            stopped = self.recording.commit(frame, outcome, captures, queued, accepted)
            if stopped is not None:
                self.guard.tell("recording", f"the run is no longer recorded: {stopped}; alerts go on")
            if self.recording.dropped:
                self.guard.tell("recording: locked", "the run file is locked; old samples are given up")

    def _send(self, notices: Sequence[Notice]) -> None:
        if self.delivery is None:
            for notice in notices:
                self.guard.say(f"not sent to {notice.receiver}: {notice.title}", logging.INFO)
            return
        with self.guard("notify"):
            self.delivery.send(notices)
            for problem in self.delivery.problems():
                self.guard.failures[problem.code] += 1
                self.guard.say(problem.message, logging.WARNING)

    def close(self, reason: str) -> None:
        """Finish captures, give receivers a few seconds, and end the recording."""
        if self.captures is not None:
            with self.guard("profile"):
                self.captures.close()
                self.recording.keep(self.captures.changed(), self.last_step)
        if self.delivery is not None:
            with self.guard("notify"):
                self.delivery.close()
                for id_, time in self.delivery.drain():
                    self.recording.accepted(id_, time)
            self._send(())
        with self.guard("recording"):
            lost = self.recording.close(reason)
            if lost is not None:
                self.guard.tell("recording: end", f"the recording is not complete: {lost}")


def open_recording(config: Config, table: SeriesTable) -> Recording:
    """The run file of this process; the series of earlier attempts come first in the table, as in a replay.

    Raises:
        Invalid: the run can't be recorded.
    """
    rank = int(os.environ.get("RANK_ID", "0"))
    recording = Recording.create(config.output / f"rank_{rank}.sqlite", {**describe(config), "rank": rank})
    recording.restore(table)
    return recording


def open_pipeline(
    config: Config,
    rules: Sequence[Rule],
    table: SeriesTable,
    recording: Recording,
    profiler: Profiler | None,
    guard: Guard,
) -> Pipeline:
    """Everything behind the frame, ready for the first step; an earlier attempt of the run is taken in."""
    engine = Engine(rules, table, policy_of(config, rules), config.no_data_after)
    rank = recording.meta["rank"]
    about = {"run": config.run, "rank": rank, "attempt": recording.attempt, "config_digest": config.digest}
    recording.declare(table.series)
    pipeline = Pipeline(
        config=config,
        rank=rank,
        rules={rule.name: rule for rule in rules},
        engine=engine,
        recording=recording,
        captures=_captures(config, profiler, about, guard),
        delivery=_delivery(config),
        guard=guard,
    )
    with guard("resume"):
        pipeline.resume(table)
    return pipeline


def _captures(config: Config, profiler: Profiler | None, meta: Mapping[str, Any], guard: Guard) -> Captures | None:
    if profiler is None or config.dry_run:
        return None
    rank = int(meta["rank"])
    return Captures(
        profiler,
        settings=config.capture,
        folder=config.output / "captures" / f"rank_{rank}",
        meta=meta,
        section=config.profiler,
        tell=guard.tell,
        window=static_window(config.profiler, rank) if profiler.takes_window else None,
        requests=Requests(config.output, rank, since=time.time()),
    )


def _delivery(config: Config) -> Delivery | None:
    return Delivery(config.receivers) if config.receivers and not config.dry_run else None


def _of(action: str, outcome: Outcome) -> list[Intent]:
    return [intent for intent in outcome.intents if intent.action == action]
