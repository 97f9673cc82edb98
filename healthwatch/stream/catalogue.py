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


@dataclass(frozen=True, slots=True)
class Metric:
    """`labels` are those that its series may carry; `source` is the monitor or reader that yields it."""

    name: str
    unit: str
    labels: tuple[str, ...]
    kind: Kind
    cadence: Cadence
    source: str
    help: str


@cache
def catalogue() -> Mapping[str, Metric]:
    """Every known metric by name."""
    entries: Mapping[str, Mapping[str, Any]] = yaml.safe_load(resources.read_text("schemas/metrics.yaml"))
    return MappingProxyType({name: _metric(name, entry) for name, entry in entries.items()})


def _metric(name: str, entry: Mapping[str, Any]) -> Metric:
    return Metric(name=name, labels=tuple(entry["labels"]), **{k: v for k, v in entry.items() if k != "labels"})
