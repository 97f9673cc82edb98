"""The alerts of one rule, one row a label set.

Whoever merely goes on is held in bulk; whoever changes its phase goes through `lifecycle.advance`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from healthwatch.alerting.lifecycle import INACTIVE, Change, Timing, advance, rewind
from healthwatch.alerting.model import Alert, LabelSet, Now, Observation, Phase, Transition, Verdict
from healthwatch.alerting.verdicts import Seen
from healthwatch.stream.ticks import Duration

MOMENT = np.dtype([("step", "i8"), ("time", "f8"), ("attempt", "i4"), ("clock", "f8")])
ROW = np.dtype(
    [
        ("phase", "u1"),
        ("micro_step", "i4"),
        ("breaches", "i8"),
        ("value", "f8"),
        ("since", MOMENT),
        ("fired", MOMENT),
        ("cleared", MOMENT),
        ("last_verdict", MOMENT),
    ]
)
NEVER = -1  # the step of a moment that has not come; as a micro-step: none
PHASES = (Phase.INACTIVE, Phase.PENDING, Phase.FIRING)
INACTIVE_ROW, PENDING_ROW, FIRING_ROW = range(3)

_BULK = 8
"""From so many rows on it pays to hold in bulk."""

Rows = NDArray[np.intp]


class Ledger:
    """Rows follow the label sets of the rule's last result; alerts that live and are no longer in it stand behind."""

    def __init__(self) -> None:
        self.labels: list[LabelSet] = []
        self.result: Sequence[LabelSet] = ()  # the label sets of the last result
        self._rows = np.zeros(0, ROW)
        self._live = np.zeros(0, bool)

    def __len__(self) -> int:
        """How many alerts are pending or firing."""
        return int(self._live.sum())

    def advance(self, rule: str, seen: Seen, now: Now, timing: Timing) -> list[Transition]:
        """One step for every alert that lives or breaches."""
        self._align(seen.labels)
        rows = np.flatnonzero(self._interest(seen.breach))
        if not len(rows):
            return []
        if len(rows) >= _BULK or len(seen.kept_up):
            rows = rows[~self._hold(rows, seen, now, timing)]
        return [
            transition
            for row, observation in self._observations(rows, seen)
            for before in (self.alert(row),)
            for transition in self._turn(rule, row, before, *advance(before, observation, now, timing), now)
        ]

    def rewind(self, rule: str, to: Now) -> list[Transition]:
        """Every alert as it stands in a run that goes back to step `to.step`."""
        return [
            transition
            for row in np.flatnonzero(self._live)
            for before in (self.alert(int(row)),)
            for transition in self._turn(rule, int(row), before, *rewind(before, to), to)
        ]

    def end(self, rule: str, now: Now) -> list[Transition]:
        """The rule is gone: nobody will say of its alerts any more whether they go on."""
        return [
            transition
            for row in np.flatnonzero(self._live)
            for transition in self._turn(rule, int(row), self.alert(int(row)), INACTIVE, "expired", now)
        ]

    def firing(self) -> Rows:
        """The rows of the alerts that fire."""
        live = np.flatnonzero(self._live)
        return np.asarray(live[self._rows["phase"][live] == FIRING_ROW])

    def values(self, rows: Rows) -> NDArray[np.float64]:
        """The values at the last breach."""
        found: NDArray[np.float64] = self._rows["value"][rows]
        return found

    def breached(self, rows: Rows, now: Now) -> NDArray[np.bool_]:
        """Which of the rows breached at this very step."""
        found = self._rows[rows]
        here = (found["last_verdict"]["step"] == now.step) & (found["last_verdict"]["attempt"] == now.attempt)
        return np.asarray(here & (found["cleared"]["step"] == NEVER))

    def earliest(self, rows: Rows) -> Rows:
        """Those of the rows whose first breach is the earliest: the same attempt, step and micro-step."""
        for key in (lambda found: found["since"]["attempt"], lambda found: found["since"]["step"], _micro_step):
            keys = key(self._rows[rows])
            rows = np.asarray(rows[keys == keys.min()])
        return rows

    def last_verdict(self, rows: Rows) -> Now | None:
        """The last breach or clear of any of the rows."""
        found = self._rows["last_verdict"][rows]
        return _now(found[np.argmax((found["attempt"].astype("i8") << 40) + found["step"])])

    def live(self) -> tuple[list[LabelSet], NDArray[Any]]:
        """The alerts that are pending or firing: their label sets, and their rows as an array of `ROW`."""
        rows = np.flatnonzero(self._live)
        return [self.labels[row] for row in rows], self._rows[rows]

    def living(self) -> NDArray[np.bool_]:
        """Which of `labels` have an alert that is pending or firing."""
        return self._live

    def revive(self, labels: Sequence[LabelSet], rows: NDArray[Any]) -> None:
        """Take in what `live` gave, before the first step."""
        self.labels, self.result = list(labels), ()
        self._rows, self._live = rows.copy(), np.ones(len(rows), bool)

    def alert(self, row: int) -> Alert:
        return _alert(self._rows[row])

    def _interest(self, breach: NDArray[np.bool_]) -> NDArray[np.bool_]:
        if len(breach) == len(self._live):
            return np.logical_or(breach, self._live)
        interest: NDArray[np.bool_] = self._live.copy()
        interest[: len(breach)] |= breach
        return interest

    def _verdicts(self, seen: Seen, rows: Rows) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        inside = rows < len(seen.breach)
        places = np.where(inside, rows, 0)
        if not len(seen.breach):
            return inside, inside.copy()
        breach = np.logical_and(inside, seen.breach[places])
        return breach, np.logical_and(inside & ~breach, seen.known[places])

    def _hold(
        self,
        rows: Rows,
        seen: Seen,
        now: Now,
        timing: Timing,
    ) -> NDArray[np.bool_]:
        """Move the rows whose phase stays as it is; returns which of `rows` they are."""
        found = self._rows[rows]
        breach, clear = self._verdicts(seen, rows)
        firing, pending = found["phase"] == FIRING_ROW, found["phase"] == PENDING_ROW
        again = firing & breach
        if len(seen.kept_up):
            kept_up = firing & clear & np.isin(rows, seen.kept_up)
            again, clear = again | kept_up, clear & ~kept_up
        waiting = _where(pending & breach, lambda: ~_due(found, now, timing))
        keeping = _where(firing & clear, lambda: ~_kept_long_enough(found, now, timing))
        silent = _where(
            (firing | pending) & ~(breach | clear | again),
            lambda: now.step - found["last_verdict"]["step"] < timing.no_data_after,
        )
        moment = np.array(_moment(now), MOMENT)
        if keeping.any():
            found["cleared"][keeping & (found["cleared"]["step"] == NEVER)] = moment
        held = again | waiting
        found["cleared"]["step"][again] = NEVER
        found["breaches"] += waiting
        found["last_verdict"][held | keeping] = moment
        breaching = np.flatnonzero(held & breach)
        found["value"][breaching] = seen.values(rows[breaching])
        self._rows[rows] = found
        return np.asarray(held | keeping | silent)

    def _observations(self, rows: Rows, seen: Seen) -> Iterator[tuple[int, Observation]]:
        for row in map(int, rows):
            yield row, seen.observation(row) if row < len(seen.breach) else Observation(Verdict.NO_DATA)

    def _turn(
        self, rule: str, row: int, before: Alert, after: Alert, change: Change | None, now: Now
    ) -> list[Transition]:
        if after is before:
            return []
        self._rows[row] = _row(after)
        self._live[row] = after.phase is not Phase.INACTIVE
        if change is None:
            return []
        told = before if after is INACTIVE else after
        return [Transition(rule, self.labels[row], before.phase, after.phase, change, now, told.micro_step, told.value)]

    def _align(self, result: Sequence[LabelSet]) -> None:
        """Give every label set of the result its row; only when the set of series has changed."""
        if result is self.result:
            return
        inside = set(result)
        behind = [self.labels[row] for row in np.flatnonzero(self._live) if self.labels[row] not in inside]
        labels = [*result, *behind]
        places = {each: row for row, each in enumerate(labels)}
        rows, live = np.zeros(len(labels), ROW), np.zeros(len(labels), bool)
        rows[:] = _row(INACTIVE)
        for old in np.flatnonzero(self._live):
            new = places[self.labels[old]]
            rows[new], live[new] = self._rows[old], True
        self.labels, self.result, self._rows, self._live = labels, result, rows, live


def _where(mask: NDArray[np.bool_], condition: Callable[[], NDArray[np.bool_]]) -> NDArray[np.bool_]:
    """`mask & condition()`, without asking where the mask is empty: it nearly always is."""
    return np.logical_and(mask, condition()) if mask.any() else mask


def _micro_step(found: NDArray[Any]) -> NDArray[Any]:
    """A breach at a step's end came after its micro-steps."""
    return np.where(found["micro_step"] == NEVER, np.iinfo("i4").max, found["micro_step"])


def _due(found: NDArray[Any], now: Now, timing: Timing) -> NDArray[np.bool_]:
    """As `lifecycle` has it, for a breach that comes on top."""
    if timing.for_records is not None:
        return np.asarray(found["breaches"] + 1 >= timing.for_records)
    return _elapsed(timing.for_, found["since"], now)


def _kept_long_enough(found: NDArray[Any], now: Now, timing: Timing) -> NDArray[np.bool_]:
    fresh = found["cleared"]["step"] == NEVER
    return np.where(
        fresh, timing.keep_firing_for.elapsed(0, 0.0), _elapsed(timing.keep_firing_for, found["cleared"], now)
    )


def _elapsed(duration: Duration, since: NDArray[Any], now: Now) -> NDArray[np.bool_]:
    if duration.steps is not None:
        return np.asarray(now.step - since["step"] >= duration.steps)
    return np.asarray(now.clock - since["clock"] >= (duration.seconds or 0.0))


def _moment(now: Now | None) -> tuple[int, float, int, float]:
    return (NEVER, 0.0, 0, 0.0) if now is None else (now.step, now.time, now.attempt, now.clock)


def _now(moment: tuple[int, float, int, float]) -> Now | None:
    return None if moment[0] == NEVER else Now(*moment)


def _row(alert: Alert) -> tuple[Any, ...]:
    micro_step = NEVER if alert.micro_step is None else alert.micro_step
    clocks: Callable[[Now | None], tuple[int, float, int, float]] = _moment
    return (
        PHASES.index(alert.phase),
        micro_step,
        alert.breaches,
        alert.value,
        clocks(alert.since),
        clocks(alert.fired),
        clocks(alert.cleared),
        clocks(alert.last_verdict),
    )


def _alert(row: Any) -> Alert:
    # One call for the whole row: reading it field by field takes ten times as long.
    phase, micro_step, breaches, value, since, fired, cleared, last_verdict = row.item()
    if phase == INACTIVE_ROW:
        return INACTIVE
    return Alert(
        PHASES[phase],
        _now(since),
        None if micro_step == NEVER else micro_step,
        breaches,
        _now(fired),
        _now(cleared),
        _now(last_verdict),
        value,
    )
