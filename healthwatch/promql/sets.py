"""The set operators. What is clear follows rule R4: `and` if either side is, `or` if both are, `unless` if the
left is or the right breaches.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np

from healthwatch.promql import ast
from healthwatch.promql.groups import numbered
from healthwatch.promql.match import in_groups
from healthwatch.promql.vector import Derived, Indices, Labels, Vector
from healthwatch.stream.ring import Mask


@dataclass(frozen=True, slots=True)
class Sides:
    """The match group of every element of both sides, and how many groups there are."""

    left: Indices
    right: Indices
    size: int

    def right_of_left(self, mask: Mask) -> Mask:
        """For each left element, whether its group has a right element in the mask."""
        return _has(mask, self.right, self.size)[self.left]

    def left_of_right(self, mask: Mask) -> Mask:
        return _has(mask, self.left, self.size)[self.right]


def _has(mask: Mask, groups: Indices, size: int) -> Mask:
    found = np.zeros(size, bool)
    found[groups[mask]] = True
    return found


def _sides(matching: ast.Matching, left: Labels, right: Labels) -> Sides:
    return Sides(*in_groups(left, right, matching))


SetOperator: TypeAlias = Callable[[Vector, Vector], Vector]


@dataclass(slots=True)
class And:
    matching: ast.Matching
    _sides: Derived[Sides] = field(init=False)

    def __post_init__(self) -> None:
        self._sides = Derived(lambda left, right: _sides(self.matching, left, right))

    def __call__(self, left: Vector, right: Vector) -> Vector:
        sides = self._sides(left.labels, right.labels)
        there = sides.right_of_left(right.kept)
        right_clear = ~there & sides.right_of_left(right.known & ~right.kept)
        kept = left.kept & there
        return Vector(left.labels, left.values, kept, kept | (left.known & ~left.kept) | right_clear)


@dataclass(slots=True)
class Unless:
    matching: ast.Matching
    _sides: Derived[Sides] = field(init=False)

    def __post_init__(self) -> None:
        self._sides = Derived(lambda left, right: _sides(self.matching, left, right))

    def __call__(self, left: Vector, right: Vector) -> Vector:
        there = self._sides(left.labels, right.labels).right_of_left(right.kept)
        return Vector(left.labels, left.values, left.kept & ~there, left.known | there)


@dataclass(frozen=True, slots=True)
class Union:
    """All left elements, then the right ones; a right one with exactly a left one's labels shares its place.

    `shown` numbers the label sets of the places as they will be shown, names that are to be dropped left out.
    """

    sides: Sides
    labels: Labels
    place: Indices  # of each right element
    shown: Indices


@dataclass(slots=True)
class Or:
    matching: ast.Matching
    _union: Derived[Union] = field(init=False)

    def __post_init__(self) -> None:
        self._union = Derived(self._build)

    def _build(self, left: Labels, right: Labels) -> Union:
        keys = [(labels, bool(drop)) for side in (left, right) for labels, drop in _with_drop(side)]
        places = {key: position for position, key in enumerate(keys[: len(left)])}
        taken = len(left)
        place = []
        sets, drop = list(left), list(left.dropped())
        for key in keys[len(left) :]:
            if key not in places:
                places[key] = taken
                taken += 1
                sets.append(key[0])
                drop.append(key[1])
            place.append(places[key])
        labels = Labels(sets, np.array(drop, bool))
        return Union(
            _sides(self.matching, left, right), labels, np.array(place, dtype=np.intp), numbered(labels.shown())[0]
        )

    def __call__(self, left: Vector, right: Vector) -> Vector:
        union = self._union(left.labels, right.labels)
        size, here = len(union.labels), len(left.labels)
        right_kept = right.kept & ~union.sides.left_of_right(left.kept)
        values, kept = np.full(size, np.nan), np.zeros(size, bool)
        values[union.place[right_kept]] = right.values[right_kept]
        kept[union.place[right_kept]] = True
        values[:here] = np.where(left.kept, left.values, values[:here])
        kept[:here] |= left.kept
        return Vector(union.labels, values, kept, kept | self._clear(union, left, right))

    @staticmethod
    def _clear(union: Union, left: Vector, right: Vector) -> Mask:
        """Clear where every side that has the label set is."""
        clear = np.ones(len(union.labels), bool)
        clear[union.shown[: len(left.labels)][~left.known | left.kept]] = False
        clear[union.shown[union.place[~right.known | right.kept]]] = False
        return clear[union.shown]


def _with_drop(labels: Labels) -> list[tuple[tuple[tuple[str, str], ...], bool]]:
    return list(zip(labels.sets, labels.dropped().tolist(), strict=True))


SETS: dict[str, Callable[[ast.Matching], SetOperator]] = {"and": And, "or": Or, "unless": Unless}
