"""Which of several alerts came first: by step and micro-step, then by the way that a fault takes through the model."""

from __future__ import annotations

import re
from collections.abc import Hashable, Mapping, Sequence
from functools import lru_cache
from operator import itemgetter

from healthwatch.alerting.ledger import Ledger, Rows
from healthwatch.alerting.model import LabelSet
from healthwatch.stream.location import location
from healthwatch.stream.series import METRIC_NAME

BACKWARD = frozenset({"local_norm", "micro_norm", "device_norm"})  # gradients: the last layer comes first
MOST_COMPARED = 20_000  # reading more names takes longer than a step may wait

_NUMBER = re.compile(r"-?\d+")
_PLACES = frozenset({"layer", "block", "mtp_idx"})
_MANY = 256


def first_of(ledger: Ledger, rows: Rows) -> int:
    """The row of the alert that began it."""
    found: list[int] = ledger.earliest(rows)[:MOST_COMPARED].tolist()
    if len(found) >= _MANY:
        near = _near([ledger.labels[row] for row in found])
        found = [found[place] for place in near] if near is not None else found
    return min(found, key=lambda row: causal_order(ledger.labels[row]))


def _near(many: Sequence[LabelSet]) -> list[int] | None:
    """Places among which the first one is, found by looking at each layer or cell once; None where that can't be."""
    if len(set(map(len, many))) > 1:
        return None
    kinds = [{name for name, _ in column} for column in zip(*many, strict=True)]
    if any(len(kind) > 1 for kind in kinds):
        return None
    names = [next(iter(kind)) for kind in kinds]
    keys: list[Hashable]
    if "layer" in names:
        where = [at for at, name in enumerate(names) if name in _PLACES or name == METRIC_NAME]
        keys = list(map(itemgetter(*where), many))
        alone: set[Hashable] = set()
    elif "param" in names and _PLACES.isdisjoint(names):
        param = names.index("param")
        keys = [labels[param][1].rpartition(".")[0] for labels in many]
        alone = {cell for cell in set(keys) if not _of_cell(str(cell))}  # the cell does not say where each of them is
    else:
        return None
    orders = {key: causal_order(labels)[:2] for key, labels in dict(zip(keys, many, strict=True)).items()}
    best = min((order for key, order in orders.items() if key not in alone), default=None)
    wanted = {key for key, order in orders.items() if key in alone or order == best}
    return [place for place, key in enumerate(keys) if key in wanted]


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
    backward = "param" in named or named.get(METRIC_NAME) in BACKWARD
    return (1 - later, -depth, labels) if backward else (later, depth, labels)


def _place(path: str) -> Mapping[str, str]:
    """As `location`. The thousands of parameters of a model stand in a few hundred cells."""
    return _of_cell(path.rpartition(".")[0]) or location(path)


@lru_cache(maxsize=1 << 14)
def _of_cell(path: str) -> Mapping[str, str]:
    """Where everything below a cell stands; nothing where its own name does not say it yet."""
    return {} if "mtp" in path.split(".") else location(path)
