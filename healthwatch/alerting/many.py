"""Any number of alerts as columns, all taken through their lives together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from healthwatch.alerting.lifecycle import Timing
from healthwatch.alerting.model import LabelSet, Now, Phase, Transitions
from healthwatch.alerting.rows import (
    BY_CODE,
    CLEAR,
    CODE_OF,
    ENDS,
    FIRED,
    FIRING,
    GOES_ON,
    LAST_VERDICT,
    MICRO_STEP,
    NEVER,
    PHASE,
    PHASES,
    REWOUND,
    VALUE,
    WIDTH,
    Alerts,
    Codes,
    Mask,
    begun,
    last_verdict,
    moment_of,
    turned,
    wound_back,
)
from healthwatch.alerting.verdicts import Seen
from healthwatch.promql import Labels

Rows = NDArray[np.intp]
Floats = NDArray[np.float64]


@dataclass(slots=True)
class Table:
    """Alerts in the order of their places in the rule's last result; those behind it have -1 and stand last."""

    labels: list[LabelSet]
    places: Rows
    rows: Alerts
    steady: bool = False  # whether all fire and breached when they were last seen


NO_TABLE = Table([], np.zeros(0, np.intp), np.zeros((0, WIDTH)))


@dataclass(slots=True, eq=False)
class Fresh:
    """Label sets that breach and had no alert: where they stand in the result, their rows, and how they begin."""

    labels: list[LabelSet]
    places: Rows
    rows: Alerts
    codes: Codes


NOBODY = Fresh([], np.zeros(0, np.intp), np.zeros((0, WIDTH)), np.zeros(0, np.uint8))


@dataclass(slots=True, eq=False)
class Turned:
    """What has become of a table: how each of its alerts has changed, its phase before, and who came to it."""

    before: Floats
    codes: Codes
    fresh: Fresh

    def anything(self) -> bool:
        return len(self.fresh.places) > 0 or np.count_nonzero(self.codes) > 0


def step(table: Table, begins: Rows, seen: Seen, now: Now, timing: Timing) -> Turned | None:
    """One step for every alert; those that have ended are still in the table, those that begin are not yet.

    None where nobody begins and all go on firing: only their values and clocks have changed.
    """
    breach = _at(seen.breach, table.places) if len(table.places) else None
    if table.steady and breach is not None and not len(begins) and breach.all():
        table.rows[:, VALUE], table.rows[:, LAST_VERDICT:] = seen.values(table.places), moment_of(now)
        return None
    before = table.rows[:, PHASE].copy()
    codes = NOBODY.codes if breach is None else _gone_on(table, breach, seen, now, timing)
    if not len(begins):
        return Turned(before, codes, NOBODY)
    rows, began = begun(seen.values(begins), seen.micro_steps(begins), now, timing)
    return Turned(before, codes, Fresh(picked(seen.labels, begins), begins, rows, began))


def _gone_on(table: Table, breach: Mask, seen: Seen, now: Now, timing: Timing) -> Codes:
    """How each alert of the table has changed."""
    places, rows = table.places, table.rows
    kept_up = np.isin(places, seen.kept_up) if seen.kept_up else None
    known = _at(seen.known, places)
    codes = turned(rows, breach, known, seen.values(places[breach]), kept_up, now, timing)
    table.steady = bool(breach.all() and (rows[:, PHASE] == FIRING).all())
    return codes


def _at(mask: Mask, places: Rows) -> Mask:
    """A mask over a result at some places; nothing is so at those that are not in it, which stand last."""
    if places[-1] >= 0:
        return mask[places]
    inside, found = places >= 0, np.zeros(len(places), bool)
    found[inside] = mask[places[inside]]
    return found


def back(table: Table, to: Now) -> Turned:
    """Every alert in a run that goes back to step `to.step`."""
    before = table.rows[:, PHASE].copy()
    return Turned(before, np.where(wound_back(table.rows, to), REWOUND, GOES_ON).astype(np.uint8), NOBODY)


def all_at(code: int, table: Table) -> Turned:
    """The same change for every alert."""
    return Turned(table.rows[:, PHASE].copy(), np.full(len(table.rows), code, np.uint8), NOBODY)


def picked(labels: Sequence[LabelSet], places: Rows) -> list[LabelSet]:
    """Some of the label sets; those of a result are asked for thousands faster as the tuple that they are."""
    sets = labels.sets if isinstance(labels, Labels) else labels
    return [sets[place] for place in places.tolist()]


def transitions(rule: str, table: Table, what: Turned, now: Now) -> list[Transitions]:
    """What has changed, those that are alike together; whoever has ended is told as it was."""
    changed = what.codes.nonzero()[0]
    reasons, phases = what.codes[changed], what.before[changed]
    found = []
    for code, phase in sorted(set(zip(reasons.tolist(), map(int, phases.tolist()), strict=True))):
        rows = changed[(reasons == code) & (phases == phase)]
        labels = picked(table.labels, rows)
        after = Phase.INACTIVE if code >= CLEAR else Phase.FIRING
        found.append(Transitions(rule, PHASES[phase], after, BY_CODE[code], now, labels, *_told(table.rows[rows])))
    if len(what.fresh.places):
        found.append(_begun(rule, what.fresh, now))
        found.sort(key=lambda each: CODE_OF[each.reason])
    return found


def together(found: list[Transitions], more: list[Transitions]) -> list[Transitions]:
    """Two lists of transitions as one, in which those that are alike are one again."""
    if not found or not more:
        return found or more
    kinds: dict[tuple[int, int], Transitions] = {}
    for each in (*found, *more):
        kind = CODE_OF[each.reason], PHASES.index(each.before)
        kinds[kind] = _both(kinds[kind], each) if kind in kinds else each
    return [kinds[kind] for kind in sorted(kinds)]


def _both(one: Transitions, other: Transitions) -> Transitions:
    return replace(
        one,
        labels=[*one.labels, *other.labels],
        micro_steps=[*one.micro_steps, *other.micro_steps],
        values=[*one.values, *other.values],
    )


def _begun(rule: str, fresh: Fresh, now: Now) -> Transitions:
    """They all fire at once, or none does."""
    code = int(fresh.codes[0])
    after = Phase.FIRING if code == FIRED else Phase.PENDING
    return Transitions(rule, Phase.INACTIVE, after, BY_CODE[code], now, fresh.labels, *_told(fresh.rows))


def _told(rows: Alerts) -> tuple[list[int | None], list[float]]:
    """Micro-steps and values, as people are told of them."""
    return [None if each == NEVER else int(each) for each in rows[:, MICRO_STEP].tolist()], rows[:, VALUE].tolist()


def last_end(table: Table, what: Turned) -> Now | None:
    """The last breach or clear of the firing alerts that have ended."""
    ended = (ENDS[what.codes] & (what.before == FIRING)).nonzero()[0]
    return last_verdict(table.rows[ended]) if len(ended) else None


def settled(table: Table, what: Turned, size: int) -> Table:
    """The table without those that have ended and with those that have begun, in a result of so many label sets."""
    rows, places, labels = table.rows, table.places, table.labels
    ended: Mask = ENDS[what.codes]
    if np.count_nonzero(ended):
        staying = (~ended).nonzero()[0]
        rows, places, labels = rows[staying], places[staying], picked(labels, staying)
    fresh = what.fresh
    if not len(fresh.places):
        return Table(labels, places, rows)
    return ordered(joined(Table(labels, places, rows), Table(fresh.labels, fresh.places, fresh.rows)), size)


def joined(one: Table, other: Table) -> Table:
    """The alerts of two tables, one after the other."""
    return Table(
        one.labels + other.labels,
        np.concatenate((one.places, other.places)),
        np.concatenate((one.rows, other.rows)),
    )


def ordered(table: Table, size: int) -> Table:
    """By place in a result of so many label sets."""
    by_place = order(table.places, size)
    if (by_place[1:] > by_place[:-1]).all():
        return table
    return Table(picked(table.labels, by_place), table.places[by_place], table.rows[by_place])


def order(places: Rows, size: int) -> Rows:
    """Which come first, in a result of so many label sets; those behind it come last."""
    return np.where(places < 0, size, places).argsort(kind="stable")
