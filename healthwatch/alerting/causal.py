"""Which of several alerts came first: by step and micro-step, then by the way that a fault takes through the model."""

from __future__ import annotations

import re

from healthwatch.alerting.ledger import Ledger, Rows
from healthwatch.alerting.model import LabelSet
from healthwatch.stream.location import location

BACKWARD = frozenset({"local_norm", "micro_norm", "device_norm"})  # gradients: the last layer comes first
MOST_COMPARED = 5000  # reading 20,000 names takes longer than a step may wait

_LAST = 1 << 30
_NUMBER = re.compile(r"-?\d+")


def first_of(ledger: Ledger, rows: Rows) -> int:
    """The row of the alert that began it."""
    earliest = ledger.earliest(rows)[:MOST_COMPARED]
    return min((int(row) for row in earliest), key=lambda row: causal_order(ledger.labels[row]))


def causal_order(labels: LabelSet) -> tuple[int, int, LabelSet]:
    """Sorts series that broke at the same tick.

    The forward pass goes from the first layer to the last one and on to the multi-token-prediction layers, a gradient
    the other way round; what belongs to no layer (embedding, head) comes behind the layers.
    """
    named = dict(labels)
    backward = named.get("__name__") in BACKWARD or "param" in named
    place = named if "layer" in named else {**location(named.get("param", "")), **named}
    layer = place.get("layer", "")
    if not _NUMBER.fullmatch(layer):
        return 2, 0, labels
    later = place.get("block") == "mtp"
    depth = int(place.get("mtp_idx", "0")) * 1000 + int(layer) if later else int(layer)
    return (int(not later), -depth, labels) if backward else (int(later), depth, labels)
