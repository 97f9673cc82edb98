"""How the elements of two vectors find each other: `on`, `ignoring`, `group_left`, `group_right`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from weakref import WeakKeyDictionary

import numpy as np

from healthwatch.promql import ast
from healthwatch.promql.groups import numbered
from healthwatch.promql.relabel import Clash
from healthwatch.promql.vector import (
    Derived,
    EvaluationError,
    Indices,
    Labels,
    Vector,
    both,
    get,
    only,
    replaced,
    without,
)
from healthwatch.stream.ring import Floats, Mask
from healthwatch.stream.series import LabelSet

DEFAULT = ast.Matching(on=False, labels=(), group=None, include=())


def signatures(labels: Labels, matching: ast.Matching) -> Sequence[LabelSet]:
    """The labels by which elements find each other."""
    names = frozenset(matching.labels)
    if matching.on:
        return [only(each, names) for each in labels.sets]
    return [without(each, names) for each in labels.bare()] if names else labels.bare()


def in_groups(left: Labels, right: Labels, matching: ast.Matching) -> tuple[Indices, Indices, int]:
    """The match group of every element of both sides, and how many groups there are; often the sides are the same."""
    if left.bare() is right.bare() and not matching.on:
        groups, keys = numbered(signatures(left, matching))
        return groups, groups, len(keys)
    groups, keys = numbered([*signatures(left, matching), *signatures(right, matching)])
    return groups[: len(left)], groups[len(left) :], len(keys)


def result_labels(many: LabelSet, one: LabelSet, matching: ast.Matching) -> LabelSet:
    """The labels of a joined element, from the side that may have many (the left one without grouping)."""
    labels = many
    if matching.group is None:
        names = frozenset(matching.labels)
        return only(labels, names) if matching.on else without(labels, names)
    for name in matching.include:
        labels = replaced(labels, name, get(one, name))
    return labels


@dataclass(frozen=True, slots=True)
class Join:
    """Pairs of positions that match, and what must hold of the elements that are kept.

    `left` and `right` are None where they are all positions in order.
    """

    labels: Labels
    left: Indices | None
    right: Indices | None
    left_groups: Indices  # the match group of every element, whether or not it has a partner
    right_groups: Indices
    unique: tuple[bool, bool]  # whether no match group holds two elements of the side
    clash: Clash | None

    def pairs(self, left: Vector, right: Vector) -> tuple[Vector, Floats, Floats]:
        """The masks of both sides in one vector (its values are the left ones), and the values of each side."""
        left_values, left_kept, left_known = _taken(left, self.left)
        right_values, right_kept, right_known = _taken(right, self.right)
        kept = both(left_kept, right_kept)
        same = left_kept is left_known and right_kept is right_known
        known = kept if same else both(left_known, right_known)
        grade = min(left.grade, right.grade)
        return Vector(self.labels, left_values, kept, known, grade=grade), left_values, right_values

    def check_sides(self, left: Vector, right: Vector, group: str | None) -> None:
        """Raise EvaluationError if a side that must be unique has two kept elements in a match group."""
        if group != "right" and not self.unique[1]:
            _check_unique(right.kept, self.right_groups, "right")
        if group == "right" and not self.unique[0]:
            _check_unique(left.kept, self.left_groups, "left")

    def check_result(self, kept: Mask, group: str | None) -> None:
        """Raise EvaluationError if two kept pairs are one to the reader of the result."""
        if group is None and not self.unique[0]:
            left = self.left_groups if self.left is None else self.left_groups[self.left]
            if (np.bincount(left[kept], minlength=1) > 1).any():
                raise EvaluationError(
                    "multiple matches for labels: many-to-one matching must be explicit (group_left/group_right)"
                )
        elif group is not None and self.clash is not None and _clashes(self.clash, kept):
            raise EvaluationError("multiple matches for labels: grouping labels must ensure unique matches")


def _clashes(clash: Clash, kept: Mask) -> bool:
    return bool((np.bincount(clash.member[kept], minlength=1) > 1).any())


def _taken(vector: Vector, positions: Indices | None) -> tuple[Floats, Mask, Mask]:
    if positions is None:
        return vector.values, vector.kept, vector.known
    kept = vector.kept[positions]
    known = kept if vector.known is vector.kept else vector.known[positions]
    return vector.values[positions], kept, known


def _check_unique(kept: Mask, groups: Indices, side: str) -> None:
    if (np.bincount(groups[kept], minlength=1) > 1).any():
        raise EvaluationError(
            f"found duplicate series for the match group on the {side} side of the operation: "
            "many-to-many matching not allowed: matching labels must be unique on one side"
        )


@dataclass(slots=True)
class Matcher:
    """Joins two vectors; the pairs are found once for the label sets of both, whichever expressions join them."""

    matching: ast.Matching
    drops_name: bool  # at once, as arithmetic does; `bool` marks it to be dropped at the end
    marks_name: bool
    _join: Derived[Join] = field(init=False)

    def __post_init__(self) -> None:
        self._join = Derived(self._shared)

    def __call__(self, left: Vector, right: Vector) -> Join:
        join = self._join(left.labels, right.labels)
        join.check_sides(left, right, self.matching.group)
        return join

    def _shared(self, left: Labels, right: Labels) -> Join:
        """Kept with the left side for as long as the right one lives: who is joined later gets the same labels."""
        joins = left.once((self.matching, self.drops_name, self.marks_name), _joins)
        join = joins.get(right)
        if join is None:
            join = joins[right] = self._build(left, right)
        return join

    def _build(self, left: Labels, right: Labels) -> Join:
        matching = self.matching
        left_groups, right_groups, _ = in_groups(left, right, matching)
        lefts, rights = _matching_pairs(left_groups, right_groups)
        many, one = (rights, lefts) if matching.group == "right" else (lefts, rights)
        many_labels, one_labels = (right, left) if matching.group == "right" else (left, right)
        many_sets = many_labels.bare() if self.drops_name else many_labels.sets
        sets: Sequence[LabelSet] = [many_sets[place] for place in many.tolist()]
        if matching.labels or matching.include or matching.on:
            sets = [result_labels(m, one_labels[o], matching) for m, o in zip(sets, one.tolist(), strict=True)]
        drop = np.ones(len(sets), bool) if self.marks_name else many_labels.dropped()[many]
        return Join(
            Labels(sets, drop),
            _unless_identity(lefts, len(left)),
            _unless_identity(rights, len(right)),
            left_groups,
            right_groups,
            (_is_unique(left_groups), _is_unique(right_groups)),
            None if matching.group is None else Clash.among(sets),
        )


def _joins(_: Labels) -> WeakKeyDictionary[Labels, Join]:
    return WeakKeyDictionary()


def _matching_pairs(left: Indices, right: Indices) -> tuple[Indices, Indices]:
    """All pairs of positions with the same group, by left position."""
    if left is right and _is_unique(left):
        everyone = np.arange(len(left))
        return everyone, everyone
    order = np.argsort(right, kind="stable")
    ordered = right[order]
    starts, ends = np.searchsorted(ordered, left), np.searchsorted(ordered, left, side="right")
    counts = ends - starts
    lefts = np.repeat(np.arange(len(left)), counts)
    within = np.arange(len(lefts)) - np.repeat(np.cumsum(counts) - counts, counts)
    return lefts, order[np.repeat(starts, counts) + within]


def _unless_identity(positions: Indices, size: int) -> Indices | None:
    same = len(positions) == size and np.array_equal(positions, np.arange(size))
    return None if same else positions


def _is_unique(groups: Indices) -> bool:
    return len(np.unique(groups)) == len(groups)
