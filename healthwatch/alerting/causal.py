"""Which of several alerts came first: by step and micro-step, then by the way that a fault takes through the model."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache

from healthwatch.alerting.ledger import Ledger, Rows
from healthwatch.alerting.model import LabelSet
from healthwatch.stream.location import location

BACKWARD = frozenset({"local_norm", "micro_norm", "device_norm"})  # gradients: the last layer comes first
MOST_COMPARED = 20_000  # reading more names takes longer than a step may wait

_NUMBER = re.compile(r"-?\d+")


def first_of(ledger: Ledger, rows: Rows) -> int:
    """The row of the alert that began it."""
    earliest = ledger.earliest(rows)[:MOST_COMPARED]
    found: list[int] = earliest.tolist()
    return min(found, key=lambda row: causal_order(ledger.labels[row]))


def causal_order(labels: LabelSet) -> tuple[int, int, LabelSet]:
    """Sorts series that broke at the same tick.

    The forward pass goes from the first layer to the last one and on to the multi-token-prediction layers, a gradient
    the other way round; what belongs to no layer (embedding, head) comes behind the layers.
    """
    named = dict(labels)
    place = named if "layer" in named else _place(named.get("param", ""))
    layer = place.get("layer", "")
    if not (layer.isdecimal() or _NUMBER.fullmatch(layer)):
        return 2, 0, labels
    depth, later = int(layer), int((named.get("block") or place.get("block")) == "mtp")
    if later:
        depth += 1000 * int(named.get("mtp_idx") or place.get("mtp_idx", "0"))
    backward = "param" in named or named.get("__name__") in BACKWARD
    return (1 - later, -depth, labels) if backward else (later, depth, labels)


def _place(path: str) -> Mapping[str, str]:
    """As `location`. The thousands of parameters of a model stand in a few hundred cells."""
    cell, _, name = path.rpartition(".")
    return (_of_cell(cell) if name != "mtp" else {}) or location(path)


@lru_cache(maxsize=1 << 14)
def _of_cell(path: str) -> Mapping[str, str]:
    """Where everything below a cell stands; nothing where its own name does not say it yet."""
    return {} if "mtp" in path.split(".") else location(path)
