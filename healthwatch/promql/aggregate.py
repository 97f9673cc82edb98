"""Aggregations. A group is known if any member is; its value comes from the kept members, as in Prometheus.

Each takes the kept members, group by group, and gives one value a group.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from healthwatch.promql.groups import Groups
from healthwatch.promql.quantiles import quantile_groups
from healthwatch.promql.sums import mean_groups, sum_groups, variance_groups
from healthwatch.promql.vector import POSITIVE, EvaluationError, Indices, Vector, full_vector
from healthwatch.stream.ring import Floats, Mask


@dataclass(slots=True, eq=False)
class Members:
    """The kept members of a vector's groups: `values` by group, each group at `starts`, `counts` long.

    `positive` says that no value is negative or not finite.
    """

    values: Floats
    starts: Indices
    counts: Indices
    positive: bool = False


Aggregation: TypeAlias = Callable[..., Floats]
AGGREGATIONS: dict[str, Aggregation] = {}


def _aggregation(name: str) -> Callable[[Aggregation], Aggregation]:
    def enter(function: Aggregation) -> Aggregation:
        AGGREGATIONS[name] = function
        return function

    return enter


def aggregate(function: Aggregation, vector: Vector, groups: Groups, parameter: float | None) -> Vector:
    """One element a group; those without a kept member have no value."""
    if not len(groups.starts):
        return Vector(groups.labels, np.empty(0), vector.kept, vector.known)
    if vector.complete():
        members = Members(groups.sorted(vector.values), groups.starts, groups.sizes, vector.grade == POSITIVE)
        return full_vector(groups.labels, _call(function, members, parameter))
    counts = groups.count(vector.kept)
    kept = counts > 0
    known = kept if vector.known is vector.kept else groups.any(vector.known)
    values = np.zeros(len(groups.labels))
    if kept.any():
        values[kept] = _call(function, _kept_members(vector, groups, counts, kept), parameter)
    return Vector(groups.labels, values, kept, known)


def _call(function: Aggregation, members: Members, parameter: float | None) -> Floats:
    return function(members) if parameter is None else function(members, parameter)


def _kept_members(vector: Vector, groups: Groups, counts: Indices, kept: Mask) -> Members:
    ordered = vector.kept if groups.order is None else vector.kept[groups.order]
    values = groups.sorted(vector.values)[ordered]
    sizes = counts[kept]
    starts = np.concatenate(([0], np.cumsum(sizes)[:-1])).astype(np.intp)
    return Members(values, starts, sizes)


@_aggregation("sum")
def _sum(members: Members) -> Floats:
    return sum_groups(members.values, members.starts, positive=members.positive)


@_aggregation("avg")
def _avg(members: Members) -> Floats:
    return mean_groups(members.values, members.starts, members.counts, positive=members.positive)


@_aggregation("min")
def _min(members: Members) -> Floats:
    return np.asarray(np.fmin.reduceat(members.values, members.starts))


@_aggregation("max")
def _max(members: Members) -> Floats:
    return np.asarray(np.fmax.reduceat(members.values, members.starts))


@_aggregation("count")
def _count(members: Members) -> Floats:
    return members.counts.astype(np.float64)


@_aggregation("group")
def _group(members: Members) -> Floats:
    return np.ones(len(members.starts))


@_aggregation("stdvar")
def _stdvar(members: Members) -> Floats:
    return variance_groups(members.values, members.starts, members.counts)


@_aggregation("stddev")
def _stddev(members: Members) -> Floats:
    return np.sqrt(_stdvar(members))


@_aggregation("quantile")
def _quantile(members: Members, quantile: float) -> Floats:
    return quantile_groups(quantile, members.values, members.starts, members.counts)


def whole_number(parameter: float) -> int:
    """The parameter of topk and its like; raises EvaluationError as Prometheus does."""
    if np.isnan(parameter):
        raise EvaluationError("Parameter value is NaN")
    if abs(parameter) >= 2.0**63:
        raise EvaluationError(f"Scalar value {parameter:g} overflows int64")
    return int(parameter)
