"""What the loop hands in itself, until the step that it belongs to is over."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, SupportsIndex

import numpy as np
from numpy.typing import ArrayLike, NDArray

from healthwatch.stream import TICKS_PER_STEP, Series, SeriesTable
from healthwatch.stream.ticks import LAST_STEP, counted


@dataclass(frozen=True, slots=True)
class Logged:
    """A value handed in between two steps."""

    series: Series
    values: NDArray[Any]
    micro_step: int | None


class Intake:
    """Values of the step under way, in the order in which they came."""

    def __init__(self, table: SeriesTable) -> None:
        self._table = table
        self._logged: list[Logged] = []
        self._lists: dict[str, tuple[object, Series]] = {}

    def log(self, metric: str, value: Any, micro_step: int | None) -> None:
        """A scalar of any framework."""
        self._add(self._table.register(metric, [{}]), number(metric, value), micro_step)

    def values(
        self, metric: str, values: ArrayLike, labels: Sequence[Mapping[str, str]], micro_step: int | None
    ) -> None:
        if isinstance(labels, Mapping):
            raise TypeError(f"{metric}: labels is a list with a label set for each value, not one of them")
        series, found = self._series(metric, labels), np.array(values)
        if found.size != len(series):
            raise ValueError(f"{metric}: {found.size} values for {len(series)} label sets")
        self._add(series, found, micro_step)

    def take(self) -> list[Logged]:
        """What has come since the last call."""
        logged, self._logged = self._logged, []
        return logged

    def _series(self, metric: str, labels: Sequence[Mapping[str, str]]) -> Series:
        """Reading 20,000 label sets takes 30 ms, so a metric's list is known by being the same object as last time."""
        seen, series = self._lists.get(metric, (None, None))
        if series is None or seen is not labels or len(series) != len(labels):
            series = self._table.register(metric, labels)
            self._lists[metric] = labels, series
        return series

    def _add(self, series: Series, values: NDArray[Any], micro_step: int | None) -> None:
        micro_step = None if micro_step is None else counted("micro_step", micro_step, TICKS_PER_STEP - 1)
        self._logged.append(Logged(series, values, micro_step))


def step_number(what: str, value: SupportsIndex) -> int:
    """Raises ValueError for what is no number of a step: they are counted from 1."""
    found = counted(what, value, LAST_STEP)
    if found == 0:
        raise ValueError(f"{what} is 0, but steps count from 1: write {what}=i + 1 in a loop that counts from 0")
    return found


def number(metric: str, value: Any) -> NDArray[Any]:
    """A scalar of any framework; numbers of Python and numpy keep their dtype."""
    if isinstance(value, (bool, int, float, np.generic, np.ndarray)):
        return np.array(value)
    try:
        return np.array(float(value))
    except (TypeError, ValueError):
        raise ValueError(f"{metric}: a value of type {type(value).__name__} is not a number") from None
