"""Inhibition: an alert holds back the alerts of the rules that name its own under `inhibited_by`.

Two alerts belong together if all labels that both results carry are equal; `__name__` and rule labels don't count.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace

from healthwatch.alerting.book import Book
from healthwatch.alerting.model import Alert, Incident, LabelSet, Now


def inhibited(labels: LabelSet, sources: Iterable[LabelSet]) -> bool:
    """Whether one of the firing `sources` holds back an alert with these labels."""
    mine = dict(labels)
    return any(
        all(mine.get(name, value) == value for name, value in source if name != "__name__") for source in sources
    )


def mark(incident: Incident, inhibited_by: Collection[str], book: Book, shadows: Collection[str], now: Now) -> Incident:
    """The incident with `inhibited` as it stands at this step.

    It is held back while every firing alert is; once the inhibition has ended, it is told at the next breach.
    """
    if not incident.active or not inhibited_by:
        return incident
    sources = {labels for rule in inhibited_by if rule not in shadows for labels in book.page(rule).firing()}
    free = _free(book.page(incident.rule).firing(), sources)
    held = not any(_breached(alert, now) for alert in free.values()) if incident.inhibited else not free
    return replace(incident, inhibited=held)


def _breached(alert: Alert, now: Now) -> bool:
    return alert.last_verdict == now and alert.cleared is None


def _free(firing: Mapping[LabelSet, Alert], sources: Collection[LabelSet]) -> dict[LabelSet, Alert]:
    if not sources:
        return dict(firing)
    return {labels: alert for labels, alert in firing.items() if not inhibited(labels, sources)}
