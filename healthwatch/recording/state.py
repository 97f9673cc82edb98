"""Where alerting stands, written with the step that led there, so that the next attempt goes on exactly from it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from healthwatch.alerting.book import Book
from healthwatch.alerting.escalation import Standing, Told
from healthwatch.alerting.ledger import Ledger
from healthwatch.alerting.model import Incident, LabelSet, Now
from healthwatch.alerting.rows import BREACHES, CLEARED, WIDTH, Alerts
from healthwatch.promql import ast
from healthwatch.stream import TICKS_PER_STEP, Frame, tick_of
from healthwatch.stream.ring import Floats
from healthwatch.stream.ticks import Duration

if TYPE_CHECKING:
    from healthwatch.engine import Engine

FEWEST_STEPS = 2000  # of samples that a resumed run reads
MANY, EVERY = 1000, 20  # alerts of a rule; steps
MOVING = (BREACHES, *range(CLEARED, WIDTH))  # columns that decide, and move while no alert changes its phase


def _plain(value: Any) -> Any:
    """A number of numpy as a number; anything else is a mistake of ours."""
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError(f"{type(value).__name__} in the state of alerting")


_encode = msgspec.msgpack.Encoder(enc_hook=_plain).encode
NOTHING = _encode({})


class _Told(msgspec.Struct):
    receiver: str
    group: LabelSet
    members: list[str | Incident]  # an open incident by its id: the book holds it
    waiting: list[str | Incident]
    severity: int
    joined: int
    last: Now
    repeat: Duration | None


class _Standing(msgspec.Struct):
    climbed: list[tuple[str, int, Now]]
    told: list[_Told]


class _Watch(msgspec.Struct):
    rows: list[int]
    silent: bool
    first_step: int | None


@dataclass(frozen=True, slots=True)
class _Written:
    """The alerts of a rule as they were written last, and when."""

    step: int
    labels: bytes
    firing: int
    alerts: Alerts
    encoded: bytes


class Snapshots:
    """The state of an engine, step by step. What has not changed since the last one is the same object.

    Thousands of alerts at once are written where one of them changes its phase, and every so often; between, only
    those columns that have moved and decide. The values at their last breach may be a few steps old.
    """

    def __init__(self) -> None:
        self._labels: dict[str, tuple[object, bytes]] = {}  # by rule: label sets, encoded
        self._written: dict[str, _Written] = {}  # by rule

    def of(self, engine: Engine) -> dict[str, bytes]:
        """The whole of it, by key. What is not there is inactive."""
        rows = rows_of(engine, alerts=False)
        last = engine.clock.moments[0]
        step = last.step if last is not None else 0
        for rule, page in engine.book.pages.items():
            if len(page.ledger):
                rows |= self._rows_of(rule, page.ledger, step)
        return rows

    def _labels_of(self, rule: str, ledger: Ledger) -> bytes:
        labels, encoded = self._labels.get(rule, (None, b""))
        if labels is not ledger.labels:
            encoded = _encode(ledger.labels)
            self._labels[rule] = ledger.labels, encoded
        return encoded

    def _rows_of(self, rule: str, ledger: Ledger, step: int) -> dict[str, bytes]:
        labels, firing, alerts = self._labels_of(rule, ledger), len(ledger.firing()), ledger.live()[1]
        known, moved = self._written.get(rule), {}
        same = known is not None and known.labels is labels and known.firing == firing
        if known is None or not same or len(ledger) <= MANY or not 0 <= step - known.step < EVERY:
            kept = alerts.copy() if len(ledger) > MANY else alerts
            known = self._written[rule] = _Written(step, labels, firing, kept, _packed(alerts))
        else:
            columns = [at for at in MOVING if not np.array_equal(alerts[:, at], known.alerts[:, at])]
            moved = {f"moved:{rule}": _encode({at: _column(alerts[:, at]) for at in columns})}
        return {f"labels:{rule}": labels, f"alerts:{rule}": known.encoded, **moved}


def rows_of(engine: Engine, *, alerts: bool = True) -> dict[str, bytes]:
    """The whole of it, by key, or all but the alerts."""
    rows = {
        "clock": _encode(engine.clock.moments),
        "watches": _encode({w.rule.name: _Watch(list(w.rows), w.silent, w.first_step) for w in engine.watches}),
        "standing": _encode(_standing(engine.standing, {incident.id for incident in engine.book.open()})),
    }
    for rule, page in engine.book.pages.items():
        if page.incident is not None:
            rows[f"incident:{rule}"] = _encode(page.incident)
        if len(page.ledger) and alerts:
            labels, living = page.ledger.live()
            rows |= {f"labels:{rule}": _encode(labels), f"alerts:{rule}": _packed(living)}
    return rows


def _packed(alerts: Alerts) -> bytes:
    """Column by column."""
    return _encode([len(alerts), [_column(each) for each in alerts.T]])


def _column(values: Floats) -> float | bytes:
    """One that is the same for every alert, as most are where thousands began together, once."""
    return float(values[0]) if len(values) and (values == values[0]).all() else values.tobytes()


def _unpacked(encoded: bytes, moved: bytes) -> Alerts:
    count, columns = msgspec.msgpack.decode(encoded)
    alerts = np.empty((count, WIDTH))
    for place, column in (*enumerate(columns), *msgspec.msgpack.decode(moved).items()):
        alerts[:, place] = column if isinstance(column, float) else np.frombuffer(column)
    return alerts


def _standing(standing: Standing, open_: set[str]) -> _Standing:
    def members(known: Mapping[str, Incident]) -> list[str | Incident]:
        return [name if name in open_ else incident for name, incident in known.items()]

    return _Standing(
        [(name, number, now) for (name, number), now in standing.climbed.items()],
        [
            _Told(
                *key, members(told.members), members(told.waiting), told.severity, told.joined, told.last, told.repeat
            )
            for key, told in standing.told.items()
        ],
    )


def revive(engine: Engine, rows: Mapping[str, bytes]) -> None:
    """Put an engine that has seen no step where `rows_of` found another one.

    Alerts of rules that are gone end with them; whoever was told of them is told at the next step that they stopped
    reporting.
    """
    if "clock" not in rows:
        return
    engine.clock.revive(*msgspec.msgpack.decode(rows["clock"], type=tuple[Now | None, Now]))
    last = engine.clock.moments[0]
    known = msgspec.msgpack.decode(rows["watches"], type=dict[str, _Watch])
    incidents = {found.id: found for found in _incidents(rows)}
    for watch in engine.watches:
        name = watch.rule.name
        if name in known:
            watch.rows.extend(known[name].rows)
            watch.silent, watch.first_step = known[name].silent, known[name].first_step
        _revive_alerts(engine.book, name, rows)
    rules = {watch.rule.name for watch in engine.watches}
    for name, incident in incidents.items():
        if incident.rule in rules:
            engine.book.keep(incident)
        else:
            incidents[name] = replace(incident, ended=last, ending="expired")
    engine.standing = _revived(msgspec.msgpack.decode(rows["standing"], type=_Standing), incidents)


def book_of(rows: Mapping[str, bytes]) -> Book:
    """The open incidents and the alerts of their rules, for whoever asks what is open in a run."""
    book = Book()
    for incident in _incidents(rows):
        book.keep(incident)
        _revive_alerts(book, incident.rule, rows)
    return book


def _incidents(rows: Mapping[str, bytes]) -> list[Incident]:
    return [msgspec.msgpack.decode(encoded, type=Incident) for _, encoded in _under("incident:", rows)]


def _revive_alerts(book: Book, rule: str, rows: Mapping[str, bytes]) -> None:
    if f"alerts:{rule}" in rows:
        labels = msgspec.msgpack.decode(rows[f"labels:{rule}"], type=list[LabelSet])
        alerts = _unpacked(rows[f"alerts:{rule}"], rows.get(f"moved:{rule}", NOTHING))
        book.page(rule).ledger.revive(labels, alerts)


def _under(prefix: str, rows: Mapping[str, bytes]) -> Iterable[tuple[str, bytes]]:
    return ((key.removeprefix(prefix), value) for key, value in rows.items() if key.startswith(prefix))


def _revived(standing: _Standing, incidents: Mapping[str, Incident]) -> Standing:
    def members(known: Iterable[str | Incident]) -> dict[str, Incident]:
        found = (incidents.get(each) if isinstance(each, str) else each for each in known)
        return {incident.id: incident for incident in found if incident is not None}

    return Standing(
        {(name, number): now for name, number, now in standing.climbed},
        {
            (told.receiver, told.group): Told(
                members(told.members), members(told.waiting), told.severity, told.joined, told.last, told.repeat
            )
            for told in standing.told
        },
    )


def recall(engine: Engine, frames: Iterable[Frame], before: int | None = None) -> int:
    """Fill the windows anew with samples that have been judged already, those before a step if one is given.

    Returns the last step among the frames, 0 without any.
    """
    last = 0
    engine.history.rewind(-1)
    for frame in frames:
        if frame.step <= last:
            engine.history.rewind(tick_of(frame.step - 1))
        if before is None or frame.step < before:  # later ones would only push out what is wanted
            engine.history.extend(frame)
        last = frame.step
    if before is not None:
        engine.history.rewind(tick_of(before - 1))
    return last


def reach(engine: Engine, fewest: int = FEWEST_STEPS) -> int:
    """How many steps of samples the rules may look back at, and no fewer than they usually need."""
    trees = [
        query.expression.tree for watch in engine.watches for query in (watch.query, watch.until, watch.detail) if query
    ]
    return max([fewest, *(sum(map(_back, ast.walk(tree))) // TICKS_PER_STEP + 2 for tree in trees)])


def _back(node: Any) -> int:
    match node:
        case ast.VectorSelector(offset=offset):
            return abs(offset)
        case ast.MatrixSelector(window=window):
            return window
        case ast.Subquery():
            return int(node.window) + abs(int(node.offset))
        case _:
            return 0
