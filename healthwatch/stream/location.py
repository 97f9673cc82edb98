"""Which block and layer a part of a model belongs to, read from its name path."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise

_STACKS = ("layers", "blocks", "h", "layer", "block")


def location(path: str) -> Mapping[str, str]:
    """Labels of the layer in which a cell stands; none where the path names no layer.

    `decoder.layers.3.mlp.router` is `{block: decoder, layer: 3}`, `blocks.3.moe` the same. Below `mtp` the first
    index is the `mtp_idx` and the next one the layer (0 where there is none): layer 0 there is not decoder layer 0.
    """
    parts = path.split(".")
    if "mtp" in parts:
        indices = [part for part in parts[parts.index("mtp") + 1 :] if part.isdigit()]
        return {"block": "mtp", "mtp_idx": _first(indices), "layer": _first(indices[1:])}
    for stack, index in pairwise(parts):
        if stack in _STACKS and index.isdigit():
            return {"block": "decoder", "layer": index}
    return {}


def _first(indices: list[str]) -> str:
    return indices[0] if indices else "0"
