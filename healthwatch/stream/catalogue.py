"""What the metrics that healthwatch knows mean: `schemas/metrics.yaml`, read once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType
from typing import Any, Literal, TypeAlias

import yaml

from healthwatch import resources

Kind: TypeAlias = Literal["gauge", "counter", "delta", "flag"]
Cadence: TypeAlias = Literal["micro-step", "step", "sparse"]

PLACEMENT = ("cp", "dp", "pp", "rank", "tp")
"""Labels that any metric of a run on several devices may carry."""


@dataclass(frozen=True, slots=True)
class Metric:
    """`labels` are those that its series may carry, `optional` those of them that not every series has.

    `source` is the monitor or reader that yields it, `every` the steps between two samples of a sparse one where that
    is known, `series` how many there are of it in a large model where they are many.
    """

    name: str
    unit: str
    labels: tuple[str, ...]
    kind: Kind
    cadence: Cadence
    source: str
    help: str
    optional: tuple[str, ...] = ()
    every: int | None = None
    series: int | None = None


@cache
def catalogue() -> Mapping[str, Metric]:
    """Every known metric by name."""
    entries: Mapping[str, Mapping[str, Any]] = yaml.safe_load(resources.read_text("schemas/metrics.yaml"))
    return MappingProxyType({name: _metric(name, entry) for name, entry in entries.items()})


def _metric(name: str, entry: Mapping[str, Any]) -> Metric:
    fields: dict[str, Any] = {key: tuple(each) if isinstance(each, list) else each for key, each in entry.items()}
    return Metric(name=name, **fields)
