"""Where a model shows its expert counters and attention logits: cells with the attributes of MindSpore Transformers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from healthwatch.stream import LabelSet
from healthwatch.stream.location import location
from healthwatch.stream.series import label_set

_TOPK = ("topk", "num_experts_per_tok", "moe_router_topk")


@dataclass(frozen=True, slots=True)
class Tap:
    """One attribute of one cell, its name path, and the labels of the layer in which the cell stands."""

    cell: Any
    attribute: str
    labels: Mapping[str, str]
    path: str

    def tensor(self) -> Any | None:
        return getattr(self.cell, self.attribute, None)


@dataclass(frozen=True, slots=True)
class Routers:
    """The routers of a model: their counters, and to how many experts each sends a token."""

    taps: tuple[Tap, ...]
    topk: tuple[int | None, ...]


def find_routers(model: Any, topk: int | None = None) -> Routers:
    """Cells with `tokens_per_expert`. `topk` stands in where neither the cell nor one around it names a number."""
    cells = dict(model.cells_and_names())
    found = [(path, cell) for path, cell in cells.items() if hasattr(cell, "tokens_per_expert")]
    counts = tuple(_topk(path, cells) or topk for path, _ in found)
    return Routers(_taps(found, "tokens_per_expert"), counts)


def find_logits(model: Any) -> tuple[Tap, ...]:
    """Cells with `max_logits_val`, one maximum per head."""
    found = [(path, cell) for path, cell in model.cells_and_names() if hasattr(cell, "max_logits_val")]
    return _taps(found, "max_logits_val")


def _taps(found: Sequence[tuple[str, Any]], attribute: str) -> tuple[Tap, ...]:
    labels = [dict(location(path)) or {"layer": path} for path, _ in found]
    times = Counter(frozenset(each.items()) for each in labels)
    for each, (path, _) in zip(labels, found, strict=True):
        if times[frozenset(each.items())] > 1:
            each["cell"] = path
    return tuple(
        Tap(cell, attribute, each, f"{path}.{attribute}") for each, (path, cell) in zip(labels, found, strict=True)
    )


def names(taps: Sequence[Tap]) -> dict[LabelSet, str]:
    """By the labels of its layer: what the trainer's logs call each."""
    return {label_set(tap.labels): tap.path for tap in taps}


def _topk(path: str, cells: Mapping[str, Any]) -> int | None:
    """The number that the router's cell gives, its configuration, or the nearest cell around it."""
    while True:
        cell = cells.get(path)
        for owner in (cell, getattr(cell, "config", None)):
            for name in _TOPK:
                value = getattr(owner, name, None)
                if isinstance(value, int) and not isinstance(value, bool):
                    return value
        if not path:
            return None
        path = path.rpartition(".")[0]
