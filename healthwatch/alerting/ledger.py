"""The alerts of one rule that are pending or firing.

A handful are objects (`few`), which is the quickest for the usual one or two; many are columns (`many`), so that ten
thousand take no longer than a step may.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from healthwatch.alerting import few, many
from healthwatch.alerting.few import BEHIND, Entry
from healthwatch.alerting.lifecycle import Timing
from healthwatch.alerting.many import Table
from healthwatch.alerting.model import Alert, LabelSet, Now, Phase, Transitions
from healthwatch.alerting.rows import (
    ATTEMPT,
    CLEARED,
    EXPIRED,
    FIRING,
    LAST_VERDICT,
    MICRO_STEP,
    NEVER,
    PHASE,
    SINCE,
    VALUE,
    WIDTH,
    Alerts,
    alert_of,
    last_verdict,
    row_of,
)
from healthwatch.alerting.verdicts import Seen

_MANY = 8
"""From so many alerts on columns are faster."""

Rows = NDArray[np.intp]
Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]


_NO_ROWS: Rows = np.zeros(0, np.intp)


class Ledger:
    """Rows stand in the order of the rule's last result; alerts whose label set is no longer in it stand behind."""

    def __init__(self) -> None:
        self.labels: list[LabelSet] = []  # by row; another list whenever an alert begins or ends
        self.result: Sequence[LabelSet] = ()  # the label sets of the last result
        self.last_end: Now | None = None  # the last breach or clear of those firing alerts that ended last
        self._few: list[Entry] | None = []  # None where there are many
        self._table: Table | None = None  # None until somebody asks for the columns of a few
        self._firing: Rows | None = None

    def __len__(self) -> int:
        """How many alerts are pending or firing."""
        return len(self.labels)

    def advance(self, rule: str, seen: Seen, now: Now, timing: Timing) -> list[Transitions]:
        """One step for every alert that lives or breaches."""
        if seen.labels is not self.result:
            self._align(seen.labels)
        breaching = seen.breach.nonzero()[0]
        if len(self.labels) + len(breaching) < _MANY:
            entries = self._entries()
            known = [entry.place for entry in entries]
            fresh = [place for place in breaching.tolist() if place not in known]
            return self._take_few(rule, few.step(entries, fresh, seen, now, timing), now)
        table = self._columns()
        begins = seen.breach.copy()  # over the whole result: far quicker than a difference of two sets of places
        begins[table.places[table.places >= 0]] = False
        what = many.step(table, begins.nonzero()[0], seen, now, timing)
        return self._take_many(rule, table, what, now)

    def rewind(self, rule: str, to: Now) -> list[Transitions]:
        """Every alert as it stands in a run that goes back to step `to.step`."""
        if len(self.labels) < _MANY:
            return self._take_few(rule, few.back(self._entries(), to), to)
        table = self._columns()
        return self._take_many(rule, table, many.back(table, to), to)

    def end(self, rule: str, now: Now) -> list[Transitions]:
        """The rule is gone: nobody will say of its alerts any more whether they go on."""
        table = self._columns()
        return self._take_many(rule, table, many.all_at(EXPIRED, table), now)

    def firing(self) -> Rows:
        """The rows of the alerts that fire; the same array until an alert begins or ends."""
        if self._firing is None and self._few is not None:
            firing = [row for row, entry in enumerate(self._few) if entry.alert.phase is Phase.FIRING]
            self._firing = np.array(firing, np.intp) if firing else _NO_ROWS
        elif self._firing is None:
            self._firing = (self._columns().rows[:, PHASE] == FIRING).nonzero()[0]
        return self._firing

    def firing_at(self, labels: Sequence[LabelSet], mask: Mask) -> list[int]:
        """The places of a mask over `labels`, those of a result, at which an alert fires."""
        if labels is not self.result:
            self._align(labels)
        places = self._columns().places[self.firing()]
        places = places[places >= 0]
        found: list[int] = places[mask[places]].tolist()
        return found

    def values(self, rows: Rows) -> Floats:
        """The values at the last breach."""
        return np.asarray(self._columns().rows[rows, VALUE])

    def breached(self, rows: Rows, now: Now) -> Mask:
        """Which of the rows breached at this very step."""
        found = self._columns().rows[rows]
        here = (found[:, LAST_VERDICT] == now.step) & (found[:, LAST_VERDICT + ATTEMPT] == now.attempt)
        return np.asarray(here & (found[:, CLEARED] == NEVER))

    def earliest(self, rows: Rows) -> Rows:
        """Those of the rows whose first breach is the earliest: the same attempt, step and micro-step."""
        everyone = self._columns().rows
        micro_steps = everyone[:, MICRO_STEP]
        at_the_end = np.where(micro_steps == NEVER, np.inf, micro_steps)  # a breach at a step's end came after those
        for column in (everyone[:, SINCE + ATTEMPT], everyone[:, SINCE], at_the_end):
            keys = column[rows]
            rows = rows[keys == keys.min()]
        return rows

    def last_verdict(self, rows: Rows) -> Now | None:
        """The last breach or clear of any of the rows."""
        everyone = self._columns().rows
        return last_verdict(everyone if len(rows) == len(everyone) else everyone[rows])

    def live(self) -> tuple[list[LabelSet], Alerts]:
        """The alerts that are pending or firing: their label sets and their rows."""
        return self.labels, self._columns().rows

    def revive(self, labels: Sequence[LabelSet], rows: Alerts) -> None:
        """Take in what `live` gave, before the first step."""
        self.labels, self.result = list(labels), ()
        self._few, self._table = None, Table(self.labels, np.full(len(rows), -1), rows.copy())
        self._firing = None

    def alert(self, row: int) -> Alert:
        return alert_of(self._columns().rows[row])

    def _take_few(self, rule: str, moved: tuple[list[Entry], Sequence[few.Turn]], now: Now) -> list[Transitions]:
        self._few, turns = moved
        self._table = None
        if not turns:
            return []
        self.labels, self._firing = [entry.labels for entry in self._few], None
        self.last_end = few.last_end(turns) or self.last_end
        return few.transitions(rule, turns, now)

    def _take_many(self, rule: str, table: Table, what: many.Turned, now: Now) -> list[Transitions]:
        self._few, self._table = None, table
        if not what.anything():
            return []
        found = many.transitions(rule, table, what, now)
        self.last_end = many.last_end(table, what) or self.last_end
        self._table = many.settled(table, what, len(self.result))
        self.labels, self._firing = self._table.labels, None
        return found

    def _entries(self) -> list[Entry]:
        if self._few is None:
            table = self._columns()
            places = [BEHIND if place < 0 else place for place in table.places.tolist()]
            self._few = [Entry(*each) for each in zip(places, table.labels, map(alert_of, table.rows), strict=True)]
        return self._few

    def _columns(self) -> Table:
        if self._table is None:
            entries = self._few or []
            places = np.array([-1 if entry.place == BEHIND else entry.place for entry in entries], np.intp)
            rows = np.array([row_of(entry.alert) for entry in entries], float).reshape(-1, WIDTH)
            self._table = Table(self.labels, places, rows)
        return self._table

    def _align(self, result: Sequence[LabelSet]) -> None:
        """Give every alert its place in a result that has other label sets."""
        self.result = result
        if not self.labels:
            return
        wanted, table = set(self.labels), self._columns()
        known = {labels: place for place, labels in enumerate(result) if labels in wanted}
        places = np.array([known.get(labels, -1) for labels in self.labels], np.intp)
        self._table = many.ordered(Table(self.labels, places, table.rows), len(result))
        self.labels, self._few, self._firing = self._table.labels, None, None
