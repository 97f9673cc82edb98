"""What everything in the rule language means: functions, aggregations, operators and modifiers, each by name."""

from __future__ import annotations

from collections.abc import Mapping

from healthwatch.promql.meaning.entry import KINDS, Kind, Meaning
from healthwatch.promql.meaning.operators import AGGREGATIONS, MODIFIERS, OPERATORS
from healthwatch.promql.meaning.own import OWN
from healthwatch.promql.meaning.prometheus import FUNCTIONS

__all__ = ["KINDS", "MEANINGS", "Kind", "Meaning", "meaning_of"]

MEANINGS: Mapping[str, Meaning] = {
    each.name: each for each in (*OWN, *FUNCTIONS, *AGGREGATIONS, *OPERATORS, *MODIFIERS)
}
"""By name, our own functions first."""


def meaning_of(written: str) -> Meaning | None:
    """What is meant by a name as somebody types it: `ema()` and `[50]` too, and keywords in capitals."""
    name = written.removesuffix("()")
    if name.startswith("["):
        name = "[window:step]" if ":" in name else "[window]"
    return MEANINGS.get(name) or MEANINGS.get(name.lower())
