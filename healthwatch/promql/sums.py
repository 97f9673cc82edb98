"""Sums as Prometheus makes them: compensated (Kahan, Neumaier's variant), in order.

Where no digits can cancel a plain sum agrees to about 1e-12 and is many times faster, so it goes first.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from healthwatch.promql.vector import Indices
from healthwatch.stream.ring import Floats, Mask

_CANCELS_BELOW = 1e-3
"""A plain sum stands if it is at least this part of the sum of magnitudes."""

SMALL = 1 << 16
"""Up to so many values numpy's overhead counts, beyond them the memory that whole arrays take."""


def add_rows(rows: Floats) -> Floats:
    """The sum down the first axis, one row after the other: the same to the last bit for any selection of columns.

    (`np.sum` adds a single column pairwise, many columns row by row.)
    """
    if rows.size <= SMALL:
        return np.asarray(np.add.accumulate(rows, axis=0)[-1] if len(rows) else np.zeros(rows.shape[1:]))
    total: Floats = rows[0].copy()
    for row in rows[1:]:
        total += row
    return total


def kahan_step(increment: Floats, total: Floats, rest: Floats) -> tuple[Floats, Floats]:
    """Add one increment to a compensated sum (total, rest)."""
    new = total + increment
    lost = np.where(np.abs(total) >= np.abs(increment), (total - new) + increment, (increment - new) + total)
    return new, np.where(np.isinf(new), 0.0, rest + lost)


def compensated(rows: Floats) -> tuple[Floats, Floats]:
    """Neumaier's sum down the first axis, as total and rest."""
    total, rest = np.zeros(rows.shape[1:]), np.zeros(rows.shape[1:])
    for row in rows:
        total, rest = kahan_step(row, total, rest)
    return total, rest


def _finished(total: Floats, rest: Floats) -> Floats:
    return np.where(np.isinf(total), total, total + rest)


def add_blocks(blocks: Sequence[Floats]) -> Floats:
    """`add_rows` of blocks of rows that belong one below the other."""
    if len(blocks) == 1:
        return add_rows(blocks[0])
    if sum(block.size for block in blocks) <= SMALL:
        return add_rows(np.concatenate(blocks))
    total = add_rows(blocks[0])
    for row in blocks[1]:
        total += row
    return total


def sum_rows(blocks: Sequence[Floats], *, positive: bool = False) -> Floats:
    """The sum of each column; NaN and infinities as in Prometheus. `positive`: no value is negative or not finite."""
    total = add_blocks(blocks)
    if positive and np.isfinite(total).all():
        return total
    rows = blocks[0] if len(blocks) == 1 else np.concatenate(blocks)
    doubtful = _doubtful(total, add_rows(np.abs(rows)))
    if doubtful.any():
        which = np.flatnonzero(doubtful)
        which = which[np.isfinite(rows[:, which]).all(axis=0)]  # with an infinity or a NaN the order is all the same
        total[which] = _finished(*compensated(rows[:, which]))
    return total


def _doubtful(total: Floats, magnitude: Floats) -> Mask:
    """Where digits may have cancelled, or the order decides between an overflow and a number."""
    return np.logical_or(~(np.abs(total) >= _CANCELS_BELOW * magnitude), np.isinf(magnitude))


def sum_groups(values: Floats, starts: Indices, *, positive: bool = False) -> Floats:
    """The sum of each run of `values` that begins at one of `starts`; none of them is empty.

    `positive`: no value is negative or not finite.
    """
    total: Floats = np.add.reduceat(values, starts)
    if (positive or values.min() >= 0) and np.count_nonzero(np.isfinite(total)) == len(total):
        return total
    doubtful = _doubtful(total, np.add.reduceat(np.abs(values), starts))
    ends = np.append(starts[1:], len(values))
    for group in np.flatnonzero(doubtful):
        total[group] = _sum_in_order(values[starts[group] : ends[group]])
    return total


def _sum_in_order(values: Floats) -> float:
    if not np.isfinite(values).all():
        return float(np.add.accumulate(values)[-1])
    return float(_finished(*compensated(values[:, None]))[0])


def mean_rows(blocks: Sequence[Floats], counts: Floats, *, positive: bool = False) -> Floats:
    """The mean of each column, whose samples stand at its top (0 below); finite wherever its samples are."""
    total = sum_rows(blocks, positive=positive)
    mean = total / counts
    overflown = np.isinf(total)
    if overflown.any():
        rows = blocks[0] if len(blocks) == 1 else np.concatenate(blocks)
        overflown[overflown] = np.isfinite(rows[:, overflown]).all(axis=0)
        mean[overflown] = _incremental_mean(rows[:, overflown], counts[overflown])
    return mean


def _incremental_mean(rows: Floats, counts: Floats) -> Floats:
    """Prometheus' mean where the sum overflows: it goes on with a running mean from there."""
    total, rest = rows[0].copy(), np.zeros(rows.shape[1])
    running = np.zeros(rows.shape[1], bool)
    for index, row in enumerate(rows[1:], start=1):
        number = index + 1.0
        inside = counts > index
        new, new_rest = kahan_step(row, total, rest)
        switch = inside & ~running & np.isinf(new)
        total, rest = np.where(switch, total / index, total), np.where(switch, rest / index, rest)
        running |= switch
        share = index / number
        mean, mean_rest = kahan_step(row / number, share * total, share * rest)
        step = inside & running
        total = np.where(step, mean, np.where(inside, new, total))
        rest = np.where(step, mean_rest, np.where(inside, new_rest, rest))
    return np.where(running, total + rest, total / counts + rest / counts)


def variance_rows(rows: Floats, counts: Floats, present: Mask) -> Floats:
    """The population variance of each column; exactly 0 where all its samples are equal.

    Shifted by the first sample, then two passes: as exact as Welford's update and without its divisions.
    """
    shifted = rows - rows[0]
    mean = add_rows(np.where(present, shifted, 0.0)) / counts
    deviation = np.where(present, shifted - mean, 0.0)
    return add_rows(deviation * deviation) / counts


def mean_groups(values: Floats, starts: Indices, counts: Indices, *, positive: bool = False) -> Floats:
    """The mean of each run of `values`; finite wherever its members are."""
    total = sum_groups(values, starts, positive=positive)
    mean = total / counts
    for group in np.isinf(total).nonzero()[0]:
        members = values[starts[group] : starts[group] + counts[group]]
        if np.isfinite(members).all():
            number = counts[group : group + 1].astype(np.float64)
            mean[group] = _incremental_mean(members[:, None], number)[0]
    return mean


def variance_groups(values: Floats, starts: Indices, counts: Indices) -> Floats:
    """The population variance of each run of `values`; exactly 0 where its members are equal."""
    shifted = values - np.repeat(values[starts], counts)
    mean = np.add.reduceat(shifted, starts) / counts
    deviation = shifted - np.repeat(mean, counts)
    return np.asarray(np.add.reduceat(deviation * deviation, starts) / counts)
