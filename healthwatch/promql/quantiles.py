"""Quantiles as Prometheus interpolates them: NaN sorts first."""

from __future__ import annotations

import numpy as np

from healthwatch.promql.vector import Indices
from healthwatch.promql.window import Counts
from healthwatch.stream.ring import Floats


def quantile_rows(quantile: float, values: Floats, counts: Counts) -> Floats:
    """The quantile of each column's first `counts` values."""
    outside = np.less(np.arange(len(values))[:, None], counts)
    # NaN goes below the samples, where the sort puts it anyway; `shift` then brings it to the front.
    ordered = np.sort(np.where(outside, values, np.nan), axis=0)
    shift = (np.isnan(values) & outside).sum(axis=0)
    return _interpolated(quantile, ordered, counts, shift)


def quantile_groups(quantile: float, values: Floats, starts: Indices, counts: Counts) -> Floats:
    """The quantile of each run of `values` that begins at one of `starts`, `counts` long."""
    groups = np.repeat(np.arange(len(counts)), counts)
    ordered = values[np.lexsort((values, groups))]
    nans = np.add.reduceat(np.isnan(ordered).astype(np.intp), starts)
    low, high, weight = _places(quantile, counts)
    ends = [np.where(at < nans, np.nan, ordered[starts + np.maximum(at - nans, 0)]) for at in (low, high)]
    return _outside(quantile, ends[0] * (1 - weight) + ends[1] * weight)


def _interpolated(quantile: float, ordered: Floats, counts: Counts, shift: Counts) -> Floats:
    low, high, weight = _places(quantile, counts)
    ends = [
        np.where(at < shift, np.nan, np.take_along_axis(ordered, np.maximum(at - shift, 0)[None], 0)[0])
        for at in (low, high)
    ]
    return _outside(quantile, ends[0] * (1 - weight) + ends[1] * weight)


def _places(quantile: float, counts: Counts) -> tuple[Indices, Indices, Floats]:
    last = np.maximum(counts - 1, 0)
    rank = (quantile if 0 <= quantile <= 1 else 0.0) * last
    low = np.floor(rank).astype(np.intp)
    return low, np.minimum(low + 1, last), rank - low


def _outside(quantile: float, values: Floats) -> Floats:
    if np.isnan(quantile):
        return np.full_like(values, np.nan)
    if quantile < 0:
        return np.full_like(values, -np.inf)
    return np.full_like(values, np.inf) if quantile > 1 else values
