"""The alerts of one rule that are pending or firing, one row each.

A few of them go through `lifecycle.advance` one by one; many take the same steps together, as columns.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from healthwatch.alerting.lifecycle import Timing, advance, rewind
from healthwatch.alerting.model import (
    Alert,
    Change,
    LabelSet,
    Now,
    Observation,
    Phase,
    Transitions,
    Verdict,
)
from healthwatch.alerting.rows import (
    ATTEMPT,
    BY_CODE,
    CLEAR,
    CLEARED,
    CODE_OF,
    ENDS,
    EXPIRED,
    FIRED,
    FIRING,
    GOES_ON,
    LAST_VERDICT,
    MICRO_STEP,
    NEVER,
    PHASE,
    PHASES,
    REWOUND,
    SINCE,
    VALUE,
    WIDTH,
    Alerts,
    Codes,
    alert_of,
    begun,
    now_of,
    row_of,
    turned,
    wound_back,
)
from healthwatch.alerting.verdicts import Seen

_MANY = 8
"""From so many alerts on columns are faster."""

Rows = NDArray[np.intp]
Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]


@dataclass(frozen=True, slots=True, eq=False)
class _Fresh:
    """Label sets that breach and had no alert: their places in the result, their rows, and how they begin."""

    places: Rows
    rows: Alerts
    codes: Codes


class Ledger:
    """Rows stand in the order of the rule's last result; alerts whose label set is no longer in it stand behind."""

    def __init__(self) -> None:
        self.labels: list[LabelSet] = []  # by row; another list whenever an alert begins or ends
        self.result: Sequence[LabelSet] = ()  # the label sets of the last result
        self._rows = np.zeros((0, WIDTH))
        self._places: Rows = np.zeros(0, np.intp)  # of each row in the result, -1 behind it
        self._alive = np.zeros(0, bool)  # by place
        self._firing: Rows | None = None

    def __len__(self) -> int:
        """How many alerts are pending or firing."""
        return len(self._rows)

    def advance(self, rule: str, seen: Seen, now: Now, timing: Timing) -> list[Transitions]:
        """One step for every alert that lives or breaches."""
        if seen.labels is not self.result:
            self._align(seen.labels)
        places = seen.breach.nonzero()[0]
        if len(self._rows):
            places = places[~self._alive[places]]
        elif not len(places):
            return []
        before = self._rows[:, PHASE].copy()
        if len(self._rows) + len(places) < _MANY and not seen.kept_up:
            codes, fresh = self._one_by_one(places, seen, now, timing)
        else:
            codes, fresh = self._together(places, seen, now, timing)
        return self._take(rule, before, codes, fresh, now)

    def rewind(self, rule: str, to: Now) -> list[Transitions]:
        """Every alert as it stands in a run that goes back to step `to.step`."""
        before = self._rows[:, PHASE].copy()
        if len(self._rows) < _MANY:
            codes = self._each(rewind(alert, to) for alert in map(self.alert, range(len(self._rows))))
        else:
            codes = np.where(wound_back(self._rows, to), REWOUND, GOES_ON).astype(np.uint8)
        return self._take(rule, before, codes, _NOBODY, to)

    def end(self, rule: str, now: Now) -> list[Transitions]:
        """The rule is gone: nobody will say of its alerts any more whether they go on."""
        codes = np.full(len(self._rows), EXPIRED, np.uint8)
        return self._take(rule, self._rows[:, PHASE].copy(), codes, _NOBODY, now)

    def firing(self) -> Rows:
        """The rows of the alerts that fire."""
        if self._firing is None:
            self._firing = (self._rows[:, PHASE] == FIRING).nonzero()[0]
        return self._firing

    def firing_at(self, labels: Sequence[LabelSet], mask: Mask) -> list[int]:
        """The places of a mask over `labels`, those of a result, at which an alert fires."""
        if labels is not self.result:
            self._align(labels)
        places = self._places[self.firing()]
        places = places[places >= 0]
        found: list[int] = places[mask[places]].tolist()
        return found

    def values(self, rows: Rows) -> Floats:
        """The values at the last breach."""
        return np.asarray(self._rows[rows, VALUE])

    def breached(self, rows: Rows, now: Now) -> NDArray[np.bool_]:
        """Which of the rows breached at this very step."""
        found = self._rows[rows]
        here = (found[:, LAST_VERDICT] == now.step) & (found[:, LAST_VERDICT + ATTEMPT] == now.attempt)
        return np.asarray(here & (found[:, CLEARED] == NEVER))

    def earliest(self, rows: Rows) -> Rows:
        """Those of the rows whose first breach is the earliest: the same attempt, step and micro-step."""
        micro_steps = self._rows[:, MICRO_STEP]
        at_the_end = np.where(micro_steps == NEVER, np.inf, micro_steps)  # a breach at a step's end came after those
        for column in (self._rows[:, SINCE + ATTEMPT], self._rows[:, SINCE], at_the_end):
            keys = column[rows]
            rows = rows[keys == keys.min()]
        return rows

    def last_verdict(self, rows: Rows) -> Now | None:
        """The last breach or clear of any of the rows."""
        found = self._rows[rows, LAST_VERDICT:WIDTH] if len(rows) < len(self._rows) else self._rows[:, LAST_VERDICT:]
        attempts = found[:, ATTEMPT]
        last = np.where(attempts == attempts.max(), found[:, 0], NEVER).argmax()
        return now_of(found[last].tolist())

    def live(self) -> tuple[list[LabelSet], Alerts]:
        """The alerts that are pending or firing: their label sets and their rows."""
        return self.labels, self._rows

    def revive(self, labels: Sequence[LabelSet], rows: Alerts) -> None:
        """Take in what `live` gave, before the first step."""
        self.labels, self.result = list(labels), ()
        self._rows, self._places = rows.copy(), np.full(len(rows), -1)
        self._alive, self._firing = np.zeros(0, bool), None

    def alert(self, row: int) -> Alert:
        return alert_of(self._rows[row])

    def _one_by_one(self, places: Rows, seen: Seen, now: Now, timing: Timing) -> tuple[Codes, _Fresh]:
        codes = self._each(
            advance(self.alert(row), seen.observation(place) if place >= 0 else _NO_DATA, now, timing)
            for row, place in enumerate(self._places.tolist())
        )
        began = [advance(_INACTIVE, seen.observation(place), now, timing) for place in places.tolist()]
        if not began:
            return codes, _NOBODY
        rows = np.array([row_of(alert) for alert, _ in began], float)
        return codes, _Fresh(places, rows, np.array([CODE_OF[change] for _, change in began], np.uint8))

    def _each(self, after: Iterator[tuple[Alert, Change | None]]) -> Codes:
        """Put in what became of each alert. One that has ended keeps its row until its end has been told."""
        codes = np.zeros(len(self._rows), np.uint8)
        for row, (alert, change) in enumerate(after):
            codes[row] = CODE_OF[change]
            if alert.phase is not Phase.INACTIVE:
                self._rows[row] = row_of(alert)
        return codes

    def _together(self, places: Rows, seen: Seen, now: Now, timing: Timing) -> tuple[Codes, _Fresh]:
        codes = np.zeros(0, np.uint8)
        if len(self._rows):
            breach, known = seen.breach[self._places], seen.known[self._places]
            if self._places[-1] < 0:
                inside = self._places >= 0
                breach, known = breach & inside, known & inside
            values = seen.values(self._places[breach])
            kept_up = np.isin(self._places, seen.kept_up) if seen.kept_up else None
            codes = turned(self._rows, breach, known, values, kept_up, now, timing)
        if not len(places):
            return codes, _NOBODY
        return codes, _Fresh(places, *begun(seen.values(places), seen.micro_steps(places), now, timing))

    def _take(self, rule: str, before: Floats, codes: Codes, fresh: _Fresh, now: Now) -> list[Transitions]:
        """What has changed, each kind in the order of the result; then the rows as they stand now."""
        changed = codes.nonzero()[0]
        if not len(changed) and not len(fresh.places):
            return []
        self._firing = None
        found = self._turned(rule, before, codes, changed, now)
        if len(fresh.places):
            found.append(self._begun(rule, fresh, now))
            found.sort(key=_by_reason)
        ended = ENDS[codes] if len(changed) else _NONE_OF_THEM
        if len(fresh.places) or np.count_nonzero(ended):
            self._place(ended, fresh)
        return found

    def _turned(self, rule: str, before: Floats, codes: Codes, changed: Rows, now: Now) -> list[Transitions]:
        reasons, phases = codes[changed], before[changed]
        kinds = sorted(set(zip(reasons.tolist(), map(int, phases.tolist()), strict=True)))
        if len(kinds) == 1:
            return [self._alike(rule, changed, *kinds[0], now)]
        return [
            self._alike(rule, changed[(reasons == code) & (phases == phase)], code, phase, now) for code, phase in kinds
        ]

    def _alike(self, rule: str, rows: Rows, code: int, before: int, now: Now) -> Transitions:
        after = Phase.INACTIVE if code >= CLEAR else Phase.FIRING
        labels = [self.labels[row] for row in rows.tolist()]
        return Transitions(rule, PHASES[before], after, BY_CODE[code], now, labels, *_told(self._rows[rows]))

    def _begun(self, rule: str, fresh: _Fresh, now: Now) -> Transitions:
        """They all fire at once, or none does."""
        code = int(fresh.codes[0])
        after = Phase.FIRING if code == FIRED else Phase.PENDING
        labels = [self.result[place] for place in fresh.places.tolist()]
        return Transitions(rule, Phase.INACTIVE, after, BY_CODE[code], now, labels, *_told(fresh.rows))

    def _place(self, ended: Mask, fresh: _Fresh) -> None:
        """Let ended alerts go and put fresh ones where they belong."""
        rows, places, labels = self._rows, self._places, self.labels
        if np.count_nonzero(ended):
            staying = (~ended).nonzero()[0]
            self._alive[places[ended & (places >= 0)]] = False
            rows, places, labels = rows[staying], places[staying], [labels[row] for row in staying.tolist()]
        if len(fresh.places):
            self._alive[fresh.places] = True
            rows, places = np.concatenate((rows, fresh.rows)), np.concatenate((places, fresh.places))
            labels = labels + [self.result[place] for place in fresh.places.tolist()]
            if (places[1:] < places[:-1]).any():
                order = np.where(places < 0, len(self.result), places).argsort(kind="stable")
                rows, places, labels = rows[order], places[order], [labels[row] for row in order.tolist()]
        self._rows, self._places, self.labels = rows, places, labels

    def _align(self, result: Sequence[LabelSet]) -> None:
        """Give every alert its place in a result that has other label sets."""
        self.result = result
        if len(self._rows):
            wanted = set(self.labels)
            known = {labels: place for place, labels in enumerate(result) if labels in wanted}
            places = np.array([known.get(labels, -1) for labels in self.labels], np.intp)
            order = np.where(places < 0, len(result), places).argsort(kind="stable")
            self.labels = [self.labels[row] for row in order]
            self._rows, self._places = self._rows[order], places[order]
            self._firing = None
        self._alive = np.zeros(len(result), bool)
        self._alive[self._places[self._places >= 0]] = True


_NONE_OF_THEM = np.zeros(0, bool)
_NO_DATA = Observation(Verdict.NO_DATA)
_INACTIVE = Alert()
_NOBODY = _Fresh(np.zeros(0, np.intp), np.zeros((0, WIDTH)), np.zeros(0, np.uint8))


def _by_reason(found: Transitions) -> int:
    return CODE_OF[found.reason]


def _told(rows: Alerts) -> tuple[list[int | None], list[float]]:
    """Micro-steps and values, as people are told of them."""
    return [None if each == NEVER else int(each) for each in rows[:, MICRO_STEP].tolist()], rows[:, VALUE].tolist()
