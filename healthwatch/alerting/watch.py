"""One rule at work: its compiled queries, when they are due, and what they say of a step."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import islice, pairwise
from statistics import median
from typing import Literal

import numpy as np

from healthwatch.alerting.book import Book
from healthwatch.alerting.evidence import Evidence
from healthwatch.alerting.incident import Subject, worst_first
from healthwatch.alerting.inhibit import belong
from healthwatch.alerting.ledger import Ledger
from healthwatch.alerting.lifecycle import Timing
from healthwatch.alerting.model import Incident, LabelSet, Now, Sample, Transitions
from healthwatch.alerting.verdicts import Seen, fold
from healthwatch.promql import Derived, Program, Query, Vector, ast
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
    evidence: Evidence
    rows: deque[int] = field(default_factory=lambda: deque(maxlen=9))
    _places_until: Derived[dict[LabelSet, list[int]]] = field(default_factory=lambda: Derived(_by_nameless))
    silent: bool = True
    first_step: int | None = None

    @classmethod
    def of(cls, rule: Rule, program: Program, no_data_after: int) -> Watch:
        """Compile a rule's expressions into the program."""
        evidence = Evidence.of(rule.expression.tree, lowest=worst(rule.expression.tree) == "lowest")
        wanted = evidence.wants()
        if wanted is not None:
            program.add(replace(rule.expression, tree=wanted), rule.lookback)
        return cls(
            rule,
            Subject(rule.name, rule.severity, rule.mode == "shadow", worst(rule.expression.tree), rule.limit),
            program.add(rule.expression, rule.lookback),
            None if rule.until is None else program.add(rule.until, rule.lookback),
            None if rule.detail is None else program.add(rule.detail, rule.lookback),
            Timing(rule.for_, rule.for_records, rule.keep_firing_for, no_data_after),
            evidence,
        )

    def advance(
        self, frame: Frame, book: Book, now: Now, attempt_step: int, problems: list[Problem]
    ) -> list[Transitions]:
        """Evaluate the rule at every tick of the frame at which it is due, and move its alerts by one step."""
        if now.step <= self.rule.warmup or attempt_step <= self.rule.settle:
            return []
        ledger = book.page(self.rule.name).ledger
        try:
            seen = self._observe(frame, ledger)
            if self.silent or self.first_step is None:
                self._note_silence(now, problems)
        except Exception as error:
            problems.append(Problem(self.rule.name, "failed", f"{type(error).__name__}: {error}"))
            seen = fold((), ledger.result, _no_micro_step)
        if seen is None:
            return []
        return ledger.advance(self.rule.name, seen, now, self._patience() if len(ledger) else self.timing)

    def tick(self, book: Book, now: Now, problems: list[Problem]) -> list[Transitions]:
        """Evaluate a rule on the wall clock between two steps, and move its alerts."""
        if now.step <= self.rule.warmup:
            return []
        ledger, tick = book.page(self.rule.name).ledger, tick_of(now.step)
        try:
            seen = fold([(tick, self.query.evaluate(tick))], ledger.result, _no_micro_step)
        except Exception as error:
            problems.append(Problem(self.rule.name, "failed", f"{type(error).__name__}: {error}"))
            return []
        return ledger.advance(self.rule.name, seen, now, self.timing)

    def _observe(self, frame: Frame, ledger: Ledger) -> Seen | None:
        """None where nothing breaches and no alert lives: as nearly always."""
        ticks, breaching = [], False
        for tick in self.query.due(frame):
            vector = self.query.evaluate(tick)
            ticks.append((tick, vector))
            breaching = breaching or vector.breaches()
        if ticks:
            self.rows.append(frame.step)
            if self.silent:
                self.silent = not any(vector.known.any() for _, vector in ticks)
        if not breaching and not len(ledger):
            return None
        seen = fold(ticks, ledger.result, self.query.micro_step)
        return seen if self.until is None or not len(ledger) else self._hold(seen, self.until, frame, ledger)

    def _hold(self, seen: Seen, until: Query, frame: Frame, ledger: Ledger) -> Seen:
        """Let the rule's `until` speak for firing alerts that have become clear (R15)."""
        clear = ledger.firing_at(seen.labels, seen.known & ~seen.breach)
        if not clear:
            return seen
        vector = until.evaluate(tick_of(frame.step))
        places = self._places_until(vector.labels)

        def breaching(labels: LabelSet) -> bool:
            return any(vector.kept[place] for place in places.get(labels, ()))

        everyone = breaching(())
        kept_up = [place for place in clear if everyone or breaching(_nameless(seen.labels[place]))]
        return replace(seen, kept_up=tuple(kept_up))

    def _note_silence(self, now: Now, problems: list[Problem]) -> None:
        if self.first_step is None:
            self.first_step = now.step
        if self.silent and now.step - self.first_step == self.timing.no_data_after:
            problems.append(Problem(self.rule.name, "no data", f"no data in {self.timing.no_data_after} steps"))

    def _patience(self) -> Timing:
        """No alert expires before three usual distances between the rule's rows (R6)."""
        rows = self.rows
        if not rows or 3 * (rows[-1] - rows[0]) <= self.timing.no_data_after:
            return self.timing
        usual = int(3 * median(later - earlier for earlier, later in pairwise(rows)))
        return replace(self.timing, no_data_after=max(self.timing.no_data_after, usual))

    def take_over(self, other: Watch | None) -> None:
        """What an earlier version of the rule remembers beside its alerts."""
        if other is not None:
            self.rows, self.silent, self.first_step = other.rows, other.silent, other.first_step

    def rewind(self, step: int) -> None:
        """Forget the rows that will come again."""
        self.rows = deque((row for row in self.rows if row < step), maxlen=self.rows.maxlen)

    def details(self, incident: Incident, now: Now) -> tuple[Sample, ...]:
        """The series of the rule's `detail` that belong to the incident's alerts, worst first."""
        if self.detail is None:
            return ()
        vector = self.detail.evaluate(tick_of(now.step))
        alerts = [sample.labels for sample in incident.firing]
        samples = (Sample(vector.labels[place], float(vector.values[place])) for place in self._worst_places(vector))
        found = islice((sample for sample in samples if belong(sample.labels, alerts)), MOST_DETAILS)
        return worst_first(list(found), self.subject)

    def _worst_places(self, vector: Vector) -> list[int]:
        """Where the samples of Prometheus' result stand, worst first; NaN is worse than any number."""
        places = vector.kept.nonzero()[0]
        values = vector.values[places] if self.subject.worst == "highest" else -vector.values[places]
        order: list[int] = places[np.argsort(-np.where(np.isnan(values), np.inf, values), kind="stable")].tolist()
        return order


def _by_nameless(labels: Sequence[LabelSet]) -> dict[LabelSet, list[int]]:
    places: dict[LabelSet, list[int]] = {}
    for place, each in enumerate(labels):
        places.setdefault(_nameless(each), []).append(place)
    return places


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


def _no_micro_step(_: int) -> None:
    return None


def _nameless(labels: LabelSet) -> LabelSet:
    return tuple(pair for pair in labels if pair[0] != "__name__")


def watches(rules: Sequence[Rule], program: Program, no_data_after: int) -> tuple[Watch, ...]:
    """Every rule bound to one program; call `program.retain()` afterwards."""
    return tuple(Watch.of(rule, program, no_data_after) for rule in rules)
