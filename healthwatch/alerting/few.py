"""A handful of alerts as objects, each taken through `lifecycle` by itself."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple, TypeAlias

from healthwatch.alerting.lifecycle import INACTIVE, Timing, advance, keep_up, rewind
from healthwatch.alerting.model import IS_FIRING, IS_INACTIVE, Alert, Change, LabelSet, Now, Transitions
from healthwatch.alerting.rows import CODE_OF, PHASES
from healthwatch.alerting.verdicts import Seen


class Entry(NamedTuple):
    """An alert that lives; its place is that of its label set in the rule's last result, -1 where that has it not."""

    place: int
    labels: LabelSet
    alert: Alert


Turn: TypeAlias = tuple[Entry, Change, Alert]
"""An alert that has changed its phase: as it was, why, and as it is."""

Turned: TypeAlias = tuple[list[Entry], list[Turn]]
"""The alerts that live, and those that have changed their phase."""


def step(entries: Sequence[Entry], breaching: Sequence[int], seen: Seen, now: Now, timing: Timing) -> Turned:
    """The alerts after a step, in the order of their places."""
    if breaching:
        fresh = [Entry(place, seen.labels[place], INACTIVE) for place in breaching]
        entries = ordered((*entries, *fresh)) if entries else fresh

    def after(entry: Entry) -> tuple[Alert, Change | None]:
        place, _, alert = entry
        if seen.kept_up and place in seen.kept_up and alert.phase is IS_FIRING and not seen.breach[place]:
            return keep_up(alert, now), None
        return advance(alert, seen.observation(place), now, timing)

    return _moved(entries, after)


def back(entries: Sequence[Entry], to: Now) -> Turned:
    """The alerts in a run that goes back to step `to.step`."""
    return _moved(entries, lambda entry: rewind(entry.alert, to))


def ordered(entries: Iterable[Entry]) -> list[Entry]:
    """By place."""
    return sorted(entries, key=_place)


def _place(entry: Entry) -> tuple[bool, int]:
    return entry.place < 0, entry.place


def _moved(entries: Sequence[Entry], after: Callable[[Entry], tuple[Alert, Change | None]]) -> Turned:
    living: list[Entry] = []
    turns: list[Turn] = []
    for entry in entries:
        alert, change = after(entry)
        if change is not None:
            turns.append((entry, change, alert))
        if alert.phase is not IS_INACTIVE:
            living.append(entry if alert is entry.alert else Entry(entry.place, entry.labels, alert))
    return living, turns


def transitions(rule: str, turns: Sequence[Turn], now: Now) -> list[Transitions]:
    """The turns, those that are alike together; whoever has ended is told as it was."""
    kinds: dict[int, Transitions] = {}
    for entry, change, after in turns:
        before = entry.alert
        told = before if after.phase is IS_INACTIVE else after
        kind = CODE_OF[change] * len(PHASES) + PHASES.index(before.phase)
        alike = kinds.get(kind)
        if alike is None:
            one = [entry.labels], [told.micro_step], [told.value]
            kinds[kind] = Transitions(rule, before.phase, after.phase, change, now, *one)
        else:
            alike.add(entry.labels, told.micro_step, told.value)
    return [kinds[kind] for kind in sorted(kinds)]


def last_end(turns: Sequence[Turn], found: Now | None) -> Now | None:
    """The last breach or clear of the firing alerts that have ended, or what was found elsewhere if that is later."""
    for (_, _, alert), _, after in turns:
        if alert.phase is IS_FIRING and after.phase is IS_INACTIVE and alert.last_verdict is not None:
            now = alert.last_verdict
            found = now if found is None or (now.attempt, now.step) > (found.attempt, found.step) else found
    return found
