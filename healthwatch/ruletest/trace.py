"""A test's samples through the engine: what fired, was pending, opened and was done at every step."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from healthwatch.alerting.escalation import LONGEST_WAIT, Ladder, Policy
from healthwatch.alerting.ledger import Ledger
from healthwatch.alerting.model import Incident, Intent
from healthwatch.alerting.watch import Problem
from healthwatch.config import LadderStep
from healthwatch.engine import Engine, Outcome
from healthwatch.promql import EvaluationError, Program, Vector
from healthwatch.rulefile import Rule
from healthwatch.ruletest.alerts import AlertSeries, asked_for
from healthwatch.ruletest.inputs import frames, standing
from healthwatch.ruletest.model import Case, ExprTest
from healthwatch.stream import Duration, Frame, History, LabelSet, SeriesTable, tick_of


@dataclass(frozen=True, slots=True)
class Firing:
    """An alert that fires, and its value at the last breach."""

    labels: LabelSet
    value: float


@dataclass(slots=True)
class Trace:
    """What a run of the engine left behind; steps ascend unless the run went back."""

    steps: list[int] = field(default_factory=list)
    firing: dict[int, Mapping[str, tuple[Firing, ...]]] = field(default_factory=dict)  # by step, then by rule
    phases: dict[str, dict[int, str]] = field(default_factory=dict)  # by rule: the steps at which it is not inactive
    incidents: dict[str, Incident] = field(default_factory=dict)  # by id, as they stood last
    actions: list[Intent] = field(default_factory=list)
    problems: dict[tuple[str, str], Problem] = field(default_factory=dict)
    frames: dict[int, Frame] = field(default_factory=dict)
    history: History = field(default_factory=lambda: History(SeriesTable()))

    def firing_at(self, step: int, rule: str) -> tuple[Firing, ...]:
        """As it stood after the last step that is not later."""
        passed = [each for each in self.firing if each <= step]
        return self.firing[max(passed)].get(rule, ()) if passed else ()

    def result(self, test: ExprTest) -> Vector | str:
        """What an expression gives, or why it gives nothing."""
        query = Program(self.history).add(test.expression, test.lookback)
        try:
            return query.evaluate(self._tick(test))
        except EvaluationError as error:
            return str(error)

    def _tick(self, test: ExprTest) -> int:
        if test.micro_step is None:
            return tick_of(test.step)
        frame = self.frames.get(test.step)
        return tick_of(test.step, test.micro_step - 1, (frame.micro_steps if frame else None) or test.micro_step)


def trace(case: Case, rules: Sequence[Rule], escalation: Mapping[str, tuple[LadderStep, ...]], every: int) -> Trace:
    """Run a test's samples through the engine.

    Raises:
        Invalid: the file with its samples can't be read.
    """
    table = SeriesTable()
    engine = Engine(rules, table, _policy(rules, escalation))
    seen = Trace(history=History(table))
    alerts = AlertSeries(rules, seen.history) if asked_for(case.expressions) else None
    last, times = None, standing(case)
    for frame, following in _with_next(frames(case, table, every)):
        if last is not None and frame.step <= last:
            _go_back(engine, seen, frame.step)
        last = frame.step
        seen.history.extend(frame)
        seen.steps.append(frame.step)
        seen.frames[frame.step] = frame
        _note(seen, engine, frame.step, engine.step(frame))
        _stand_still(seen, engine, frame, times(frame, following))
        if alerts is not None:
            alerts.write({rule: page.ledger for rule, page in engine.book.pages.items()}, frame.step)
    return seen


def _with_next(given: Iterator[Frame]) -> Iterator[tuple[Frame, Frame | None]]:
    before: Frame | None = None
    for frame in given:
        if before is not None:
            yield before, frame
        before = frame
    if before is not None:
        yield before, None


def _go_back(engine: Engine, seen: Trace, step: int) -> None:
    engine.rewind(step)
    seen.history.rewind(tick_of(step - 1))
    seen.steps = [each for each in seen.steps if each < step]


def _stand_still(seen: Trace, engine: Engine, frame: Frame, times: Sequence[float]) -> None:
    """Until the next step ends: rules on the wall clock are evaluated, and after a minute waits for steps end."""
    for time in times:
        outcome = engine.tick(time) if engine.uses_clock else None
        if outcome is not None:
            _note(seen, engine, frame.step, outcome)
        if time - frame.time >= LONGEST_WAIT:
            seen.actions += engine.pause(time, "standstill").intents


def _note(seen: Trace, engine: Engine, step: int, outcome: Outcome) -> None:
    seen.incidents |= {incident.id: incident for incident in outcome.incidents}
    seen.actions += outcome.intents
    for problem in outcome.problems:
        seen.problems.setdefault((problem.rule, problem.kind), problem)
    pages = {rule: page.ledger for rule, page in engine.book.pages.items()}
    seen.firing[step] = {rule: tuple(_firing(ledger)) for rule, ledger in pages.items() if len(ledger)}
    for rule, ledger in pages.items():
        if len(ledger):
            seen.phases.setdefault(rule, {})[step] = "firing" if len(ledger.firing()) else "pending"
        else:
            seen.phases.get(rule, {}).pop(step, None)


def _firing(ledger: Ledger) -> Iterator[Firing]:
    rows = ledger.firing()
    values = ledger.values(rows)
    for row, value in zip(rows, np.atleast_1d(values), strict=True):
        yield Firing(ledger.labels[row], float(value))


def _policy(rules: Sequence[Rule], escalation: Mapping[str, tuple[LadderStep, ...]]) -> Policy:
    ladders = {rule.name: escalation.get(rule.ladder, ()) for rule in rules}

    def ladder(incident: Incident) -> Ladder:
        return ladders[incident.rule]

    def group(_: Incident) -> LabelSet:
        return ()

    def group_interval(_: str) -> Duration:
        return Duration(steps=50)

    return Policy(ladder, group, group_interval)
