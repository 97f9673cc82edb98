"""The samples of a range: rows are ticks, columns are series."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from healthwatch.promql.vector import Labels, everything, nothing
from healthwatch.stream.ring import FINITE, SPARSE, Floats, Mask
from healthwatch.stream.ticks import TICKS_PER_STEP

Counts = NDArray[np.intp]


@dataclass(frozen=True, slots=True, eq=False)
class Packed:
    """Each series' samples moved to the top of its column: row i holds its i-th sample, if i < `counts`.

    `seconds` are their times; what lies below the samples is 0.
    """

    values: Floats
    seconds: Floats
    counts: Counts

    @property
    def present(self) -> Mask:
        return np.less(np.arange(len(self.values))[:, None], self.counts)

    def first(self) -> tuple[Floats, Floats]:
        """Value and time of the first sample."""
        return self.values[0], self.seconds[0]

    def nth_last(self, back: int) -> tuple[Floats, Floats]:
        """Value and time of the last sample (0), the one before it (1) ..."""
        row = np.maximum(self.counts - 1 - back, 0)[None]
        return np.take_along_axis(self.values, row, 0)[0], np.take_along_axis(self.seconds, row, 0)[0]


@dataclass(slots=True, eq=False)
class Window:
    """Samples in (start, end]. `blocks` are the rows in one piece or two, views of the history where they can be.

    `present` is None where every value is a sample; NaN is one too. `state` is the worst of the rows as in `Ring`.
    `known`, where it is set, marks series with data although they have no sample: those of a subquery that were clear.
    """

    labels: Labels
    ticks: NDArray[np.int64]
    blocks: tuple[Floats, ...]
    present: Mask | None
    start: int
    end: int
    known: Mask | None = None
    state: int = SPARSE
    total: Callable[[], Floats | None] | None = None  # the sums of whole numbers, where somebody keeps them
    _whole: list[Floats] = field(default_factory=list, repr=False)
    _packed: list[Packed] = field(default_factory=list, repr=False)

    @property
    def values(self) -> Floats:
        """All rows in one piece, put together once."""
        if not self._whole:
            self._whole.append(self.blocks[0] if len(self.blocks) == 1 else np.concatenate(self.blocks))
        return self._whole[0]

    def whole_sum(self) -> Floats | None:
        """The sum of every series, if all samples are whole numbers and somebody keeps it; not to be written to."""
        return None if self.total is None else self.total()

    def any(self) -> Mask:
        """Which series have a sample."""
        if self.present is not None:
            return np.asarray(self.present.any(axis=0))
        return everything(len(self.labels)) if len(self.ticks) else nothing(len(self.labels))

    def counts(self) -> Counts:
        if self.present is not None:
            return np.asarray(self.present.sum(axis=0))
        return np.full(len(self.labels), len(self.ticks))

    def filled(self, value: float) -> tuple[Floats, ...]:
        """The blocks with `value` where there is no sample."""
        return self.blocks if self.present is None else (np.where(self.present, self.values, value),)

    def finite(self) -> Window:
        """The same range with only the samples that are finite."""
        if self.state <= FINITE:
            return self
        finite = np.isfinite(self.values)
        present = finite if self.present is None else finite & self.present
        state = FINITE if present.all() else SPARSE
        return replace(self, present=None if state == FINITE else present, state=state, total=None, _packed=[])

    def seconds(self) -> Floats:
        return self.ticks / TICKS_PER_STEP

    def packed(self) -> Packed:
        if not self._packed:
            self._packed.append(self._pack())
        return self._packed[0]

    def _pack(self) -> Packed:
        seconds = np.broadcast_to(self.seconds()[:, None], self.values.shape)
        if self.present is None:
            return Packed(self.values, seconds, self.counts())
        counts = self.present.sum(axis=0)
        order = np.argsort(~self.present, axis=0, kind="stable")[: counts.max(initial=0)]
        inside = np.less(np.arange(len(order))[:, None], counts)
        return Packed(
            np.where(inside, np.take_along_axis(self.values, order, 0), 0.0),
            np.where(inside, np.take_along_axis(seconds, order, 0), 0.0),
            counts,
        )
