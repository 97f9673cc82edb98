"""Inhibition: an alert holds back the alerts of the rules that name its own under `inhibited_by`.

Two alerts belong together if all labels that both results carry are equal; `__name__` and rule labels don't count.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import replace

from healthwatch.alerting.book import Book
from healthwatch.alerting.ledger import Ledger, Rows
from healthwatch.alerting.model import Incident, LabelSet, Now


def belong(labels: LabelSet, others: Iterable[LabelSet]) -> bool:
    """Whether one of `others` agrees with these labels wherever both have a value."""
    mine = dict(labels)
    return any(all(mine.get(name, value) == value for name, value in other if name != "__name__") for other in others)


def mark(incident: Incident, inhibited_by: Collection[str], book: Book, shadows: Collection[str], now: Now) -> Incident:
    """The incident with `inhibited` as it stands at this step.

    It is held back while every firing alert is; once the inhibition has ended, it is told at the next breach.
    """
    if not incident.active or not inhibited_by:
        return incident
    sources = {labels for rule in inhibited_by if rule not in shadows for labels in _firing(book.page(rule).ledger)}
    ledger = book.page(incident.rule).ledger
    free = _free(ledger, sources)
    held = not ledger.breached(free, now).any() if incident.inhibited else not len(free)
    return replace(incident, inhibited=held)


def _firing(ledger: Ledger) -> list[LabelSet]:
    return [ledger.labels[row] for row in ledger.firing()]


def _free(ledger: Ledger, sources: Collection[LabelSet]) -> Rows:
    firing = ledger.firing()
    if not sources:
        return firing
    if any(all(name == "__name__" for name, _ in source) for source in sources):
        return firing[:0]
    free: Rows = firing[[not belong(ledger.labels[row], sources) for row in firing]]
    return free
