"""A handful of alerts as objects, each taken through `lifecycle` by itself."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple, TypeAlias

from healthwatch.alerting.lifecycle import INACTIVE, Timing, advance, keep_up, rewind
from healthwatch.alerting.model import (
    Alert,
    Change,
    LabelSet,
    Now,
    Phase,
    Transitions,
)
from healthwatch.alerting.rows import CODE_OF, PHASES
from healthwatch.alerting.verdicts import Seen


class Entry(NamedTuple):
    """An alert that lives; its place is that of its label set in the rule's last result, -1 where that has it not."""

    place: int
    labels: LabelSet
    alert: Alert


class Turn(NamedTuple):
    entry: Entry
    change: Change
    after: Alert


Turned: TypeAlias = tuple[list[Entry], list[Turn]]
"""The alerts that live, and those that have changed their phase."""


def step(entries: Sequence[Entry], breaching: Sequence[int], seen: Seen, now: Now, timing: Timing) -> Turned:
    """The alerts after a step, in the order of their places."""
    fresh = [Entry(place, seen.labels[place], INACTIVE) for place in breaching]
    everyone = ordered((*entries, *fresh)) if fresh else entries
    return _moved(everyone, (_advanced(entry, seen, now, timing) for entry in everyone))


def back(entries: Sequence[Entry], to: Now) -> Turned:
    """The alerts in a run that goes back to step `to.step`."""
    return _moved(entries, (rewind(entry.alert, to) for entry in entries))


def _advanced(entry: Entry, seen: Seen, now: Now, timing: Timing) -> tuple[Alert, Change | None]:
    place, alert = entry.place, entry.alert
    if place in seen.kept_up and alert.phase is Phase.FIRING and not seen.breach[place]:
        return keep_up(alert, now), None
    return advance(alert, seen.observation(place), now, timing)


def ordered(entries: Iterable[Entry]) -> list[Entry]:
    """By place."""
    return sorted(entries, key=lambda entry: (entry.place < 0, entry.place))


def _moved(entries: Sequence[Entry], after: Iterable[tuple[Alert, Change | None]]) -> Turned:
    living, turns = [], []
    for entry, (alert, change) in zip(entries, after, strict=True):
        if change is not None:
            turns.append(Turn(entry, change, alert))
        if alert.phase is not Phase.INACTIVE:
            living.append(entry if alert is entry.alert else Entry(entry.place, entry.labels, alert))
    return living, turns


def transitions(rule: str, turns: Sequence[Turn], now: Now) -> list[Transitions]:
    """The turns, those that are alike together; whoever has ended is told as it was."""
    if len(turns) == 1:
        return [_alike(rule, turns, now)]
    kinds: dict[tuple[int, int], list[Turn]] = {}
    for turn in turns:
        kinds.setdefault((CODE_OF[turn.change], PHASES.index(turn.entry.alert.phase)), []).append(turn)
    return [_alike(rule, kinds[kind], now) for kind in sorted(kinds)]


def _alike(rule: str, turns: Sequence[Turn], now: Now) -> Transitions:
    (_, _, before), change, after = turns[0]
    told = [turn.entry.alert if turn.after.phase is Phase.INACTIVE else turn.after for turn in turns]
    return Transitions(
        rule,
        before.phase,
        after.phase,
        change,
        now,
        [turn.entry.labels for turn in turns],
        [alert.micro_step for alert in told],
        [alert.value for alert in told],
    )


def last_end(turns: Sequence[Turn], found: Now | None) -> Now | None:
    """The last breach or clear of the firing alerts that have ended, or what was found elsewhere if that is later."""
    for turn in turns:
        alert = turn.entry.alert
        if alert.phase is Phase.FIRING and turn.after.phase is Phase.INACTIVE and alert.last_verdict is not None:
            now = alert.last_verdict
            found = now if found is None or (now.attempt, now.step) > (found.attempt, found.step) else found
    return found
