"""What expressions evaluate to: a value, *kept* and *known* per label set."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from operator import is_not
from typing import Any, Generic, NamedTuple, TypeAlias, TypeVar, overload

import numpy as np
from numpy.typing import NDArray

from healthwatch.stream.ring import Floats, Mask
from healthwatch.stream.series import METRIC_NAME, LabelSet

Indices: TypeAlias = NDArray[np.intp]
T = TypeVar("T")

_NAME = frozenset((METRIC_NAME,))


NO_PLACES: Indices = np.zeros(0, np.intp)


class EvaluationError(ValueError):
    """An expression has no result at this tick: label sets that clash, or a parameter out of range."""


class Moment(NamedTuple):
    """When something is evaluated, in ticks; `start`, `end` and `step` are those of the whole evaluation.

    What was computed in one `epoch` stays true within it.
    """

    tick: int
    start: int
    end: int
    step: int
    epoch: int


class Labels(Sequence[LabelSet]):
    """The label sets of a vector, by position. Compared by identity: as long as it is the same object,
    everything that was derived from it still holds.

    `drop` marks names that disappear from the result: until then `by (__name__)` still sees them.
    """

    __slots__ = ("__weakref__", "_bare", "_clear", "_nameless", "derived", "drop", "sets")

    def __init__(
        self, sets: Iterable[LabelSet], drop: Mask | None = None, bare: Sequence[LabelSet] | None = None
    ) -> None:
        """`bare` are the label sets without names, where whoever makes this knows them."""
        self.sets = tuple(sets)
        self.drop = drop if drop is not None and drop.any() else None
        self._bare = bare
        self.derived: dict[Hashable, Any] = {}  # what several expressions need of them, see `once`
        self._nameless: Labels | None = None
        self._clear: Vector | None = None

    @overload
    def __getitem__(self, index: int) -> LabelSet: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[LabelSet]: ...
    def __getitem__(self, index: int | slice) -> LabelSet | Sequence[LabelSet]:
        return self.sets[index]

    def __len__(self) -> int:
        return len(self.sets)

    def __repr__(self) -> str:
        return f"Labels({list(self.sets)!r})"

    def nameless(self) -> Labels:
        """The same label sets, whose names will be dropped from the result; always the same object."""
        if self._nameless is None:
            named = any(METRIC_NAME in dict(labels) for labels in self.sets)
            self._nameless = Labels(self.sets, everything(len(self.sets)), self.bare()) if named else self
        return self._nameless

    def bare(self) -> Sequence[LabelSet]:
        """The label sets without names; always the same object."""
        if self._bare is None:
            self._bare = tuple(without(labels, _NAME) for labels in self.sets)
        return self._bare

    def once(self, key: Hashable, build: Callable[[Labels], T]) -> T:
        """What follows from the label sets alone; always the same object for a key."""
        if key not in self.derived:
            self.derived[key] = build(self)
        found: T = self.derived[key]
        return found

    def clear(self) -> Vector:
        """Everything known and nothing kept; always the same object."""
        if self._clear is None:
            size = len(self.sets)
            self._clear = Vector(self, zeros(size), nothing(size), everything(size))
            self._clear.places = NO_PLACES
        return self._clear

    def shown(self) -> list[LabelSet]:
        """The label sets as a result has them: names that are to be dropped are gone."""
        if self.drop is None:
            return list(self.sets)
        kinds = zip(self.sets, self.bare(), self.drop.tolist(), strict=True)
        return [bare if gone else labels for labels, bare, gone in kinds]

    def dropped(self) -> Mask:
        return nothing(len(self.sets)) if self.drop is None else self.drop


NO_LABELS = Labels(((),))
"""Those of a scalar."""


NO_NAN, FINITE, POSITIVE = 1, 2, 3


@dataclass(slots=True, eq=False)
class Vector:
    """One element a label set. `values` counts only where `kept`; clear is `known & ~kept`. Never changed once made
    (as with all that is made many times a step, it costs four times as much to have Python see to that).

    `order`, where a sorting function has set it, lists the kept elements as they are to be shown. `grade` is what
    is known of the values of kept elements: `POSITIVE` (finite, none negative), `FINITE`, `NO_NAN` or nothing. `places`
    are those of the kept elements in ascending order, where whoever made the vector knows them.
    """

    labels: Labels
    values: Floats
    kept: Mask
    known: Mask
    order: Indices | None = None
    grade: int = 0
    places: Indices | None = field(default=None, init=False)  # a copy with other masks never has it
    _greatest: float | None = field(default=None, init=False)
    _least: float | None = field(default=None, init=False)

    @property
    def scalar(self) -> float:
        """The value of a vector that stands for a scalar."""
        return float(self.values[0])

    @property
    def greatest(self) -> float:
        """Of all values, kept or not; NaN where one is. Several bounds may be compared with it."""
        if self._greatest is None:
            self._greatest = float(np.maximum.reduce(self.values))
        return self._greatest

    @property
    def least(self) -> float:
        """Of all values, as `greatest`."""
        if self._least is None:
            self._least = float(np.minimum.reduce(self.values))
        return self._least

    def breaches(self) -> bool:
        """Whether any element is kept."""
        if self.places is not None:
            return len(self.places) > 0
        return self.kept is not nothing(len(self.kept)) and bool(self.kept.any())

    def knows_all(self) -> bool:
        return self.known is everything(len(self.known)) or bool(self.known.all())

    def complete(self) -> bool:
        """Whether it is plain from the masks alone that every element is kept."""
        return self.kept is everything(len(self.kept))


@dataclass(frozen=True, slots=True, eq=False)
class Matrix:
    """Values and kept by tick and label set: the result of a range evaluation."""

    labels: Labels
    ticks: tuple[int, ...]
    values: Floats
    kept: Mask


@lru_cache(maxsize=256)
def everything(size: int) -> Mask:
    return _constant(size, True)


@lru_cache(maxsize=256)
def nothing(size: int) -> Mask:
    return _constant(size, False)


@lru_cache(maxsize=256)
def zeros(size: int) -> Floats:
    """Read-only: the values of a vector of which nothing is kept."""
    found = np.zeros(size)
    found.setflags(write=False)
    return found


def _constant(size: int, value: bool) -> Mask:
    mask = np.full(size, value)
    mask.setflags(write=False)
    return mask


def full_vector(labels: Labels, values: Floats) -> Vector:
    everywhere = everything(len(values))
    return Vector(labels, values, everywhere, everywhere)


def scalar_vector(value: float) -> Vector:
    return full_vector(NO_LABELS, np.array([value]))


def both(left: Mask, right: Mask) -> Mask:
    """`left & right`, for free where one of them is everything."""
    whole = everything(len(left))
    if left is whole:
        return right
    return left if right is whole or right is left else left & right


class Derived(Generic[T]):
    """What follows from label sets alone: built once, and again only when they are other objects."""

    __slots__ = ("_build", "_of", "_value")

    def __init__(self, build: Callable[..., T]) -> None:
        self._build = build
        self._of: tuple[Any, ...] = ()
        self._value: T | None = None

    def __call__(self, *of: Labels) -> T:
        if self._value is None or any(map(is_not, of, self._of)):
            self._value, self._of = self._build(*of), of
        return self._value


def with_name(metric: str, labels: LabelSet) -> LabelSet:
    return tuple(sorted((*labels, (METRIC_NAME, metric)))) if metric else labels


def without(labels: LabelSet, names: frozenset[str]) -> LabelSet:
    return tuple(pair for pair in labels if pair[0] not in names)


def only(labels: LabelSet, names: frozenset[str]) -> LabelSet:
    return tuple(pair for pair in labels if pair[0] in names)


def get(labels: LabelSet, name: str) -> str:
    """The value of a label, empty where it has none."""
    return next((value for key, value in labels if key == name), "")


def replaced(labels: LabelSet, name: str, value: str) -> LabelSet:
    """With the label set to a value; an empty one takes it away."""
    kept = [pair for pair in labels if pair[0] != name]
    return tuple(sorted((*kept, (name, value)))) if value else tuple(kept)
