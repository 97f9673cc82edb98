"""One rule at work: its compiled queries, when they are due, and what they say of a step."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from statistics import median
from typing import Literal

import numpy as np

from healthwatch.alerting.book import Book
from healthwatch.alerting.incident import Subject, worst_first
from healthwatch.alerting.inhibit import inhibited as agrees
from healthwatch.alerting.lifecycle import Timing
from healthwatch.alerting.model import (
    Incident,
    LabelSet,
    Now,
    Observation,
    Sample,
    Transition,
    Verdict,
)
from healthwatch.alerting.verdicts import NO_DATA, Positions, observe
from healthwatch.promql import Program, Query, Vector, ast
from healthwatch.rulefile import Rule
from healthwatch.stream import Frame, tick_of

COMPARISONS = ("==", "!=", ">", "<", ">=", "<=")
MOST_DETAILS = 100


@dataclass(frozen=True, slots=True)
class Problem:
    """A rule that could not be evaluated at a step, or that has never had data."""

    rule: str
    kind: Literal["failed", "no data"]
    message: str


@dataclass(slots=True)
class Watch:
    """A rule bound to a history. Beside the rule it remembers only how often its rows come."""

    rule: Rule
    subject: Subject
    query: Query
    until: Query | None
    detail: Query | None
    timing: Timing
    metrics: frozenset[str] | None  # None: a selector without a metric name
    positions: Positions = field(default_factory=Positions)
    rows: deque[int] = field(default_factory=lambda: deque(maxlen=9))
    silent: bool = True
    first_step: int | None = None

    @classmethod
    def of(cls, rule: Rule, program: Program, no_data_after: int) -> Watch:
        """Compile a rule's expressions into the program."""
        return cls(
            rule,
            Subject(rule.name, rule.severity, rule.mode == "shadow", worst(rule.expression.tree)),
            program.add(rule.expression, rule.lookback),
            None if rule.until is None else program.add(rule.until, rule.lookback),
            None if rule.detail is None else program.add(rule.detail, rule.lookback),
            Timing(rule.for_, rule.for_records, rule.keep_firing_for, no_data_after),
            _metrics(rule.expression.tree),
        )

    def advance(
        self, frame: Frame, book: Book, now: Now, attempt_step: int, problems: list[Problem]
    ) -> list[Transition]:
        """Evaluate the rule at every tick of the frame at which it is due, and move its alerts by one step."""
        if now.step <= self.rule.warmup or attempt_step <= self.rule.settle:
            return []
        live = book.page(self.rule.name).alerts
        try:
            seen = self._observe(frame, live, book)
            self._note_silence(now, problems)
        except Exception as error:
            problems.append(Problem(self.rule.name, "failed", f"{type(error).__name__}: {error}"))
            seen = dict.fromkeys(live, NO_DATA)
        return book.advance(self.rule.name, seen, now, self._patience() if live else self.timing)

    def _observe(self, frame: Frame, live: Collection[LabelSet], book: Book) -> dict[LabelSet, Observation]:
        due = self.query.due(frame)
        ticks = [(tick, self.query.evaluate(tick)) for tick in due]
        if due:
            self.rows.append(frame.step)
        if self.silent:
            self.silent = not any(vector.known.any() for _, vector in ticks)
        seen = observe(ticks, live, self.positions, self._micro_steps(frame))
        return seen if self.until is None or not live else self._hold(seen, self.until, frame, book)

    def _micro_steps(self, frame: Frame) -> Callable[[int], int | None]:
        """Which micro-step (from 1) a tick of the frame is, as far as this rule's metrics go."""

        def micro_step(tick: int) -> int | None:
            for column in frame.columns:
                ours = self.metrics is None or column.series.metric in self.metrics
                if ours and column.tick == tick and column.micro_step is not None:
                    return column.micro_step + 1
            return None

        return micro_step

    def _hold(
        self, seen: dict[LabelSet, Observation], until: Query, frame: Frame, book: Book
    ) -> dict[LabelSet, Observation]:
        """Let the rule's `until` speak for firing alerts that have become clear (R15)."""
        vector = until.evaluate(tick_of(frame.step))
        holding = {_nameless(vector.labels[position]) for position in np.flatnonzero(vector.kept)}
        for labels, alert in book.page(self.rule.name).firing().items():
            if seen[labels].verdict is Verdict.CLEAR and holding & {_nameless(labels), ()}:
                seen[labels] = Observation(Verdict.BREACH, alert.value, alert.micro_step)
        return seen

    def _note_silence(self, now: Now, problems: list[Problem]) -> None:
        if self.first_step is None:
            self.first_step = now.step
        if self.silent and now.step - self.first_step == self.timing.no_data_after:
            problems.append(Problem(self.rule.name, "no data", f"no data in {self.timing.no_data_after} steps"))

    def _patience(self) -> Timing:
        """No alert expires before three usual distances between the rule's rows (R6)."""
        steps = list(self.rows)
        distances = [later - earlier for earlier, later in pairwise(steps)]
        usual = int(3 * median(distances)) if distances else 0
        return replace(self.timing, no_data_after=max(self.timing.no_data_after, usual))

    def rewind(self, step: int) -> None:
        """Forget the rows that will come again."""
        self.rows = deque((row for row in self.rows if row < step), maxlen=self.rows.maxlen)

    def details(self, incident: Incident, now: Now) -> tuple[Sample, ...]:
        """The series of the rule's `detail` that belong to the incident's alerts, worst first."""
        if self.detail is None:
            return ()
        vector = self.detail.evaluate(tick_of(now.step))
        alerts = [sample.labels for sample in incident.firing]
        found = [sample for sample in kept(vector) if agrees(sample.labels, alerts)]
        return worst_first(found, self.subject)[:MOST_DETAILS]


def kept(vector: Vector) -> list[Sample]:
    """The samples that are in Prometheus' result."""
    return [Sample(vector.labels[position], float(vector.values[position])) for position in np.flatnonzero(vector.kept)]


def worst(tree: ast.Expr) -> Literal["highest", "lowest"]:
    """Which values are worst, by the comparison that decides the rule."""
    match tree:
        case ast.Paren(expr=inner):
            return worst(inner)
        case ast.Binary(op="<" | "<="):
            return "lowest"
        case ast.Binary(op=op, left=left) if op not in COMPARISONS:
            return worst(left)
        case _:
            return "highest"


def _metrics(tree: ast.Expr) -> frozenset[str] | None:
    names = [node.metric for node in ast.walk(tree) if isinstance(node, ast.VectorSelector)]
    return None if None in names else frozenset(name for name in names if name is not None)


def _nameless(labels: LabelSet) -> LabelSet:
    return tuple(pair for pair in labels if pair[0] != "__name__")


def watches(rules: Sequence[Rule], program: Program, no_data_after: int) -> tuple[Watch, ...]:
    """Every rule bound to one program; call `program.retain()` afterwards."""
    return tuple(Watch.of(rule, program, no_data_after) for rule in rules)
