"""Which elements of a vector belong together, as index arrays for `reduceat`."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from healthwatch.promql.vector import Indices, Labels, only, without
from healthwatch.stream.ring import Floats, Mask
from healthwatch.stream.series import LabelSet

Key = TypeVar("Key", bound=Hashable)


@dataclass(frozen=True, slots=True, eq=False)
class Groups:
    """`member[i]` is the group of element i; `order` sorts elements by group (None: they are sorted).

    In that order each group begins at one of `starts` and has one of `sizes` elements.
    """

    labels: Labels
    member: Indices
    order: Indices | None
    starts: Indices
    sizes: Indices

    def sorted(self, values: Floats) -> Floats:
        return values if self.order is None else values[self.order]

    def any(self, mask: Mask) -> Mask:
        """Which groups have an element in the mask."""
        ordered = mask if self.order is None else mask[self.order]
        return np.logical_or.reduceat(ordered, self.starts)

    def count(self, mask: Mask) -> Indices:
        ordered = mask if self.order is None else mask[self.order]
        return np.add.reduceat(ordered, self.starts, dtype=np.intp)


def numbered(keys: Iterable[Key]) -> tuple[Indices, list[Key]]:
    """A number for each distinct key, in order of appearance, and the keys by number."""
    numbers: dict[Key, int] = {}
    member = [numbers.setdefault(key, len(numbers)) for key in keys]
    return np.array(member, dtype=np.intp), list(numbers)


def group(labels: Labels, names: tuple[str, ...], leave_out: bool) -> Groups:
    """Groups `by (names)` or `without (names)`, in order of appearance; always the same object.

    A group loses its name if one of its members does.
    """
    return labels.once((names, leave_out), lambda of: _grouped(of, frozenset(names), leave_out))


def _grouped(labels: Labels, names: frozenset[str], leave_out: bool) -> Groups:
    if leave_out:
        sets: Iterable[LabelSet] = (without(each, names) for each in labels.bare())
    else:
        sets = (only(each, names) for each in labels.sets)
    member, keys = numbered(sets)
    sizes = np.bincount(member, minlength=len(keys))
    starts = np.concatenate(([0], np.cumsum(sizes)[:-1])).astype(np.intp) if len(keys) else sizes
    order = None if (np.diff(member) >= 0).all() else np.argsort(member, kind="stable")
    drop = np.zeros(len(keys), bool)
    drop[member[labels.dropped()]] = True
    return Groups(Labels(keys, drop), member, order, starts, sizes)
