"""All samples of one step: a column of values per metric and tick."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from healthwatch.stream.series import Series
from healthwatch.stream.ticks import tick_of


@dataclass(frozen=True, slots=True, eq=False)
class Column:
    """The values of some series at one tick, in the dtype they came in."""

    tick: int
    micro_step: int | None
    series: Series
    values: NDArray[Any]


class Frame:
    """Filled by sources, then closed: only then is the number of micro-steps known, and with it the ticks."""

    def __init__(self, step: int, attempt: int = 1, time: float = 0.0) -> None:
        self.step = step
        self.attempt = attempt
        self.time = time
        self.micro_steps: int | None = None
        self._taken: dict[tuple[int, int | None], tuple[Series, NDArray[Any]]] = {}
        self._columns: tuple[Column, ...] | None = None

    def add(self, series: Series, values: ArrayLike, micro_step: int | None = None) -> None:
        """Copy one value a series, in the order of `series`; the same series and micro-step again replaces.

        Raises ValueError for values of another shape or not of numbers, and after `close`.
        """
        if self._columns is not None:
            raise ValueError(f"step {self.step} is closed")
        if micro_step is not None and micro_step < 0:
            raise ValueError(f"{series.metric}: micro-steps count from 0, got {micro_step}")
        self._taken[series.id, micro_step] = series, _copied(series, values)

    def close(self, micro_steps: int | None = None) -> None:
        """Fix the number of micro-steps: the largest seen + 1 unless given. Closing twice changes nothing."""
        if self._columns is not None:
            return
        largest = max((micro for _, micro in self._taken if micro is not None), default=-1) + 1
        if micro_steps is not None and micro_steps < largest:
            raise ValueError(f"step {self.step} has {largest} micro-steps, not {micro_steps}")
        self.micro_steps = micro_steps or largest or None
        columns = (
            Column(tick_of(self.step, micro, self.micro_steps or 1), micro, series, values)
            for (_, micro), (series, values) in self._taken.items()
        )
        self._columns = tuple(sorted(columns, key=lambda column: column.tick))

    @property
    def columns(self) -> tuple[Column, ...]:
        """By tick, and within one in the order of `add`. Raises ValueError before `close`."""
        if self._columns is None:
            raise ValueError(f"step {self.step} is not closed yet")
        return self._columns


def _copied(series: Series, values: ArrayLike) -> NDArray[Any]:
    copied = np.array(values).reshape(-1)
    if copied.shape != (len(series),):
        raise ValueError(f"{series.metric}: {copied.size} values for {len(series)} series")
    if copied.dtype.kind not in "fiub":
        raise ValueError(f"{series.metric}: values of type {copied.dtype} are not numbers")
    return copied.astype(np.uint8) if copied.dtype.kind == "b" else copied
