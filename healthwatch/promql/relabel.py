"""Functions that change labels or order: label_replace, label_join and the sort family. Their arrays are built once."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from healthwatch.promql.groups import numbered
from healthwatch.promql.regex import compile_regex
from healthwatch.promql.vector import Derived, EvaluationError, Indices, Labels, Vector, get, replaced
from healthwatch.stream.ring import Mask
from healthwatch.stream.series import LabelSet

_TEMPLATE = re.compile(r"\$(?:(?P<escaped>\$)|(?P<name>\w+)|\{(?P<braced>\w+)\})")

Change = Callable[[LabelSet], LabelSet | None]
"""The new label set, None to leave it as it is."""


def label_replace(destination: str, replacement: str, source: str, pattern: str) -> Change:
    """Sets a label to the expanded replacement where the whole source label matches."""
    try:
        regex = compile_regex(pattern)
    except ValueError:
        raise EvaluationError(f"invalid regular expression in label_replace(): {pattern}") from None

    def change(labels: LabelSet) -> LabelSet | None:
        found = regex.fullmatch(get(labels, source))
        return None if found is None else replaced(labels, destination, expand(replacement, found))

    return change


def label_join(destination: str, separator: str, *sources: str) -> Change:
    return lambda labels: replaced(labels, destination, separator.join(get(labels, name) for name in sources))


def expand(template: str, found: Any) -> str:
    """Go's `Regexp.Expand`: `$1`, `$name`, `${name}`, `$$`; a group that does not exist is empty."""

    def value(part: re.Match[str]) -> str:
        if part["escaped"]:
            return "$"
        name = part["name"] or part["braced"]
        try:
            return found.group(int(name) if name.isdecimal() else name) or ""
        except (IndexError, KeyError):
            return ""

    return _TEMPLATE.sub(value, template)


@dataclass(slots=True)
class Relabel:
    """Applies a change of labels; two elements that then have the same labels must not both be kept."""

    change: Change
    gives_name: bool  # the destination is the metric name, which then stays
    _changed: Derived[tuple[Labels, Clash | None]] = field(init=False)

    def __post_init__(self) -> None:
        self._changed = Derived(self._build)

    def _build(self, labels: Labels) -> tuple[Labels, Clash | None]:
        changed = [self.change(each) for each in labels]
        sets = [old if new is None else new for old, new in zip(labels, changed, strict=True)]
        drop = labels.dropped().copy()
        if self.gives_name:
            drop[[new is not None for new in changed]] = False
        return Labels(sets, drop), Clash.among(sets)

    def __call__(self, vector: Vector) -> Vector:
        labels, clash = self._changed(vector.labels)
        if clash is not None:
            clash.check(vector.kept)
        return replace(vector, labels=labels)


@dataclass(frozen=True, slots=True)
class Clash:
    """Elements with equal label sets: at most one of each may be kept."""

    member: Indices

    @classmethod
    def among(cls, sets: Sequence[LabelSet]) -> Clash | None:
        """None where no two label sets are equal."""
        member, keys = numbered(sets)
        return None if len(keys) == len(sets) else cls(member)

    def check(self, kept: Mask) -> None:
        if (np.bincount(self.member[kept], minlength=1) > 1).any():
            raise EvaluationError("vector cannot contain metrics with the same labelset")


def sort(vector: Vector) -> Vector:
    """By value, ascending; NaN last."""
    candidates = np.flatnonzero(vector.kept)
    return replace(vector, order=candidates[np.argsort(vector.values[candidates], kind="stable")])


def sort_desc(vector: Vector) -> Vector:
    """By value, descending; NaN last."""
    candidates = np.flatnonzero(vector.kept)
    return replace(vector, order=candidates[np.argsort(-vector.values[candidates], kind="stable")])


@dataclass(slots=True)
class SortByLabel:
    """By the labels named, then by all labels; numbers within a value sort by size."""

    names: tuple[str, ...]
    descending: bool
    _ranks: Derived[Indices] = field(init=False)

    def __post_init__(self) -> None:
        self._ranks = Derived(self._build)

    def _build(self, labels: Labels) -> Indices:
        def key(position: int) -> tuple[list[object], LabelSet]:
            each = labels[position]
            return [natural(get(each, name)) for name in self.names], each

        return np.array(sorted(range(len(labels)), key=key, reverse=self.descending), dtype=np.intp)

    def __call__(self, vector: Vector) -> Vector:
        ranks = self._ranks(vector.labels)
        return replace(vector, order=ranks[vector.kept[ranks]])


def natural(text: str) -> list[tuple[int, int, str]]:
    """A key that sorts digits by their number: `cpu2` before `cpu10`."""
    parts = re.findall(r"\d+|\D+", text)
    return [(0, int(part), part) if part[0].isdecimal() else (1, 0, part) for part in parts]
