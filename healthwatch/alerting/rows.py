"""Many alerts as rows of an array, and what `lifecycle` says of one alert, said of all of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from healthwatch.alerting.lifecycle import INACTIVE, Timing
from healthwatch.alerting.model import Alert, Change, Now, Phase
from healthwatch.stream.ticks import Duration

PHASE, MICRO_STEP, BREACHES, VALUE, SINCE, FIRED_AT, CLEARED, LAST_VERDICT, WIDTH = 0, 1, 2, 3, 4, 8, 12, 16, 20
"""The columns of an alert. A moment takes four: step, time, attempt, clock."""

TIME, ATTEMPT, CLOCK = 1, 2, 3
"""Within a moment, whose step stands first."""

NEVER = -1  # the step of a moment that has not come; as a micro-step: none

PHASES = (Phase.INACTIVE, Phase.PENDING, Phase.FIRING)
PENDING, FIRING = 1, 2

BY_CODE: tuple[Change, ...] = ("breach", "breach", "fired", "clear", "resolved", "expired", "rewound")
"""A change by its number; 0 stands for none."""

GOES_ON, BREACH, FIRED, CLEAR, RESOLVED, EXPIRED, REWOUND = range(7)
CODE_OF: dict[Change | None, int] = {
    None: GOES_ON,
    "breach": BREACH,
    "fired": FIRED,
    "clear": CLEAR,
    "resolved": RESOLVED,
    "expired": EXPIRED,
    "rewound": REWOUND,
}
ENDS = np.array([code >= CLEAR for code in range(7)])

Alerts = NDArray[np.float64]
"""An alert a row; float64 holds every step, micro-step and attempt exactly."""

Mask = NDArray[np.bool_]
Codes = NDArray[np.uint8]


def turned(
    rows: Alerts,
    breach: Mask,
    known: Mask,
    values: NDArray[np.float64],
    kept_up: Mask | None,
    now: Now,
    timing: Timing,
) -> Codes:
    """One step of alerts that live, in place; how each has changed. `values` are those of the rows that breach."""
    firing, codes = rows[:, PHASE] == FIRING, np.zeros(len(rows), np.uint8)
    rows[breach, VALUE] = values
    if breach.all():
        seen: Mask | slice = slice(None)
    else:
        clear = known & ~breach
        seen = breach | clear
        if kept_up is not None:
            kept_up = kept_up & firing & clear
            clear &= ~kept_up
            rows[kept_up, CLEARED] = NEVER
        codes[clear & ~firing] = CLEAR
        _clear(rows, codes, clear & firing, now, timing)
        if not seen.all():
            silent = now.step - rows[:, LAST_VERDICT] >= timing.no_data_after
            codes[~seen & silent] = EXPIRED
    rows[seen, LAST_VERDICT:WIDTH] = moment_of(now)
    rows[breach, CLEARED] = NEVER
    waiting = breach & ~firing
    if waiting.any():
        rows[waiting, BREACHES] += 1
        due = waiting & _due(rows, now, timing)
        rows[due, PHASE] = FIRING
        rows[due, FIRED_AT:CLEARED] = moment_of(now)
        codes[due] = FIRED
    return codes


def _clear(rows: Alerts, codes: Codes, clear: Mask, now: Now, timing: Timing) -> None:
    """Firing alerts that are clear are kept firing for a while."""
    if clear.any():
        rows[clear & (rows[:, CLEARED] == NEVER), CLEARED:LAST_VERDICT] = moment_of(now)
        codes[clear & _elapsed(timing.keep_firing_for, rows, CLEARED, now)] = RESOLVED


def begun(
    values: NDArray[np.float64], micro_steps: NDArray[np.int32], now: Now, timing: Timing
) -> tuple[Alerts, Codes]:
    """The alerts of label sets that breach for the first time, and whether they fire at once."""
    at_once = timing.for_records <= 1 if timing.for_records is not None else timing.for_.elapsed(0, 0.0)
    never, moment = moment_of(None), moment_of(now)
    rows = np.empty((len(values), WIDTH))
    rows[:] = (0.0, 0.0, 1.0, 0.0, *moment, *(moment if at_once else never), *never, *moment)
    rows[:, PHASE] = FIRING if at_once else PENDING
    rows[:, MICRO_STEP], rows[:, VALUE] = micro_steps, values
    return rows, np.full(len(rows), FIRED if at_once else BREACH, np.uint8)


def wound_back(rows: Alerts, to: Now) -> Mask:
    """Every clock as it stands in a run that goes back to step `to.step`; which of the alerts had not begun."""
    gone: Mask = (rows[:, PHASE] == PENDING) & (rows[:, SINCE] >= to.step)
    for clock in (CLEARED, LAST_VERDICT):
        later = (rows[:, clock] >= to.step) & ~gone
        rows[later, clock : clock + 4] = moment_of(Now(to.step - 1, to.time, to.attempt, to.clock))
    return gone


def last_verdict(rows: Alerts) -> Now | None:
    """The last breach or clear of any of the alerts."""
    attempts = rows[:, LAST_VERDICT + ATTEMPT]
    last = np.where(attempts == attempts.max(), rows[:, LAST_VERDICT], NEVER).argmax()
    return now_of(rows[last, LAST_VERDICT:WIDTH].tolist())


def _due(rows: Alerts, now: Now, timing: Timing) -> Mask:
    if timing.for_records is not None:
        return np.asarray(rows[:, BREACHES] >= timing.for_records)
    return _elapsed(timing.for_, rows, SINCE, now)


def _elapsed(duration: Duration, rows: Alerts, since: int, now: Now) -> Mask:
    if duration.steps is not None:
        return np.asarray(now.step - rows[:, since] >= duration.steps)
    return np.asarray(now.clock - rows[:, since + CLOCK] >= (duration.seconds or 0.0))


def moment_of(now: Now | None) -> tuple[float, float, float, float]:
    return (NEVER, 0.0, 0, 0.0) if now is None else (now.step, now.time, now.attempt, now.clock)


def now_of(moment: Sequence[float]) -> Now | None:
    step, time, attempt, clock = moment
    return None if step == NEVER else Now(int(step), time, int(attempt), clock)


def row_of(alert: Alert) -> tuple[float, ...]:
    return (
        PHASES.index(alert.phase),
        NEVER if alert.micro_step is None else alert.micro_step,
        alert.breaches,
        alert.value,
        *moment_of(alert.since),
        *moment_of(alert.fired),
        *moment_of(alert.cleared),
        *moment_of(alert.last_verdict),
    )


def rows_of(alerts: Iterable[Alert]) -> Alerts:
    return np.array([row_of(alert) for alert in alerts], float).reshape(-1, WIDTH)


def alert_of(row: Alerts) -> Alert:
    phase, micro_step, breaches, value, *moments = row.tolist()
    if not phase:
        return INACTIVE
    return Alert(
        PHASES[int(phase)],
        now_of(moments[:4]),
        None if micro_step == NEVER else int(micro_step),
        int(breaches),
        now_of(moments[4:8]),
        now_of(moments[8:12]),
        now_of(moments[12:]),
        value,
    )
