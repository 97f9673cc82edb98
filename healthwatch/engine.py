"""A step's samples in, what to do about them out: pure and deterministic, without threads, frameworks or I/O."""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from healthwatch.alerting import inhibit, silence
from healthwatch.alerting.book import Book
from healthwatch.alerting.clock import Clock
from healthwatch.alerting.escalation import Mode, Policy, Standing, escalate, moved
from healthwatch.alerting.escalation import rewind as rewind_standing
from healthwatch.alerting.incident import brought_up
from healthwatch.alerting.model import Incident, Intent, Now, Transition, Transitions
from healthwatch.alerting.policy import SILENT
from healthwatch.alerting.watch import Problem, Watch, watches
from healthwatch.promql import Program
from healthwatch.rulefile import Rule
from healthwatch.stream import Frame, History, SeriesTable, tick_of

FORESEEN, _WORTH_FORESEEING = 64, 16
"""Frames that are well judged together; as few are judged as quickly one by one."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one step led to: incidents are open or have just ended, problems are rules that could not be evaluated."""

    now: Now
    changes: tuple[Transitions, ...] = ()
    incidents: tuple[Incident, ...] = ()
    intents: tuple[Intent, ...] = ()
    problems: tuple[Problem, ...] = ()

    @property
    def transitions(self) -> tuple[Transition, ...]:
        """Every alert that has changed its phase, one by one."""
        return tuple(transition for found in self.changes for transition in found)


class Engine:
    """Frame -> History -> rules -> verdicts -> lifecycle -> transitions -> incidents -> escalation -> intents."""

    def __init__(
        self, rules: Sequence[Rule], table: SeriesTable, policy: Policy = SILENT, no_data_after: int = 200
    ) -> None:
        self.history = History(table)
        self.book, self.standing, self.policy = Book(), Standing(), policy
        self._compile(rules, no_data_after)
        self.clock, self._looks = Clock(), 0
        self._silences: tuple[silence.Silence, ...] = ()
        self._site: Mapping[str, str] = {}

    def _compile(self, rules: Sequence[Rule], no_data_after: int) -> None:
        self._program = program = Program(self.history)
        self.watches = watches(rules, program, no_data_after)
        program.retain()
        self._by_rule = {watch.rule.name: watch for watch in self.watches}
        self._shadows = {rule.name for rule in rules if rule.mode == "shadow"}

    def prepare(self) -> None:
        """Work out before the first step what follows from the label sets that are known already."""
        self._program.prepare()

    def silence(self, silences: Sequence[silence.Silence], site: Mapping[str, str]) -> None:
        """Replace the silences; `site` are the labels that every alert of this process shares (run, rank)."""
        self._silences, self._site = tuple(silences), site

    def silences(self, incident: Incident, now: Now) -> bool:
        """Whether an incident that no rule has opened is silenced."""
        return silence.covered(incident, self._silences, self._site, now)

    def step(self, frame: Frame) -> Outcome:
        """Evaluate every rule on a closed frame and move alerts, incidents and the ladder by one step."""
        self.history.extend(frame)
        return self._judge(frame)

    def steps(self, frames: Sequence[Frame]) -> Iterator[Outcome]:
        """As `step` with each of some frames that are there already, of ascending steps, but faster.

        Nothing else may be asked of the engine before the last outcome, but for what `brought_up` gives. The table
        should know no series that come after the last frame. How far back a picture goes, and the baseline of a message
        whose rule looks back less far, is up to what the history happens to hold.
        """
        if len(frames) < _WORTH_FORESEEING:
            yield from map(self.step, frames)
            return
        self.history.extend(*frames)
        ticks = {column.tick for frame in frames for column in frame.columns}
        self._program.foresee(sorted(ticks.union(tick_of(frame.step) for frame in frames)))
        for frame in frames:
            self._program.forget()
            yield self._judge(frame)

    def _judge(self, frame: Frame) -> Outcome:
        """What follows from a frame that is in the history."""
        now, self._looks = self.clock.at(frame), 0
        problems: list[Problem] = []
        attempt_step = self.clock.attempt_step
        with self._program.silenced():
            changed = [(watch, watch.advance(frame, self.book, now, attempt_step, problems)) for watch in self.watches]
        return self._outcome(changed, now, problems)

    @property
    def uses_clock(self) -> bool:
        """Whether a rule looks at the wall clock between steps."""
        return any(watch.query.uses_clock for watch in self.watches)

    def tick(self, time: float) -> Outcome | None:
        """No step has ended up to `time`: rules that look at the wall clock are evaluated, and no others (R11).

        None where nothing came of it: such a tick need not be repeated in a replay.
        """
        still = self.clock.still(time)
        if still is None:
            return None
        now, problems = self.clock.standing_at(time), list[Problem]()
        self._looks += 1
        watches = [watch for watch in self.watches if watch.query.uses_clock]
        self._program.stalled_seconds = still
        changed = [(watch, watch.tick(self.book, now, problems)) for watch in watches]
        self._program.stalled_seconds = 0.0
        idle = not any(len(self.book.page(watch.rule.name).ledger) for watch in watches)
        if idle and not problems and not any(transitions for _, transitions in changed):
            return None
        return self._outcome(changed, now, problems)

    def _outcome(
        self, changed: Sequence[tuple[Watch, list[Transitions]]], now: Now, problems: list[Problem]
    ) -> Outcome:
        """What follows from alerts that have moved: incidents, and the intents of everything that is open."""
        settled = self.book.settle([(watch.subject, transitions) for watch, transitions in changed], now)
        seen = {incident.id for incident in settled}
        incidents = [*settled, *(each for each in self.book.open() if each.id not in seen)]
        incidents = [self._hold_back(incident, now) for incident in incidents]
        intents, self.standing = escalate(incidents, self.standing, self.policy, now)
        return Outcome(
            now,
            tuple(found for _, transitions in changed for found in transitions),
            tuple(incidents),
            tuple(self._with_details(intent, problems) for intent in intents),
            tuple(problems),
        )

    def pause(self, time: float, mode: Mode) -> Outcome:
        """What is to be told between steps: at a standstill of the training, or at its end (R6). Nothing else moves."""
        now = self.clock.standing_at(time)
        self._looks += 1
        incidents = [self._silence(incident, now) for incident in self.book.open()]
        intents, self.standing = escalate(incidents, self.standing, self.policy, now, mode)
        problems: list[Problem] = []
        detailed = tuple(self._with_details(intent, problems) for intent in intents)
        return Outcome(now, (), tuple(incidents), detailed, tuple(problems))

    def replace(
        self, rules: Sequence[Rule], policy: Policy, no_data_after: int, receivers: Container[str], time: float
    ) -> Outcome:
        """Judge by other rules from the next step on. Alerts of a rule that keeps its name go on as they are.

        Those of a rule that is gone end, and whoever was told of them is told. A new rule sees the samples that the
        old ones have had kept; what nobody looked at begins now.
        """
        now, before, known = self.clock.standing_at(time), self.policy, self._by_rule
        gone = [watch for name, watch in known.items() if name not in {rule.name for rule in rules}]
        transitions = [self.book.page(each.rule.name).ledger.end(each.rule.name, now) for each in gone]
        ended = self.book.settle([(each.subject, found) for each, found in zip(gone, transitions, strict=True)], now)
        intents: list[Intent] = []
        if ended:
            intents, self.standing = escalate([*self.book.open(), *ended], self.standing, before, now)
        for each in gone:
            self.book.pages.pop(each.rule.name, None)
        self.policy = policy
        self.history.trim()  # what the old rules need: how full a ring is differs in a replay
        self._compile(rules, no_data_after)
        for watch in self.watches:
            watch.take_over(known.get(watch.rule.name))
        self.standing = moved(self.standing, self.book.open(), before, policy, receivers)
        flat = tuple(each for found in transitions for each in found)
        return Outcome(now, flat, tuple(ended), tuple(self._with_details(intent, []) for intent in intents))

    def rewind(self, step: int) -> tuple[Transitions, ...]:
        """The run goes back: `step` is the first one to come again (R12)."""
        to = self.clock.back(step)
        self.history.rewind(tick_of(step - 1))
        for watch in self.watches:
            watch.rewind(step)
        self.standing = rewind_standing(self.standing, to)
        return tuple(self.book.rewind(to, self._by_rule))

    def _hold_back(self, incident: Incident, now: Now) -> Incident:
        inhibited_by = self._by_rule[incident.rule].rule.inhibited_by
        return self._silence(inhibit.mark(incident, inhibited_by, self.book, self._shadows, now), now)

    def _silence(self, incident: Incident, now: Now) -> Incident:
        if self._silences or incident.silenced:
            labels = {**self._by_rule[incident.rule].rule.labels, **self._site}
            incident = silence.mark(incident, self._silences, labels, self.book, now)
        self.book.keep(incident)
        return incident

    def brought_up(self, incident: Incident) -> Incident:
        """An incident with the values of the last step; it keeps those of its last change while nobody asks."""
        if not incident.active:
            return incident
        return brought_up(incident, self._by_rule[incident.rule].subject, self.book.page(incident.rule).ledger)

    def _with_details(self, intent: Intent, problems: list[Problem]) -> Intent:
        """The intent with the series that its message will list."""
        incidents = tuple(self._detailed(incident, intent.now, problems) for incident in intent.incidents)
        return replace(intent, incidents=incidents, look=self._looks)

    def _detailed(self, incident: Incident, now: Now, problems: list[Problem]) -> Incident:
        if not incident.active:
            return incident
        watch = self._by_rule[incident.rule]
        incident = self.brought_up(incident)
        try:
            detailed = replace(incident, details=watch.details(incident, now))
            return watch.evidence.attach(detailed, self.history, now.step, watch.rule.limit)
        except Exception as error:
            problems.append(Problem(incident.rule, "failed", f"detail: {type(error).__name__}: {error}"))
            return incident
