"""What a rule may say and hardly means: each check looks at one rule whose expressions can be read."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from healthwatch.rulefile.lint import (
    absence,
    alarms,
    always,
    bounds,
    cadence,
    joins,
    manners,
    numbers,
    selectors,
    subqueries,
    until,
)
from healthwatch.rulefile.lint.subject import UNKNOWN, Facts, Subject

CHECKS: Sequence[Callable[[Subject], None]] = (
    manners.check,
    selectors.check,
    joins.check,
    cadence.check,
    bounds.check,
    alarms.check,
    subqueries.check,
    absence.check,
    always.check,
    numbers.check,
    until.check,
)

__all__ = ["CHECKS", "UNKNOWN", "Facts", "Subject", "lint"]


def lint(subject: Subject) -> None:
    """Note in the rule's draft whatever the checks find."""
    for check in CHECKS:
        check(subject)
