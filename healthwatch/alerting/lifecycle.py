"""The life of one alert: a pure function from (alert, observation, now) to the alert after it.

inactive -> pending -> firing -> inactive, as in Prometheus, with a third verdict: no data holds an alert where it is.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from healthwatch.alerting.model import (
    IS_FIRING,
    IS_INACTIVE,
    IS_PENDING,
    SAYS_BREACH,
    SAYS_CLEAR,
    Alert,
    Change,
    Now,
    Observation,
)
from healthwatch.stream.ticks import Duration

INACTIVE = Alert()


@dataclass(frozen=True, slots=True)
class Timing:
    """How long breaches must last, how long firing outlasts them, and how many steps without a verdict end an alert."""

    for_: Duration = Duration(steps=0)
    for_records: int | None = None
    keep_firing_for: Duration = Duration(steps=0)
    no_data_after: int = 200


def advance(alert: Alert, seen: Observation, now: Now, timing: Timing) -> tuple[Alert, Change | None]:
    """The alert after this step, and the name of the change where there is one."""
    if seen.verdict is SAYS_BREACH:
        return _breach(alert, seen, now, timing)
    if alert.phase is IS_INACTIVE:
        return alert, None
    if seen.verdict is SAYS_CLEAR:
        return _clear(alert, now, timing)
    return _no_data(alert, now, timing)


def _breach(alert: Alert, seen: Observation, now: Now, timing: Timing) -> tuple[Alert, Change | None]:
    if alert.phase is IS_FIRING:
        return Alert(IS_FIRING, alert.since, alert.micro_step, alert.breaches, alert.fired, None, now, seen.value), None
    fresh = alert.phase is IS_INACTIVE
    since, micro_step = (now, seen.micro_step) if fresh else (alert.since, alert.micro_step)
    breaches = 1 if fresh else alert.breaches + 1
    if _due(since, breaches, now, timing):
        return Alert(IS_FIRING, since, micro_step, breaches, now, None, now, seen.value), "fired"
    return Alert(IS_PENDING, since, micro_step, breaches, None, None, now, seen.value), "breach" if fresh else None


def _due(since: Now | None, breaches: int, now: Now, timing: Timing) -> bool:
    if timing.for_records is not None:
        return breaches >= timing.for_records
    assert since is not None
    return timing.for_.elapsed(*now.since(since))


def keep_up(alert: Alert, now: Now) -> Alert:
    """A firing alert that is clear and that its rule's `until` keeps firing: its value is that of its last breach."""
    return alert._replace(cleared=None, last_verdict=now)


def _clear(alert: Alert, now: Now, timing: Timing) -> tuple[Alert, Change | None]:
    if alert.phase is IS_PENDING:
        return INACTIVE, "clear"
    cleared = alert.cleared or now
    if timing.keep_firing_for.elapsed(*now.since(cleared)):
        return INACTIVE, "resolved"
    return alert._replace(cleared=cleared, last_verdict=now), None


def _no_data(alert: Alert, now: Now, timing: Timing) -> tuple[Alert, Change | None]:
    assert alert.last_verdict is not None
    if now.step - alert.last_verdict.step < timing.no_data_after:
        return alert, None
    return INACTIVE, "expired"


def rewind(alert: Alert, to: Now) -> tuple[Alert, Change | None]:
    """The alert in a run that goes back to step `to.step` (the first one to come again)."""
    if alert.phase is IS_PENDING and alert.since is not None and alert.since.step >= to.step:
        return INACTIVE, "rewound"
    return alert._replace(cleared=earlier(alert.cleared, to), last_verdict=earlier(alert.last_verdict, to)), None


def earlier(clock: Now | None, to: Now) -> Now | None:
    """`clock`, but not later than the step before `to`."""
    if clock is None or clock.step < to.step:
        return clock
    return replace(to, step=to.step - 1)
