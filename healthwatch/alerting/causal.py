"""Which of several alerts came first: by step and micro-step, then by the way that a fault takes through the model."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache

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
    """Places among which the first one is, found by looking at each layer or cell once; None where that can't be.

    Label sets of one result nearly always have the same names: only those that say where a series stands are compared.
    """
    names = [name for name, _ in many[0]]
    by_layer = "layer" in names
    if not by_layer and ("param" not in names or not _PLACES.isdisjoint(names)):
        return None
    telling = {*_PLACES, METRIC_NAME} if by_layer else {"param"}
    where = [at for at, name in enumerate(names) if name in telling]
    if len(set(map(len, many))) > 1 or any({labels[at][0] for labels in many} != {names[at]} for at in where):
        return None
    columns = [[labels[at][1] for labels in many] for at in where]
    if by_layer:
        keys = list(map("\0".join, zip(*columns, strict=True))) if len(columns) > 1 else columns[0]
        alone = set[str]()
    else:
        keys = [path.rpartition(".")[0] for path in columns[0]]
        alone = {cell for cell in set(keys) if not _of_cell(cell)}  # the cell does not say where each of them is
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
