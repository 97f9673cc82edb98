"""What becomes of a window over many rows that are there already, as in a replay: compiled loops go through all of them
at once, and tell for each row which series may breach.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from healthwatch.promql import ahead_loops as loops
from healthwatch.promql.compiled import COLUMNS, pairs
from healthwatch.promql.decided import Decided
from healthwatch.promql.moving import Moving, Span
from healthwatch.promql.training import Baseline, Result, TrainingFunction, alpha, evaluate
from healthwatch.promql.vector import Indices, Labels, Moment
from healthwatch.stream.ring import Floats, Mask, Ring
from healthwatch.stream.ticks import TICKS_PER_STEP

_MOST_ROWS = 128
"""In a longer window it is quicker to look at each row by itself: one that comes is compared with all of them."""

_SPARE = 8
"""One more row for so many: a window may fill for a while before all is put in order again."""

_MOST_DOUBTFUL = 1 / 64
"""Of all series at all rows: where more are in doubt, each row is looked at by itself."""

_MOST_COMPUTED = 1 << 16
"""Windows that are computed together, which takes as much memory as they hold values."""

_LONGEST_WAIT = 16
"""So many looks at the most are left out after some that were in vain: twice as many each time."""

_FAR = 1.9
"""A value that is so many averages is a rare one."""

_ROUNDING = 1e-9
"""Many times what rounding can do to an average of values that are not negative."""

FUNCTIONS = ("spike_ratio", "robust_zscore", "ema_ratio")
"""By the numbers that `loops` have for them."""

_NEIGHBOURS = np.zeros(0, np.int64)


@dataclass(frozen=True, slots=True)
class Ahead:
    """The windows before the rows of some ticks, and what is in doubt: the number of a window and a series, by number.

    `irregular` are the series with a value in any of the rows that is not finite.
    """

    ticks: Sequence[int]
    spans: Sequence[Span]
    irregular: Mask
    doubtful: dict[str, tuple[Indices, Indices]]

    def decided(self, function: TrainingFunction, min_samples: float, labels: Labels) -> dict[int, Decided]:
        """By the tick of the row, what the plain way says of those in doubt."""
        if function.name not in self.doubtful:
            return {}
        numbers, series = self.doubtful[function.name]
        values, defined = np.empty(len(series)), np.empty(len(series), bool)
        irregular = self.irregular[series]
        for gapless, those in ((True, ~irregular), (False, irregular)):
            if those.any():
                values[those], defined[those] = self._evaluated(
                    function, min_samples, numbers[those], series[those], gapless=gapless
                )
        defined &= values == values  # a NaN is no data (R4)
        edges = np.searchsorted(numbers, np.arange(len(self.spans) + 1)).tolist()
        nobody = Decided.of_none(labels)
        found: dict[int, Decided] = {}
        for tick, span, (begin, end) in zip(self.ticks, self.spans, pairwise(edges), strict=True):
            here = slice(begin, end)
            if span.count < min_samples:
                continue
            one = begin < end
            found[tick] = Decided.of(labels, series[here], values[here], defined[here]) if one else nobody
        return found

    def _evaluated(
        self, function: TrainingFunction, min_samples: float, numbers: Indices, series: Indices, *, gapless: bool
    ) -> Result:
        """The function of some series, each in its own window; windows that are alike are one baseline."""
        if self._alike():
            return evaluate(function, self._baseline(numbers, series, gapless=gapless), min_samples)
        values, defined = np.empty(len(series)), np.empty(len(series), bool)
        for number in np.unique(numbers).tolist():
            here = numbers == number
            baseline = self.spans[number].baseline(series[here], gapless=gapless)
            values[here], defined[here] = evaluate(function, baseline, min_samples)
        return values, defined

    def _alike(self) -> bool:
        """Whether the windows hold the same number of rows, and these come evenly."""
        first, last = self.spans[0], self.spans[-1]
        if any(span.count != first.count for span in self.spans):
            return False
        apart = np.diff(np.array(first.part.ring.ticks(first.start, last.now + 1)))
        return bool((apart == apart[0]).all())

    def _baseline(self, numbers: Indices, series: Indices, *, gapless: bool) -> Baseline:
        first = self.spans[0]
        ring, columns = first.part.ring, first.ring_columns(series)
        now = ring.windows(first.now + numbers, 1, columns)[0]
        values = ring.windows(first.start + numbers, first.count, columns)
        return Baseline(now, values, first.ticks, first.tick, first.window, gapless)


class Lookahead:
    """Goes through the rows of one moving window for all functions of it."""

    def __init__(self, moving: Moving) -> None:
        self._moving = moving
        self._bounds: dict[str, float] = {}
        self._least = 0.0
        self._ordered = Ordered()
        self._ticks: Sequence[int] | None = None
        self._found: Ahead | None = None
        self._vain, self._wait = 0, 0  # looks that were left out after the last one in vain, and that still are

    def ask(self, function: str, bound: float, min_samples: float) -> None:
        """A comparison of this function with a bound that is at least so high will be asked for."""
        self._bounds[function] = min(bound, self._bounds.get(function, bound))
        self._least = max(min_samples, self._least)

    def decided(self, function: TrainingFunction, min_samples: float, ticks: Sequence[int]) -> Mapping[int, Decided]:
        """What a function will say at these ticks, as far as a row comes with each of them."""
        if ticks is not self._ticks:
            self._ticks, self._found = ticks, self._look(ticks)
        if self._found is None:
            return {}
        return self._found.decided(function, min_samples, self._moving.selection.labels.nameless())

    def _look(self, ticks: Sequence[int]) -> Ahead | None:
        self._wait -= 1
        windows = self._windows(ticks) if self._wait < 0 and self._worth_it() else {}
        if not windows:
            return None
        spans = list(windows.values())
        size, irregular = len(spans[0].part.columns), _irregular(spans)
        room = min(max(int(len(spans) * size * _MOST_DOUBTFUL), 4 * COLUMNS), _MOST_COMPUTED)
        doubtful = np.empty((room, 3), np.int32)
        found: dict[str, tuple[Indices, Indices]] = {}
        count = self._ordered.follow(spans, self._bounds, self._least, doubtful)
        if count <= room:
            for what, name in enumerate(FUNCTIONS):
                if name in self._bounds:
                    found[name] = _by_number(doubtful[:count][doubtful[:count, 0] == what])
        self._vain = min(2 * self._vain + 1, _LONGEST_WAIT) if len(found) < len(self._bounds) else 0
        self._wait = self._vain
        return Ahead(list(windows), spans, irregular, found)

    def _worth_it(self) -> bool:
        """What is in order is costly without scores, and worthless for averages with which a value is closely compared;
        whoever has to look at one function step by step may as well do so for all.
        """
        return "robust_zscore" in self._bounds and self._bounds.get("ema_ratio", _FAR) >= _FAR

    def _windows(self, ticks: Sequence[int]) -> dict[int, Span]:
        """By tick, the windows before rows that come one after the other."""
        found: dict[int, Span] = {}
        last: Span | None = None
        for tick in ticks:
            when = self._moving.when(Moment(tick, tick, tick, 0, -1))
            span = self._moving.span_at(when)
            if span is None or span.tick != when:
                continue
            follows = last is None or (span.now == last.now + 1 and last.start <= span.start <= last.now)
            if not follows or span.count > _MOST_ROWS:
                break
            found[tick] = last = span
        return found


class Ordered:
    """The values of every window, kept in order: a step takes one away and puts one in."""

    def __init__(self) -> None:
        self._rows = range(0)  # that are in order
        self._of: tuple[Ring | None, int, int] = (None, 0, 0)
        self._held: NDArray[np.floating[Any]] = np.zeros((0, 0, COLUMNS), np.float32)
        self._gaps = np.zeros((0, COLUMNS), np.int32)

    def follow(
        self, spans: Sequence[Span], bounds: Mapping[str, float], least: float, doubtful: NDArray[np.int32]
    ) -> int:
        """As `loops.medians`, for all series."""
        if not self._goes_on(spans):
            self._arrange(spans)
        rows = self._rows
        known = 0 if rows == range(spans[0].start, spans[0].now) else 1
        starts = np.array([*([rows.start] if known else []), *(span.start for span in spans)])
        ends = np.array([*([rows.stop] if known else []), *(span.now for span in spans)])
        shares = np.zeros((2, len(starts)))
        if "ema_ratio" in bounds:
            shares[:, known:] = _shares(spans)
        asked = np.array([bounds.get(name, 0.0) for name in FUNCTIONS])
        found: int = loops.medians(
            *_columns(spans[0]), starts, ends, *shares, asked, float(least), known, self._held, self._gaps, doubtful
        )
        self._rows = range(spans[-1].start, spans[-1].now)
        doubtful[:found, 1] -= known
        return found

    def _goes_on(self, spans: Sequence[Span]) -> bool:
        """Whether the windows can be made from those that are in order."""
        rows, span, ring = self._rows, spans[0], spans[0].part.ring
        if self._held.dtype != _kind(ring) or self._of != _of(span):
            return False
        follows = ring.first <= rows.start <= span.start < rows.stop <= span.now
        coming = span.now - rows.stop
        return follows and 2 * coming <= span.count and max(each.count for each in spans) + coming < self._held.shape[1]

    def _arrange(self, spans: Sequence[Span]) -> None:
        span, kind = spans[0], _kind(spans[0].part.ring)
        room = max(each.count for each in spans) + 2
        shape = _blocks(span), room + room // _SPARE, COLUMNS
        if self._held.shape != shape or self._held.dtype != kind:
            self._held, self._gaps = np.empty(shape, kind), np.zeros((shape[0], COLUMNS), np.int32)
        loops.arrange(*_columns(span), span.start, span.now, pairs(span.count), self._held, self._gaps)
        self._rows, self._of = range(span.start, span.now), _of(span)


def _shares(spans: Sequence[Span]) -> Floats:
    """Of the weights of each window, the part that all but the newest few rows have: as many as `loops` leaves out; and
    the same where the weights of as many are missing.
    """
    decay, found = 1 - alpha(spans[0].window), np.empty((2, len(spans)))
    for number, span in enumerate(spans):
        ages = (span.part.ring.tick(span.now - 1) - span.ticks()) / TICKS_PER_STEP
        weights = decay**ages
        whole, rest = weights.sum(), weights[: span.count - span.count // loops.LEFT_OUT].sum()
        found[:, number] = rest / whole, max(2 * rest - whole, 0.0) / rest
    return found * (1 - _ROUNDING)


def _by_number(found: NDArray[np.int32]) -> tuple[Indices, Indices]:
    """Windows and series, by window and then by series."""
    order = np.lexsort((found[:, 2], found[:, 1]))
    return found[order, 1].astype(np.intp), found[order, 2].astype(np.intp)


def _irregular(spans: Sequence[Span]) -> Mask:
    """Which series have a value that is not finite in any row of the spans, or in the row behind one."""
    span, found = spans[0], np.zeros(len(spans[0].part.columns), bool)
    for row in range(span.start, spans[-1].now + 1):
        if not span.finite(row):
            found |= ~np.isfinite(span.row(row))
    return found


def _of(span: Span) -> tuple[Ring, int, int]:
    """What must still be so for rows to be the same."""
    return span.part.ring, span.part.ring.changes, len(span.part.columns)


def _blocks(span: Span) -> int:
    return -(-len(span.part.columns) // COLUMNS)


def _kind(ring: Ring) -> type[np.float32] | type[np.float64]:
    """Of float32 twice as many are compared at a time."""
    return np.float32 if ring.narrow else np.float64


def _columns(span: Span) -> tuple[Floats, NDArray[np.int64], int, int]:
    """Rows as they stand in memory, which of their columns unless these are neighbours, the first one, and how many."""
    place, size = span.part.place, len(span.part.columns)
    if isinstance(place, slice):
        return span.part.ring.data, _NEIGHBOURS, place.start, size
    return span.part.ring.data, place, 0, size
