"""Inhibition: an alert holds back the alerts of the rules that name its own under `inhibited_by`.

Two alerts belong together if all labels that both results carry are equal; `__name__` and rule labels don't count.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import replace

import numpy as np

from healthwatch.alerting.book import Book
from healthwatch.alerting.ledger import Ledger, Rows
from healthwatch.alerting.model import Incident, LabelSet, Now
from healthwatch.stream.series import METRIC_NAME


def belong(labels: LabelSet, others: Iterable[LabelSet]) -> bool:
    """Whether one of `others` agrees with these labels wherever both have a value."""
    mine = dict(labels)
    return any(all(mine.get(name, value) == value for name, value in other if name != METRIC_NAME) for other in others)


def mark(incident: Incident, inhibited_by: Collection[str], book: Book, shadows: Collection[str], now: Now) -> Incident:
    """The incident with `inhibited` as it stands at this step.

    It is held back while every firing alert is; once the inhibition has ended, it is told at the next breach.
    """
    if not incident.active or not inhibited_by:
        return incident
    sources = [book.page(rule).ledger for rule in inhibited_by if rule not in shadows]
    page = book.page(incident.rule)
    firing = tuple(ledger.firing() for ledger in (page.ledger, *sources))
    free = page.free.of(firing, None, lambda: _free(page.ledger, sources))
    held = not page.ledger.breached(free, now).any() if incident.inhibited else not len(free)
    return incident if held == incident.inhibited else replace(incident, inhibited=held)


def _free(ledger: Ledger, sources: Iterable[Ledger]) -> Rows:
    """The firing alerts that belong to none of the sources' firing alerts."""
    firing, found = _firing(ledger), [_firing(source) for source in sources]
    if firing and firing in found:  # two rules on the same series, as a rule: nothing need be hashed
        return ledger.firing()[:0]
    inhibitors = {labels for each in found for labels in each}
    if not inhibitors or () in inhibitors:
        return ledger.firing() if not inhibitors else ledger.firing()[:0]
    held = [labels in inhibitors for labels in firing]
    if not all(held):
        index = _Index(inhibitors)
        held = [known or index.holds(labels) for labels, known in zip(firing, held, strict=True)]
    free: Rows = ledger.firing()[~np.array(held, bool)]
    return free


def _firing(ledger: Ledger) -> list[LabelSet]:
    return [_nameless(ledger.labels[row]) for row in ledger.firing().tolist()]


def _nameless(labels: LabelSet) -> LabelSet:
    """Without `__name__`: it nearly always stands first, since label sets are sorted."""
    if not labels or labels[0][0] > METRIC_NAME:
        return labels
    return labels[1:] if labels[0][0] == METRIC_NAME else tuple(pair for pair in labels if pair[0] != METRIC_NAME)


class _Index:
    """Finds out whether label sets belong to one of many without looking at each of those."""

    def __init__(self, inhibitors: Iterable[LabelSet]) -> None:
        self._kinds: dict[tuple[str, ...], list[LabelSet]] = {}
        for labels in inhibitors:
            self._kinds.setdefault(_names(labels), []).append(labels)
        self._shared: dict[tuple[str, ...], list[tuple[frozenset[str], set[LabelSet]]]] = {}

    def holds(self, labels: LabelSet) -> bool:
        names = _names(labels)
        if names not in self._shared:
            self._shared[names] = [self._on(frozenset(names) & frozenset(kind), kind) for kind in self._kinds]
        return any(_only(labels, common) in known for common, known in self._shared[names])

    def _on(self, common: frozenset[str], kind: tuple[str, ...]) -> tuple[frozenset[str], set[LabelSet]]:
        """What inhibitors of one kind say of the labels that both carry."""
        return common, {_only(labels, common) for labels in self._kinds[kind]}


def _names(labels: LabelSet) -> tuple[str, ...]:
    return tuple(name for name, _ in labels)


def _only(labels: LabelSet, names: frozenset[str]) -> LabelSet:
    return tuple(pair for pair in labels if pair[0] in names)
