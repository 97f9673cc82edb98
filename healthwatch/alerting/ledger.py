"""The alerts of one rule that are pending or firing.

A handful are objects (`few`), which is the quickest for the usual one or two that come and go; all others are columns
(`many`), so that ten thousand take no longer than a step may.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from healthwatch.alerting import few, many
from healthwatch.alerting.few import Entry
from healthwatch.alerting.lifecycle import Timing
from healthwatch.alerting.many import NO_TABLE, NOBODY, Table, together
from healthwatch.alerting.model import IS_FIRING, Alert, LabelSet, Now, Transitions
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
    Alerts,
    alert_of,
    last_verdict,
    rows_of,
)
from healthwatch.alerting.verdicts import Seen

_MANY, _FEW = 8, 4
"""From so many alerts on columns are faster; below so few all of them are objects again."""

_HANDFUL = 64
"""Up to so many places a set is the quickest way to tell them apart."""

Rows = NDArray[np.intp]
Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]


class Ledger:
    """Rows of alerts in columns stand first, each kind in the order of the rule's last result; those whose label set
    is no longer in it stand behind.
    """

    def __init__(self) -> None:
        self.result: Sequence[LabelSet] = ()  # the label sets of the last result
        self.last_end: Now | None = None  # the last breach or clear of those firing alerts that ended last
        self._stand(NO_TABLE, [])

    def _stand(self, table: Table, entries: list[Entry]) -> None:
        """Alerts have begun or ended, or stand in another order."""
        self._table, self._few, self._size = table, entries, len(table.labels) + len(entries)
        self._whole: Table | None = None  # the columns of all of them, once somebody asks
        self._labels: list[LabelSet] | None = None
        self._firing: Rows | None = None

    def __len__(self) -> int:
        """How many alerts are pending or firing."""
        return self._size

    @property
    def labels(self) -> list[LabelSet]:
        """By row; another list whenever an alert begins or ends."""
        if self._labels is None:
            self._labels = self._table.labels + [entry.labels for entry in self._few]
        return self._labels

    def advance(self, rule: str, seen: Seen, now: Now, timing: Timing) -> list[Transitions]:
        """One step for every alert that lives or breaches."""
        if seen.labels is not self.result:
            self._align(seen.labels)
        begins = self._unknown(seen)
        if len(self._few) + len(begins) >= _MANY:
            self._gather()
            return self._turned(rule, many.step(self._table, np.asarray(begins, np.intp), seen, now, timing), None, now)
        columns = None
        if self._table.labels:
            if len(self) + len(begins) < _FEW:
                self._scatter()
            else:
                columns = many.step(self._table, NOBODY.places, seen, now, timing)
        objects = few.step(self._few, begins, seen, now, timing) if self._few or begins else None
        return self._turned(rule, columns, objects, now)

    def rewind(self, rule: str, to: Now) -> list[Transitions]:
        """Every alert as it stands in a run that goes back to step `to.step`."""
        return self._turned(rule, many.back(self._table, to), few.back(self._few, to), to)

    def end(self, rule: str, now: Now) -> list[Transitions]:
        """The rule is gone: nobody will say of its alerts any more whether they go on."""
        self._gather()
        return self._turned(rule, many.all_at(EXPIRED, self._table), None, now)

    def firing(self) -> Rows:
        """The rows of the alerts that fire, by place in the result; the same array until an alert begins or ends."""
        if self._firing is None:
            self._firing = (self._table.rows[:, PHASE] == FIRING).nonzero()[0]
            behind = len(self._table.labels)
            some = [row for row, entry in enumerate(self._few, behind) if entry.alert.phase is IS_FIRING]
            if some:
                rows = np.concatenate((self._firing, some))
                self._firing = rows[many.order(self._columns().places[rows], len(self.result))]
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
        self.result = ()
        self._stand(Table(list(labels), np.full(len(rows), -1), rows.copy()), [])

    def alert(self, row: int) -> Alert:
        return alert_of(self._columns().rows[row])

    def _unknown(self, seen: Seen) -> list[int]:
        """The places where something breaches that has no alert."""
        places, entries = self._table.places, self._few
        if seen.places is None or len(seen.places) + len(places) > _HANDFUL:
            return self._unknown_of_many(seen)
        breaching: list[int] = seen.places.tolist()
        if not breaching or not (entries or len(places)):
            return breaching
        known = {*places.tolist(), *[entry.place for entry in entries]}
        return [place for place in breaching if place not in known]

    def _unknown_of_many(self, seen: Seen) -> list[int]:
        """Over the whole result, which is far quicker than a difference of two sets of places."""
        begins, places = seen.breach.copy(), self._table.places
        if len(places):
            begins[places if places[-1] >= 0 else places[places >= 0]] = False
        for entry in self._few:
            if entry.place >= 0:
                begins[entry.place] = False
        fresh: list[int] = begins.nonzero()[0].tolist()
        return fresh

    def _turned(
        self, rule: str, columns: many.Turned | None, objects: few.Turned | None, now: Now
    ) -> list[Transitions]:
        """Let the alerts be what they have become; what has changed."""
        found: list[Transitions] = []
        table, entries, end = self._table, self._few, None
        if columns is not None and columns.anything():
            found, end = many.transitions(rule, table, columns, now), many.last_end(table, columns)
            table = many.settled(table, columns, len(self.result))
        if objects is not None:
            entries, turns = objects
            if turns:
                found, end = together(found, few.transitions(rule, turns, now)), few.last_end(turns, end)
            if table.labels and any(entry.alert.phase is IS_FIRING for entry in entries):
                table, entries = self._firing_together(table, entries)
        if found:
            self.last_end = end or self.last_end
            self._stand(table, entries)
        else:
            self._few, self._whole = entries, None
        return found

    def _columns(self) -> Table:
        """All alerts as columns."""
        if not self._few:
            return self._table
        if self._whole is None:
            self._whole = many.joined(self._table, _columns_of(self._few))
        return self._whole

    def _firing_together(self, table: Table, entries: list[Entry]) -> tuple[Table, list[Entry]]:
        """Those that fire go on beside the columns that fire, which costs nothing; the others may end at any step."""
        firing = [entry for entry in entries if entry.alert.phase is IS_FIRING]
        table = many.ordered(many.joined(table, _columns_of(firing)), len(self.result))
        return table, [entry for entry in entries if entry.alert.phase is not IS_FIRING]

    def _gather(self) -> None:
        """Let all alerts be columns."""
        if self._few:
            self._stand(many.ordered(self._columns(), len(self.result)), [])

    def _scatter(self) -> None:
        """Let all alerts be objects."""
        table = many.ordered(self._columns(), len(self.result))
        alerts = map(alert_of, table.rows)
        self._stand(NO_TABLE, [Entry(*each) for each in zip(table.places.tolist(), table.labels, alerts, strict=True)])

    def _align(self, result: Sequence[LabelSet]) -> None:
        """Give every alert its place in a result that has other label sets."""
        self.result = result
        if not len(self):
            return
        wanted, table = set(self.labels), self._table
        known = {labels: place for place, labels in enumerate(result) if labels in wanted}
        places = np.array([known.get(labels, -1) for labels in table.labels], np.intp)
        entries = [entry._replace(place=known.get(entry.labels, -1)) for entry in self._few]
        table = many.ordered(Table(table.labels, places, table.rows), len(result))
        self._stand(table, few.ordered(entries))


def _columns_of(entries: Sequence[Entry]) -> Table:
    places = np.array([entry.place for entry in entries], np.intp)
    return Table([entry.labels for entry in entries], places, rows_of(entry.alert for entry in entries))
