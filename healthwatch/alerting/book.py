"""The alerts and incidents that are open: the only mutable state of alerting."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from healthwatch.alerting import incident as incidents
from healthwatch.alerting.lifecycle import INACTIVE, Change, Timing, advance, rewind
from healthwatch.alerting.model import Alert, Incident, LabelSet, Now, Observation, Phase, Transition


@dataclass(slots=True)
class Page:
    """The alerts of one rule that are pending or firing, and its open incident."""

    alerts: dict[LabelSet, Alert] = field(default_factory=dict)
    incident: Incident | None = None

    def firing(self) -> dict[LabelSet, Alert]:
        return {labels: alert for labels, alert in self.alerts.items() if alert.phase is Phase.FIRING}


class Book:
    """One page a rule."""

    def __init__(self) -> None:
        self.pages: dict[str, Page] = {}

    def page(self, rule: str) -> Page:
        return self.pages.setdefault(rule, Page())

    def advance(self, rule: str, seen: Mapping[LabelSet, Observation], now: Now, timing: Timing) -> list[Transition]:
        """Move every alert of a rule that was seen through one step."""
        page = self.page(rule)
        transitions = []
        for labels, observation in seen.items():
            before = page.alerts.get(labels, INACTIVE)
            after, change = advance(before, observation, now, timing)
            transitions += _turn(page, rule, labels, before, after, change, now)
        return transitions

    def rewind(self, to: Now) -> list[Transition]:
        """Go back to step `to.step`: what began later is forgotten, what fires goes on firing."""
        transitions = []
        for rule, page in self.pages.items():
            for labels, before in list(page.alerts.items()):
                after, change = rewind(before, to)
                transitions += _turn(page, rule, labels, before, after, change, to)
        return transitions

    def open(self) -> tuple[Incident, ...]:
        return tuple(page.incident for page in self.pages.values() if page.incident is not None)

    def settle(self, changed: Iterable[tuple[incidents.Subject, list[Transition]]], now: Now) -> list[Incident]:
        """Open, grow and close the rules' incidents after a step; returns those that are open or have just ended."""
        current = []
        for subject, transitions in changed:
            page = self.page(subject.rule)
            after = incidents.update(page.incident, subject, transitions, page.firing(), now)
            page.incident = None
            if after is not None:
                self.keep(after)
                current.append(after)
        return current

    def keep(self, incident: Incident) -> None:
        """Let an open incident stand in the book as it is now."""
        self.page(incident.rule).incident = incident if incident.active else None


def _turn(
    page: Page, rule: str, labels: LabelSet, before: Alert, after: Alert, change: Change | None, now: Now
) -> list[Transition]:
    if after.phase is Phase.INACTIVE:
        page.alerts.pop(labels, None)
    else:
        page.alerts[labels] = after
    if change is None:
        return []
    known = before if after.phase is Phase.INACTIVE else after
    return [Transition(rule, labels, before.phase, after.phase, change, now, known.micro_step, known.value)]
