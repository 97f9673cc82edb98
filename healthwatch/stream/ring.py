"""The rows of one metric: a ring of float64, one row a tick, one column a series."""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from healthwatch.stream.series import Columns

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]

# Quiet NaNs with low payload bits set: no float16 or float32 widens to them, no arithmetic makes them.
ABSENT_BITS: Final = 0x7FF8_0000_0A85_E271
STALE_BITS: Final = 0x7FF8_0000_057A_1E02
ABSENT: Final[float] = float(np.array(ABSENT_BITS, dtype=np.int64).view(np.float64))
STALE: Final[float] = float(np.array(STALE_BITS, dtype=np.int64).view(np.float64))

UNKNOWN, POSITIVE, FINITE, CLEAN, DENSE, SPARSE = range(6)
"""What is known of a row: nothing yet, all values finite and none negative, all finite, no NaN in it, a sample of
every series, or gaps. Each but the first includes the one before.
"""

_GROWTH = 1.125

_FEW = 64
"""What is unusual in at most one of so many columns is remembered, which takes little of the memory of the row."""

_MOST = 2.0**36
"""A sum of 100,000 whole numbers below it is exact."""

NO_COLUMNS: Columns = np.zeros(0, np.intp)

_NARROW = frozenset(map(np.dtype, ("float32", "float16", "int16", "uint16", "int8", "uint8")))


def bits_of(values: Floats) -> NDArray[np.int64]:
    return values.view(np.int64)


def is_absent(values: Floats) -> Mask:
    return np.equal(bits_of(values), ABSENT_BITS)


def is_stale(values: Floats) -> Mask:
    return np.equal(bits_of(values), STALE_BITS)


def is_sample(values: Floats) -> Mask:
    """True where something was measured, a NaN included."""
    bits = bits_of(values)
    return np.logical_and(np.not_equal(bits, ABSENT_BITS), np.not_equal(bits, STALE_BITS))


def _whole(values: Floats) -> bool:
    head = values[:64]  # most rows that hold something else show it at once
    if not np.array_equal(np.rint(head), head):
        return False
    largest = values.max(initial=0.0)
    return bool(largest < _MOST and np.array_equal(np.rint(values), values) and not np.signbit(values).any())


class Ring:
    """Rows are numbered from 0 for ever; those in [first, end) are still here, by ascending tick.

    `changes` counts what altered a row after somebody looked at it, and what moved rows. `narrow` says that float32
    holds every value exactly that was ever written.
    """

    def __init__(self, width: int) -> None:
        self.width = width
        self.first = 0
        self.end = 0
        self.changes = 0
        self.narrow = True
        self._data = np.empty((16, width))
        self._absent = np.full(width, ABSENT)
        self._ticks: list[int] = []
        self._states = bytearray()
        self._base = 0
        self._unusual: dict[int, Columns] = {}  # by row, what somebody has asked for
        self._counts: dict[int, bool] = {}  # likewise

    def find(self, tick: int) -> int:
        """The number of the first row later than `tick`."""
        return self._base + bisect_right(self._ticks, tick, self.first - self._base)

    def tick(self, row: int) -> int:
        return self._ticks[row - self._base]

    def ticks(self, start: int, end: int) -> list[int]:
        return self._ticks[start - self._base : end - self._base]

    def row(self, row: int) -> Floats:
        """A view; it is overwritten when the row falls out of the ring."""
        return self._data[row % len(self._data), : self.width]

    @property
    def data(self) -> Floats:
        """All rows as they stand in memory, each at its number modulo how many there are."""
        return self._data

    def blocks(self, start: int, end: int) -> tuple[Floats, ...]:
        """Rows [start, end) as one or two views, as they stand in memory."""
        capacity = len(self._data)
        low, high = start % capacity, start % capacity + end - start
        if high <= capacity:
            return (self._data[low:high, : self.width],)
        return self._data[low:, : self.width], self._data[: high - capacity, : self.width]

    def rows(self, start: int, end: int) -> Floats:
        """Rows [start, end): a view where they stand together in memory, else a copy."""
        blocks = self.blocks(start, end)
        return blocks[0] if len(blocks) == 1 else np.concatenate(blocks)

    def columns(self, start: int, end: int, columns: Columns) -> Floats:
        """A copy of some columns of rows [start, end); row by row, as they stand in memory."""
        taken = [block.take(columns, axis=1) for block in self.blocks(start, end)]
        return taken[0] if len(taken) == 1 else np.concatenate(taken)

    def windows(self, starts: NDArray[np.intp], count: int, columns: Columns) -> Floats:
        """A copy of `count` rows from each of `starts` on, of the column that goes with it: rows x starts."""
        rows = (starts + np.arange(count)[:, None]) % len(self._data)
        found: Floats = self._data[rows, columns]
        return found

    def state(self, row: int) -> int:
        found = self._states[row - self._base]
        return found or self._inspect(row)

    def unusual(self, row: int) -> Columns:
        """The columns of a row whose values are not finite."""
        if self.state(row) <= FINITE:
            return NO_COLUMNS
        found = self._unusual.get(row)
        if found is None:
            found = (~np.isfinite(self.row(row))).nonzero()[0]
            if len(found) <= self.width // _FEW:
                self._unusual[row] = found
        return found

    def counts(self, row: int) -> bool:
        """Whether every value of a row is a whole number, none negative, all far below what float64 holds exactly."""
        known = self._counts.get(row)
        if known is None:
            known = self._counts[row] = self.state(row) == POSITIVE and _whole(self.row(row))
        return known

    def worst_state(self, start: int, end: int) -> int:
        """The worst state of rows [start, end); POSITIVE for none."""
        states = self._states[start - self._base : end - self._base]
        while (unknown := states.find(UNKNOWN)) >= 0:
            states[unknown] = self._inspect(start + unknown)
        return max(states, default=POSITIVE)

    def put(self, tick: int, place: slice | Columns, values: NDArray[Any], keep_from: int) -> None:
        """Write values at a tick. A full ring drops its rows up to `keep_from` before it grows."""
        row = self._row_at(tick)
        if row is None:
            row = self._add_row(tick, keep_from)
            if not (isinstance(place, slice) and place.start == 0 and place.stop == self.width):
                self.row(row)[:] = self._absent
        elif self._states[row - self._base] != UNKNOWN:
            self.changes += 1
            self._unusual.pop(row, None)
            self._counts.pop(row, None)
        self.row(row)[place] = values
        self.narrow = self.narrow and values.dtype in _NARROW
        self._states[row - self._base] = UNKNOWN

    @property
    def nbytes(self) -> int:
        return self._data.nbytes

    def full(self) -> bool:
        return self.end - self.first == len(self._data)

    def drop_after(self, tick: int) -> None:
        kept = max(self.find(tick), self.first)
        del self._ticks[kept - self._base :], self._states[kept - self._base :]
        self.changes += kept != self.end
        self.end = kept
        self._forget()

    def drop_before(self, tick: int) -> None:
        """Drop every row earlier than `tick`."""
        self.first = max(self.first, self._base + bisect_left(self._ticks, tick))
        gone = self.first - self._base
        if gone > len(self._ticks) // 2:
            del self._ticks[:gone], self._states[:gone]
            self._base = self.first
            self._unusual = {row: columns for row, columns in self._unusual.items() if row >= self.first}
            self._counts = {row: known for row, known in self._counts.items() if row >= self.first}

    def widen(self, width: int) -> None:
        """Make room for new series; the rows there are have no sample of them."""
        if width > self._data.shape[1]:
            wider = np.full((len(self._data), width if not self.end else width + width // 8), ABSENT)
            wider[:, : self.width] = self._data[:, : self.width]
            self._data = wider
        else:
            self._data[:, self.width : width] = ABSENT
        self.width = width
        self._absent = np.full(width, ABSENT)
        self._states = bytearray(len(self._states))
        self._forget()

    def _inspect(self, row: int) -> int:
        values = self.row(row)
        least, most = np.minimum.reduce(values, initial=0.0), np.maximum.reduce(values, initial=0.0)  # NaN if one is
        if math.isfinite(least) and math.isfinite(most):
            found = FINITE if least < 0 else POSITIVE
        elif not np.isnan(values).any():
            found = CLEAN
        else:
            found = DENSE if is_sample(values).all() else SPARSE
        self._states[row - self._base] = found
        return found

    def _forget(self) -> None:
        """Rows are no longer what they were."""
        self._unusual.clear()
        self._counts.clear()

    def _row_at(self, tick: int) -> int | None:
        if not self._ticks or tick > self._ticks[-1]:
            return None
        place = bisect_left(self._ticks, tick, self.first - self._base)
        if place < len(self._ticks) and self._ticks[place] == tick:
            return self._base + place
        return None

    def _add_row(self, tick: int, keep_from: int) -> int:
        if self.full():
            self.drop_before(keep_from)
        if self.full():
            self._grow()
        row = self.find(tick)
        if row != self.end:
            self._shift(row)
        self._ticks.insert(row - self._base, tick)
        self._states.insert(row - self._base, UNKNOWN)
        self.end += 1
        return row

    def _shift(self, row: int) -> None:
        """A row that comes late: move the later ones up by one."""
        for later in range(self.end, row, -1):
            self._data[later % len(self._data)] = self._data[(later - 1) % len(self._data)]
        self.changes += 1
        self._forget()

    def _grow(self) -> None:
        rows = self.rows(self.first, self.end)
        larger = np.empty((int(len(self._data) * _GROWTH) + 2, self._data.shape[1]))
        slots = np.arange(self.first, self.end) % len(larger)
        larger[slots, : self.width] = rows
        self._data = larger
