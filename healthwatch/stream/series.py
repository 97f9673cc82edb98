"""Which series exist: label sets interned once, and the column that each takes in its metric's history."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

LabelSet: TypeAlias = tuple[tuple[str, str], ...]
Columns: TypeAlias = NDArray[np.intp]

METRIC_NAME = "__name__"


def label_set(labels: Mapping[str, str]) -> LabelSet:
    """Sorted by name, without `__name__`; an empty value is no label, as in Prometheus."""
    return tuple(sorted((str(k), str(v)) for k, v in labels.items() if k != METRIC_NAME and str(v) != ""))


@dataclass(frozen=True, slots=True, eq=False)
class Series:
    """Series of one metric that a source hands in together, in the source's order.

    `columns` are their places in the metric's history; `place` is the same as a slice where they stand
    side by side, which numpy copies several times faster.
    """

    id: int
    metric: str
    labels: tuple[LabelSet, ...]
    columns: Columns
    place: slice | Columns = field(repr=False)

    def __len__(self) -> int:
        return len(self.labels)


@dataclass(slots=True)
class _Metric:
    labels: list[LabelSet] = field(default_factory=list)
    columns: dict[LabelSet, int] = field(default_factory=dict)

    def intern(self, labels: LabelSet) -> int:
        column = self.columns.setdefault(labels, len(self.labels))
        if column == len(self.labels):
            self.labels.append(labels)
        return column


class SeriesTable:
    """Every series of a run. It only grows; `version` changes whenever a series is new."""

    def __init__(self) -> None:
        self.version = 0
        self.series: list[Series] = []
        self._metrics: dict[str, _Metric] = {}
        self._known: dict[tuple[str, tuple[LabelSet, ...]], Series] = {}

    def register(self, metric: str, labels: Sequence[Mapping[str, str]]) -> Series:
        """The series of `metric` with these label sets, in this order; the same list gives the same object.

        Raises ValueError if two of the label sets are equal or a text is no Unicode, TypeError if the name is no text.
        """
        wanted = tuple(label_set(each) for each in labels)
        known = self._known.get((metric, wanted))
        return known if known is not None else self._add(metric, wanted)

    def _add(self, metric: str, wanted: tuple[LabelSet, ...]) -> Series:
        _check_text(metric, wanted)
        if len(set(wanted)) != len(wanted):
            raise ValueError(f"{metric}: a label set is given twice")
        interned = self._metrics.setdefault(metric, _Metric())
        before = len(interned.labels)
        columns = np.array([interned.intern(each) for each in wanted], dtype=np.intp)
        self.version += len(interned.labels) > before
        series = Series(len(self.series), metric, wanted, columns, _place(columns))
        self.series.append(series)
        self._known[metric, wanted] = series
        return series

    def metrics(self) -> tuple[str, ...]:
        return tuple(self._metrics)

    def labels(self, metric: str) -> Sequence[LabelSet]:
        """The label sets of a metric by column; empty for a metric that has never been registered."""
        interned = self._metrics.get(metric)
        return interned.labels if interned else ()

    def column(self, metric: str, labels: LabelSet) -> int | None:
        """The column of the series with exactly these labels, None where there is none."""
        interned = self._metrics.get(metric)
        return interned.columns.get(labels) if interned else None

    def width(self, metric: str) -> int:
        return len(self.labels(metric))


def _check_text(metric: str, wanted: tuple[LabelSet, ...]) -> None:
    """A recording writes names and labels as UTF-8, which half of a surrogate pair is not."""
    if not isinstance(metric, str):
        raise TypeError(f"the name of a metric is text, not of type {type(metric).__name__}")
    "".join((metric, *(text for each in wanted for label in each for text in label))).encode()


def _place(columns: Columns) -> slice | Columns:
    if len(columns) and np.array_equal(columns, np.arange(columns[0], columns[0] + len(columns))):
        return slice(int(columns[0]), int(columns[0]) + len(columns))
    return columns
