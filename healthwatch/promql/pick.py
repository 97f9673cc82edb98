"""Aggregations that pick elements and keep their labels: topk, bottomk, limitk, limit_ratio; and count_values."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import TypeAlias

import numpy as np

from healthwatch.promql.aggregate import whole_number
from healthwatch.promql.groups import Groups
from healthwatch.promql.vector import (
    EvaluationError,
    Indices,
    Labels,
    Vector,
    nothing,
    replaced,
)
from healthwatch.promql.xxhash import label_hash
from healthwatch.stream.ring import Floats
from healthwatch.stream.series import LabelSet

_MOST_REMEMBERED = 10_000

Pick: TypeAlias = Callable[[Vector, Groups, float], Vector]
PICKS: dict[str, Pick] = {}


def _pick(function: Pick) -> Pick:
    PICKS[function.__name__] = function
    return function


@_pick
def topk(vector: Vector, groups: Groups, parameter: float) -> Vector:
    """The k largest of each group; NaN is smaller than everything, and of equals the first wins."""
    return _extreme(vector, groups, parameter, -vector.values)


@_pick
def bottomk(vector: Vector, groups: Groups, parameter: float) -> Vector:
    """The k smallest of each group; NaN is larger than everything, and of equals the first wins."""
    return _extreme(vector, groups, parameter, vector.values)


@_pick
def limitk(vector: Vector, groups: Groups, parameter: float) -> Vector:
    """The first k of each group."""
    return _extreme(vector, groups, parameter, np.zeros(len(vector.values)))


def _extreme(vector: Vector, groups: Groups, parameter: float, keys: Floats) -> Vector:
    """Those of each group that come first by key; a NaN key (sorts last) still counts as an element."""
    limit = whole_number(parameter)
    if limit < 1 or not vector.kept.any():
        return replace(vector, kept=nothing(len(vector.kept)))
    candidates = np.flatnonzero(vector.kept)
    member = groups.member[candidates]
    ordered = candidates[np.lexsort((candidates, keys[candidates], member))]
    sizes = np.bincount(member, minlength=len(groups.sizes))
    rank = np.arange(len(ordered)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    chosen = ordered[rank < limit]
    kept = np.zeros(len(vector.kept), bool)
    kept[chosen] = True
    return replace(vector, kept=kept, order=chosen)


@_pick
def limit_ratio(vector: Vector, groups: Groups, parameter: float) -> Vector:  # noqa: ARG001 - one signature for all
    """About that share of the elements, by a hash of their labels; -r takes exactly those that 1-r leaves."""
    if np.isnan(parameter):
        raise EvaluationError("Ratio value is NaN")
    ratio = min(max(parameter, -1.0), 1.0)
    places = np.array([_place(labels) for labels in vector.labels.sets])
    chosen = places < ratio if ratio >= 0 else places >= 1.0 + ratio
    return replace(vector, kept=vector.kept & chosen)


def _place(labels: LabelSet) -> float:
    """Where a label set stands in [0, 1], as Prometheus has it."""
    return label_hash(labels) / (2**64 - 1)


@dataclass(slots=True)
class CountValues:
    """`count_values`: its label sets depend on the values, so it remembers those it has made.

    They stand in order, for what comes first must not depend on which values there were before.
    """

    label: str
    _places: dict[LabelSet, int] = field(default_factory=dict)
    _labels: Labels = field(default_factory=lambda: Labels(()))

    def __call__(self, vector: Vector, groups: Groups) -> Vector:
        candidates = np.flatnonzero(vector.kept)
        pairs = zip(groups.member[candidates].tolist(), vector.values[candidates].tolist(), strict=True)
        counts = Counter(replaced(groups.labels[group], self.label, go_float(value)) for group, value in pairs)
        self._make(counts)
        values, kept = np.zeros(len(self._labels)), np.zeros(len(self._labels), bool)
        places: Indices = np.array([self._places[labels] for labels in counts], dtype=np.intp)
        kept[places] = True
        values[places] = list(counts.values())
        return Vector(self._labels, values, kept, kept)

    def _make(self, wanted: Iterable[LabelSet]) -> None:
        if len(self._places) > _MOST_REMEMBERED:
            self._places = {}
            self._labels = Labels(())
        fresh = [labels for labels in wanted if labels not in self._places]
        if fresh:
            self._labels = Labels(sorted((*self._places, *fresh)))
            self._places = {labels: place for place, labels in enumerate(self._labels.sets)}


def go_float(value: float) -> str:
    """As Go writes a float in full: shortest digits, no exponent."""
    if np.isnan(value):
        return "NaN"
    if np.isinf(value):
        return "+Inf" if value > 0 else "-Inf"
    return np.format_float_positional(value, trim="-")
