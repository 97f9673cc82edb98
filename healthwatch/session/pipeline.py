"""What becomes of a closed frame: decide, capture, write down, tell."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from healthwatch.actions.action import Performer, Site, find
from healthwatch.actions.notify import Delivery
from healthwatch.actions.profile import Captures
from healthwatch.alerting.escalation import Mode
from healthwatch.alerting.model import Intent, Notice, Now, Transitions
from healthwatch.alerting.policy import policy_of
from healthwatch.config import Config
from healthwatch.diagnostics import counted
from healthwatch.engine import Engine, Outcome
from healthwatch.recording import Recording, Run, Snapshots, reach, recall, revive
from healthwatch.rulefile import Rule
from healthwatch.session.failing import FailingReceivers
from healthwatch.session.guard import Guard
from healthwatch.session.reload import Reloader, Renewed
from healthwatch.session.watchman import Watchman
from healthwatch.stream import Frame, SeriesTable

CLOSE_SECONDS = 5.0


@dataclass(slots=True)
class Pipeline:
    """Everything behind the frame. `captures` and `delivery` are None where nobody is to profile or to send."""

    config: Config
    rank: int
    rules: dict[str, Rule]  # those that are gone among them: a message may still be about one
    engine: Engine
    recording: Recording
    captures: Captures | None
    delivery: Delivery | None
    guard: Guard
    failing: FailingReceivers
    reloader: Reloader
    performers: dict[str, tuple[int | None, Performer]] = field(default_factory=dict)  # by action, with its order
    last_step: int = 0
    stopping: str = ""  # why the training is to end at this step
    turn: threading.Lock = field(default_factory=threading.Lock)  # the loop's own thread or the watchman's
    watchman: Watchman | None = None
    _notices: list[Notice] = field(default_factory=list)
    _snapshots: Snapshots = field(default_factory=Snapshots)

    def begin(self, first_step: int) -> None:
        """The first step is about to run."""
        if self.captures is not None:
            with self.guard("profile"):
                self.captures.start(first_step)

    def step(self, frame: Frame) -> None:
        """A step has ended."""
        with self.turn:
            outcome = self._judge(frame)
            if self.captures is not None:
                firing = any(one.active and not one.shadow for one in outcome.incidents)
                with self.guard("profile"):
                    self.captures.step_end(frame.step, firing)
            if self.watchman is not None:
                self.watchman.step_ended()

    def fail(self, frame: Frame) -> None:
        """An error ends the training: no step comes that could be profiled, and none is left to stop."""
        with self.turn:
            if self.captures is not None:
                with self.guard("profile"):
                    self.captures.no_more()
            self._judge(frame)
            self.stopping = ""

    def _judge(self, frame: Frame) -> Outcome:
        """What must be recorded comes first, captures before messages that name their folder; then the rest."""
        renewed = self.reloader.take()
        if renewed is not None:
            self._renew(renewed, frame)
        outcome = self._decide(frame)
        self._perform(outcome.intents, recorded=False)
        notices = self._posted(outcome.now)
        self._record(frame, outcome, notices)
        self._perform(outcome.intents, recorded=True)
        self._send(notices)
        return outcome

    def resume(self, table: SeriesTable) -> None:
        """Go on where the last attempt's last step left alerting; nothing is judged again."""
        if self.recording.attempt > 1:
            revive(self.engine, self.recording.state)
            with Run.open(self.recording.path) as run:
                self.last_step = run.last_step()
                recall(self.engine, run.before(self.last_step + 1, reach(self.engine), table))
        if self.delivery is not None:
            untold = [each for each in self.recording.pending() if each.notice.receiver in self.config.receivers]
            self.delivery.resume(untold)

    def _renew(self, renewed: Renewed, frame: Frame) -> None:
        """Rules and receivers that have changed on disk are in force from the step that is about to be judged."""
        config, rules = renewed.config, renewed.rules
        with self.guard("reload"):
            outcome = self.engine.replace(
                rules, policy_of(config, rules), config.no_data_after, config.receivers, frame.time
            )
            self.recording.reloaded(frame.step, frame.time, {**renewed.meta, "rank": self.rank})
            self._tell(outcome)
            self.config = config
            self.rules.update({rule.name: rule for rule in rules})
            self._renew_receivers()
            self.open_actions()
            self.guard.say(f"rules and config are reloaded: {counted(len(rules), 'rule')}", logging.INFO)

    def _renew_receivers(self) -> None:
        if self.delivery is None:
            self.delivery = delivery_of(self.config)
        else:
            self.delivery.renew(self.config.receivers)
        self.failing.receivers = tuple(self.config.receivers)

    def tell_between(self, mode: Mode) -> None:
        """What waits for steps that may never come is told now (R6)."""
        outcome = Outcome(Now(self.last_step, time.time(), self.recording.attempt))
        with self.guard("engine"):
            outcome = self.engine.pause(time.time(), mode)
        self._tell(outcome)

    def tick(self) -> None:
        """Rules on the wall clock (R11); what comes of it is recorded, so that a replay ticks as well."""
        with self.guard("engine"):
            since, outcome = self.engine.clock.moments[0], self.engine.tick(time.time())
            if outcome is not None and since is not None:
                self._tell_problems(outcome)
                self._tell(outcome, since.time)

    def _tell(self, outcome: Outcome, since: float | None = None) -> None:
        """Perform and record what happens between two steps; `since` is when the last one ended, for a clock event."""
        self._perform(outcome.intents, recorded=False)
        notices = self._posted(outcome.now)
        self._record(None, outcome, notices, since)
        self._perform(outcome.intents, recorded=True)
        self._send(notices)

    def open_actions(self) -> None:
        """One performer an action that a ladder names; one that can't be opened is told and left out."""
        site = Site(
            self.config, self.rank, self.rules, self.captures, self.guard.tell, self._notices.append, self._stop
        )
        named = dict.fromkeys(step.action for ladder in self.config.escalation.values() for step in ladder)
        for name in (name for name in named if name not in self.performers):
            with self.guard(name):
                action = find(name)
                self.performers[name] = action.order, action.open(site)

    def _stop(self, reason: str) -> None:
        self.stopping = self.stopping or reason

    def _perform(self, intents: Sequence[Intent], *, recorded: bool) -> None:
        """Every intent whose action comes before the step is recorded, or after it."""
        due = [(self.performers[each.action], each) for each in intents if each.action in self.performers]
        ordered = [(order, performer, intent) for (order, performer), intent in due if (order is None) == recorded]
        for _, performer, intent in sorted(ordered, key=lambda each: each[0] or 0):
            with self.guard(intent.action):
                performer.perform(intent)

    def _posted(self, now: Now) -> list[Notice]:
        """The notices of this step, and those about receivers that fail."""
        notices = list(self._notices)
        self._notices.clear()
        if self.delivery is not None:
            with self.guard("notify"):
                incidents, about = self.failing.look(self.delivery.state(), now, self.engine.silences)
                self.recording.note(incidents)
                notices += about
        return notices

    def _decide(self, frame: Frame) -> Outcome:
        outcome = Outcome(Now(frame.step, frame.time, frame.attempt))
        with self.guard("engine"):
            rewound = self._rewind(frame)
            self.last_step = frame.step
            outcome = self.engine.step(frame)
            outcome = replace(outcome, changes=(*rewound, *outcome.changes))
        self._tell_problems(outcome)
        return outcome

    def _tell_problems(self, outcome: Outcome) -> None:
        for problem in outcome.problems:
            level = logging.ERROR if problem.kind == "failed" else logging.WARNING
            self.guard.tell(f"{problem.rule}: {problem.kind}", f"rule {problem.rule}: {problem.message}", level)

    def _rewind(self, frame: Frame) -> tuple[Transitions, ...]:
        if frame.step > self.last_step:
            return ()
        rewound = self.engine.rewind(frame.step)
        self._refill(frame.step)
        return rewound

    def _refill(self, step: int) -> None:
        """The windows before a step to which the run goes back: the history has forgotten what lies further back."""
        if self.recording.behind:
            return
        with self.guard("rewind"), Run.open(self.recording.path) as run:
            recall(self.engine, run.before(step, reach(self.engine), self.engine.history.table), step)

    def _record(
        self, frame: Frame | None, outcome: Outcome, notices: Sequence[Notice], since: float | None = None
    ) -> None:
        with self.guard("recording"):
            self.recording.declare(self.engine.history.table.series)
            captures = self.captures.changed() if self.captures is not None else ()
            accepted = self.delivery.drain() if self.delivery is not None else ()
            queued = notices if self.delivery is not None else ()
            stopped = self.recording.commit(frame, outcome, captures, queued, accepted, self._state(), since)
            if stopped is not None:
                self.guard.tell("recording", f"the run is no longer recorded: {stopped}; alerts go on")
            if self.recording.dropped:
                self.guard.tell("recording: locked", "the run file is locked; old samples are given up")

    def _state(self) -> Mapping[str, bytes] | None:
        state: Mapping[str, bytes] | None = None
        with self.guard("state"):
            state = self._snapshots.of(self.engine)
        return state  # noqa: RET504 - the guard swallows what goes wrong

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
        """Finish captures, tell what still waits, give receivers a few seconds, and end the recording."""
        if self.watchman is not None:
            self.watchman.close()
        with self.turn:
            if self.captures is not None:
                with self.guard("profile"):
                    self.captures.close()
            self.tell_between("end")
            end = time.monotonic() + CLOSE_SECONDS
            for name, (_, performer) in self.performers.items():
                with self.guard(name):
                    performer.close(max(end - time.monotonic(), 0.0))
            if self.delivery is not None:
                with self.guard("notify"):
                    self.delivery.close(max(end - time.monotonic(), 0.0))
                    for acceptance in self.delivery.drain():
                        self.recording.accepted(acceptance)
                self._send(())
            with self.guard("recording"):
                lost = self.recording.close("stopped" if self.stopping else reason)
                if lost is not None:
                    self.guard.tell("recording: end", f"the recording is not complete: {lost}")


def delivery_of(config: Config) -> Delivery | None:
    return Delivery(config.receivers) if config.receivers and not config.dry_run else None
