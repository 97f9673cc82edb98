"""The alerts and incidents that are open: the only mutable state of alerting."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from healthwatch.alerting import incident as incidents
from healthwatch.alerting.ledger import Ledger, Rows
from healthwatch.alerting.memo import Memo
from healthwatch.alerting.model import Incident, Now, Transitions


@dataclass(slots=True)
class Page:
    """The alerts of one rule that are pending or firing, and its open incident."""

    ledger: Ledger = field(default_factory=Ledger)
    incident: Incident | None = None
    free: Memo[Rows] = field(default_factory=Memo)  # alerts that fire and are not inhibited
    silenced: Memo[bool] = field(default_factory=Memo)  # whether all that fire are


class Book:
    """One page a rule."""

    def __init__(self) -> None:
        self.pages: dict[str, Page] = {}
        self._attempt, self._turn = 0, 1

    def page(self, rule: str) -> Page:
        page = self.pages.get(rule)
        if page is None:
            page = self.pages[rule] = Page()
        return page

    def rewind(self, to: Now, rules: Iterable[str]) -> list[Transitions]:
        """Go back to step `to.step`: what began later is forgotten, what fires goes on firing."""
        self._turn += 1
        return [found for rule in rules for found in self.page(rule).ledger.rewind(rule, to)]

    def settle(self, changed: Iterable[tuple[incidents.Subject, list[Transitions]]], now: Now) -> list[Incident]:
        """Open, grow and close the rules' incidents after a step; returns those that are open or have just ended."""
        if now.attempt != self._attempt:  # a new attempt may begin by going back: that is its first turn
            self._attempt, self._turn = now.attempt, 1
        current = []
        for subject, transitions in changed:
            page = self.pages.get(subject.rule)
            if page is None or (page.incident is None and not transitions):
                continue
            after = incidents.update(page.incident, subject, transitions, page.ledger, now, self._turn)
            page.incident = None
            if after is not None:
                self.keep(after)
                current.append(after)
        return current

    def open(self) -> list[Incident]:
        return [page.incident for page in self.pages.values() if page.incident is not None]

    def keep(self, incident: Incident) -> None:
        """Let an open incident stand in the book as it is now."""
        self.page(incident.rule).incident = incident if incident.active else None
