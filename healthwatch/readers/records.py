"""Samples as JSON lines, one object a sample: `schemas/record.schema.json`. What `healthwatch read` prints."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import msgspec
import numpy as np

from healthwatch.readers.format import Format, Options, Passed
from healthwatch.readers.steps import Steps
from healthwatch.stream import Column, Frame, LabelSet, SeriesTable
from healthwatch.stream.series import label_set

NON_FINITE = {math.inf: "+Inf", -math.inf: "-Inf"}


class Record(msgspec.Struct):
    """One sample. `micro_step` counts from 1; `time` is in seconds since 1970, null where it is not known."""

    step: int
    micro_step: int | None
    attempt: int
    time: float | None
    metric: str
    labels: dict[str, str]
    value: float | str


_DECODER = msgspec.json.Decoder(Record)


def records(frame: Frame) -> Iterator[Record]:
    """The samples of a closed frame, in the order of its ticks."""
    for column in frame.columns:
        micro_step = None if column.micro_step is None else column.micro_step + 1
        for labels, value in zip(column.series.labels, _values(column), strict=True):
            yield Record(
                frame.step, micro_step, frame.attempt, frame.time or None, column.series.metric, dict(labels), value
            )


def _values(column: Column) -> list[float | str]:
    values: list[float | str] = column.values.tolist()
    for place in np.flatnonzero(~np.isfinite(column.values)):
        values[place] = NON_FINITE.get(float(column.values[place]), "NaN")
    return values


def lines(frame: Frame) -> Iterator[str]:
    for record in records(frame):
        yield msgspec.json.encode(record).decode()


class RecordLog:
    """A reader of such lines."""

    def __init__(self, table: SeriesTable, options: Options) -> None:  # noqa: ARG002 - the lines say everything
        self.passed = Passed()
        self._steps = Steps(table)
        self._line = 0
        self._attempt = 0
        self._labels: dict[tuple[tuple[str, str], ...], LabelSet] = {}

    def feed(self, line: str) -> Sequence[Frame]:
        self._line += 1
        if line.strip():
            try:
                self._record(_DECODER.decode(line))
            except (msgspec.DecodeError, ValueError):
                self.passed.unread(self._line)
        return self._steps.take() if self._steps.ready else ()

    def finish(self) -> Sequence[Frame]:
        self.passed.late = self._steps.late
        return self._steps.finish()

    def _record(self, record: Record) -> None:
        value = float(record.value)
        micro_step = None if record.micro_step is None else record.micro_step - 1
        if record.attempt > self._attempt:
            self._attempt = record.attempt
            self._steps.restart()
            self._steps.attempt = record.attempt
        if record.metric != "attempt_step" and self._steps.enter(record.step, record.time or 0.0):
            self._steps.add(record.metric, (value,), self._cached(record.labels), micro_step)

    def _cached(self, labels: dict[str, str]) -> LabelSet:
        key = tuple(labels.items())
        if key not in self._labels:
            self._labels[key] = label_set(labels)
        return self._labels[key]


def recognises(head: str) -> bool:
    """By its first line."""
    first = head.lstrip().partition("\n")[0]
    try:
        _DECODER.decode(first)
    except msgspec.DecodeError:
        return False
    return True


FORMAT = Format("records", "JSON lines, one object a sample, as printed by healthwatch read", recognises, RecordLog)
