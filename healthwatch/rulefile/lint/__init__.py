"""What a rule may say and hardly means: each check looks at one rule whose expressions can be read."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from healthwatch.rulefile.lint import (
    absence,
    alarms,
    always,
    bounds,
    cadence,
    equalities,
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
    equalities.check,
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

_OF_VALUES = (bounds.check, alarms.check, subqueries.check, numbers.check)

__all__ = ["CHECKS", "UNKNOWN", "Facts", "Subject", "lint"]


def lint(subject: Subject) -> None:
    """Note in the rule's draft whatever the checks find; of values that are not known nothing is said."""
    for check in CHECKS:
        if not (subject.draft.guessed and check in _OF_VALUES):
            check(subject)
