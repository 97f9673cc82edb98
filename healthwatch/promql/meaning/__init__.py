"""What everything in the rule language means: functions, aggregations, operators and modifiers, each by name."""

from __future__ import annotations

from collections.abc import Mapping

from healthwatch.promql.meaning.entry import KINDS, Kind, Meaning
from healthwatch.promql.meaning.operators import AGGREGATIONS, MODIFIERS, OPERATORS
from healthwatch.promql.meaning.own import OWN
from healthwatch.promql.meaning.prometheus import FUNCTIONS

__all__ = ["KINDS", "MEANINGS", "Kind", "Meaning"]

MEANINGS: Mapping[str, Meaning] = {
    each.name: each for each in (*OWN, *FUNCTIONS, *AGGREGATIONS, *OPERATORS, *MODIFIERS)
}
"""By name, our own functions first."""
