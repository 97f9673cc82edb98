"""Which series a selector means, and its samples: the row of a tick, or all rows of a window."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from healthwatch.promql import ast
from healthwatch.promql.regex import full_match
from healthwatch.promql.vector import FINITE, NO_NAN, POSITIVE, Labels, Vector, everything, get, with_name
from healthwatch.promql.window import Window
from healthwatch.stream import ABSENT, History, ring
from healthwatch.stream.ring import DENSE, Floats, Ring, is_absent, is_sample
from healthwatch.stream.ring import FINITE as FINITE_ROW
from healthwatch.stream.series import METRIC_NAME, Columns, LabelSet

if TYPE_CHECKING:
    from healthwatch.promql.running import Running

GRADES = {ring.POSITIVE: POSITIVE, ring.FINITE: FINITE, ring.CLEAN: NO_NAN}

Test = Callable[[str], bool]


def test_of(matcher: ast.Matcher) -> Test:
    """Whether a label value (empty: no such label) satisfies a matcher."""
    match matcher.op:
        case "=":
            return lambda value: value == matcher.value
        case "!=":
            return lambda value: value != matcher.value
        case "=~":
            return full_match(matcher.value)
        case "!~":
            matches = full_match(matcher.value)
            return lambda value: not matches(value)


@dataclass(slots=True)
class Part:
    """The columns of one metric that a selector matches, and where they stand in its result."""

    metric: str
    ring: Ring
    looked: int = 0
    columns: list[int] = field(default_factory=list)
    place: slice | Columns = field(default_factory=lambda: slice(0))
    target: slice = field(default_factory=lambda: slice(0))
    whole: bool = False
    _hit: tuple[int, int] = (-1, -1)  # up to the first row, the second is the newest that has a sample

    def settle(self, start: int) -> None:
        """Fix the places once the columns are known."""
        columns = self.columns
        together = columns[-1] - columns[0] == len(columns) - 1
        self.place = slice(columns[0], columns[-1] + 1) if together else np.array(columns, dtype=np.intp)
        self.target = slice(start, start + len(columns))
        self.whole = len(columns) == self.ring.width
        self._hit = (-1, -1)

    def newest(self, tick: int) -> int | None:
        """The number of the newest row up to `tick` with a sample of any of the columns (R2)."""
        row = self.ring.find(tick) - 1
        if row < self.ring.first:
            return None
        if self.whole or self.ring.state(row) <= DENSE:
            return row
        return self._search(row)

    def _search(self, row: int) -> int | None:
        upto, hit = self._hit
        floor = max(upto if upto <= row else -1, self.ring.first - 1)
        found = row
        while found > floor and is_absent(self.ring.row(found)[self.place]).all():
            found -= 1
        if found == upto:
            found = hit
        self._hit = (row, found)
        return found if found >= self.ring.first else None

    def rows_back(self, tick: int, rows: int) -> list[int]:
        """The ticks of the newest `rows` rows up to `tick` with a sample, newest first; fewer at the beginning."""
        row = self.newest(tick)
        if row is None:
            return []
        first = max(self.ring.first, row - rows + 1)
        if self.whole or self.ring.worst_state(first, row + 1) <= DENSE:
            return self.ring.ticks(first, row + 1)[::-1]
        found = [self.ring.tick(row)]
        while len(found) < rows and (earlier := self.newest(found[-1] - 1)) is not None:
            found.append(self.ring.tick(earlier))
        return found

    def forget(self) -> None:
        self._hit = (-1, -1)


class Selection:
    """The series that a selector matches; grows with the table, and `labels` stays the same object until it does."""

    def __init__(self, history: History, metric: str | None, matchers: Iterable[ast.Matcher]) -> None:
        tests = [(matcher.name, test_of(matcher)) for matcher in matchers]
        self._named: list[Test] = [test for name, test in tests if name == METRIC_NAME]
        self._tests = [(name, test) for name, test in tests if name != METRIC_NAME]
        self._history, self._metric = history, metric
        self._version = -1
        self._changes = -1
        self._parts: dict[str, Part] = {}
        self._labels = Labels(())
        self._matched: tuple[Part, ...] = ()

    @property
    def labels(self) -> Labels:
        self.refresh()
        return self._labels

    @property
    def parts(self) -> tuple[Part, ...]:
        self.refresh()
        return self._matched

    def refresh(self) -> None:
        """Take in series that are new since the last call."""
        history = self._history
        if self._changes != history.changes:
            self._changes = history.changes
            for part in self._matched:
                part.forget()
        if self._version == history.table.version:
            return
        self._version = history.table.version
        grown = [self._grow(metric) for metric in self._candidates()]
        if any(grown):
            self._settle()

    def rows_kept(self) -> int:
        """How many rows of the history there are of its metrics."""
        return max((part.ring.end - part.ring.first for part in self.parts), default=0)

    def rows_back(self, tick: int, rows: int) -> int | None:
        """The tick of the last of the newest `rows` rows up to `tick`; None where there are not as many."""
        found = sorted({each for part in self.parts for each in part.rows_back(tick, rows)}, reverse=True)
        return found[rows - 1] if len(found) >= rows else None

    def matches(self, metric: str) -> bool:
        if self._metric is not None and metric != self._metric:
            return False
        return all(test(metric) for test in self._named)

    def columns_of(self, metric: str) -> Part | None:
        """The part of one metric, None where it has no matching series."""
        self.refresh()
        part = self._parts.get(metric)
        return part if part is not None and part.columns else None

    def _candidates(self) -> list[str]:
        table = self._history.table
        names = table.metrics() if self._metric is None else (self._metric,)
        return [name for name in names if table.width(name) and self.matches(name)]

    def _grow(self, metric: str) -> bool:
        part = self._parts.get(metric)
        if part is None:
            part = self._parts[metric] = Part(metric, self._history.ring(metric))
        self._history.ring(metric)  # makes it as wide as the table
        labels = self._history.table.labels(metric)
        new = [column for column in range(part.looked, len(labels)) if self._fits(labels[column])]
        part.whole = part.whole and len(labels) == part.looked
        part.looked = len(labels)
        part.columns += new
        return bool(new)

    def _fits(self, labels: LabelSet) -> bool:
        return not self._tests or all(test(get(labels, name)) for name, test in self._tests)

    def _settle(self) -> None:
        start = 0
        sets: list[LabelSet] = []
        bare: list[LabelSet] = []
        self._matched = tuple(part for part in self._parts.values() if part.columns)
        for part in self._matched:
            part.settle(start)
            start += len(part.columns)
            labels = self._history.table.labels(part.metric)
            bare += [labels[column] for column in part.columns]
            sets += [with_name(part.metric, labels[column]) for column in part.columns]
        self._labels = Labels(sets, bare=bare)


def row_at(selection: Selection, tick: int) -> int | None:
    """The tick of the selector's row at `tick`, None before its first."""
    found = [(part, part.newest(tick)) for part in selection.parts]
    return max((part.ring.tick(row) for part, row in found if row is not None), default=None)


def newest_row(selection: Selection, tick: int) -> Vector:
    """The samples in the selector's row at `tick` (R2). The values may be a view into the history."""
    parts = selection.parts
    if len(parts) == 1:
        part = parts[0]
        row = part.newest(tick)
        if row is not None:
            return _one_row(selection.labels, part, row)
    return _joined_rows(selection.labels, parts, tick)


def _one_row(labels: Labels, part: Part, row: int) -> Vector:
    values = part.ring.row(row)[part.place]
    state = part.ring.state(row)
    there = everything(len(values)) if state <= DENSE else is_sample(values)
    return Vector(labels, values, there, there, grade=GRADES.get(state, 0))


def _joined_rows(labels: Labels, parts: tuple[Part, ...], tick: int) -> Vector:
    values = np.full(len(labels), ABSENT)
    rows = [(part, row) for part in parts if (row := part.newest(tick)) is not None]
    newest = max((part.ring.tick(row) for part, row in rows), default=None)
    for part, row in rows:
        if part.ring.tick(row) == newest:
            values[part.target] = part.ring.row(row)[part.place]
    there = is_sample(values)
    return Vector(labels, values, there, there)


def newest_samples(selection: Selection, tick: int, lookback: int) -> tuple[Vector, Floats]:
    """Each series' newest sample in (tick - lookback, tick], and its tick; a stale one ends the series."""
    labels = selection.labels
    values, ticks = np.full(len(labels), ABSENT), np.zeros(len(labels))
    for part in selection.parts:
        start, end = _span(part.ring, tick - lookback, tick)
        if start < end:
            values[part.target], ticks[part.target] = _last_in(part, start, end)
    there = is_sample(values)
    return Vector(labels, values, there, there), ticks


def _last_in(part: Part, start: int, end: int) -> tuple[Floats, Floats]:
    rows = part.ring.rows(start, end)[:, part.place]
    present = ~is_absent(np.ascontiguousarray(rows))
    last = len(rows) - 1 - np.argmax(present[::-1], axis=0)
    ticks = np.array(part.ring.ticks(start, end), dtype=np.float64)
    return rows[last, np.arange(rows.shape[1])], ticks[last]


def _span(ring: Ring, after: int, upto: int) -> tuple[int, int]:
    return max(ring.find(after), ring.first), ring.find(upto)


def window_of(selection: Selection, after: int, upto: int, running: Running | None = None) -> Window:
    """All samples in (after, upto]; `running` keeps their sums."""
    parts = selection.parts
    if len(parts) == 1:
        part, labels = parts[0], selection.labels
        start, end = _span(part.ring, after, upto)
        total = None if running is None else partial(running.total, labels, part, range(start, end))
        return _one_window(labels, part, start, end, (after, upto), total)
    return _joined_windows(selection.labels, parts, after, upto)


def _one_window(
    labels: Labels,
    part: Part,
    start: int,
    end: int,
    span: tuple[int, int],
    total: Callable[[], Floats | None] | None,
) -> Window:
    blocks = tuple(block[:, part.place] for block in part.ring.blocks(start, end))
    state, present = part.ring.worst_state(start, end), None
    if state > DENSE:
        present = np.concatenate([is_sample(np.ascontiguousarray(block)) for block in blocks])
    ticks = np.array(part.ring.ticks(start, end), dtype=np.int64)
    return Window(labels, ticks, blocks, present, *span, state=state, total=total if state <= FINITE_ROW else None)


def _joined_windows(labels: Labels, parts: tuple[Part, ...], after: int, upto: int) -> Window:
    spans = [_span(part.ring, after, upto) for part in parts]
    ticks = sorted({tick for part, span in zip(parts, spans, strict=True) for tick in part.ring.ticks(*span)})
    values = np.full((len(ticks), len(labels)), ABSENT)
    for part, span in zip(parts, spans, strict=True):
        where = np.searchsorted(ticks, part.ring.ticks(*span))
        values[where, part.target] = part.ring.rows(*span)[:, part.place]
    return Window(labels, np.array(ticks, dtype=np.int64), (values,), is_sample(values), after, upto)
