"""Samples as JSON lines, one object a sample: `schemas/record.schema.json`. What `healthwatch read` prints."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Sequence
from typing import Annotated

import msgspec
import numpy as np

from healthwatch.readers.format import Format, Options, Passed, reason_of
from healthwatch.readers.steps import Steps
from healthwatch.stream import Column, Frame, LabelSet, SeriesTable
from healthwatch.stream.series import label_set

NON_FINITE = {math.inf: "+Inf", -math.inf: "-Inf"}


FromOne = Annotated[int, msgspec.Meta(ge=1)]
Step = Annotated[int, msgspec.Meta(ge=0, le=10**12)]  # a tick, a millionth of it, has 64 bits


class Record(msgspec.Struct, kw_only=True):
    """One sample. `micro_step` counts from 1; `time` is in seconds since 1970, null where it is not known.

    All keys are written; those with a default need not be there to be read.
    """

    step: Step
    micro_step: FromOne | None = None
    attempt: FromOne = 1
    time: float | None = None
    metric: str
    labels: dict[str, str] = {}
    value: float | str


_DECODER = msgspec.json.Decoder(Record)
_MISSING = re.compile(r"Object missing required field `(\w+)`")
_WRONG = re.compile(r"(.+) - at `\$\.(\w+).*`")


def decode(line: str) -> Record:
    """A line of records, also as Python's `json` writes it: with bare NaN and infinities.

    Raises:
        ValueError: it is none.
        RecursionError: it is nested too deeply.
    """
    try:
        return _DECODER.decode(line)
    except msgspec.ValidationError:
        raise
    except msgspec.DecodeError:
        record = msgspec.convert(json.loads(line.rstrip()), Record)
        msgspec.json.encode(record)  # refuses half a surrogate pair, which Python's `json` lets through
        return record


def _reason(error: Exception) -> str:
    text = reason_of(error)
    if missing := _MISSING.fullmatch(text):
        return f'no key "{missing[1]}"'
    wrong = _WRONG.fullmatch(text)
    return f'"{wrong[2]}": {wrong[1]}' if wrong else text


def records(frame: Frame) -> Iterator[Record]:
    """The samples of a closed frame, in the order of its ticks."""
    for column in frame.columns:
        micro_step = None if column.micro_step is None else column.micro_step + 1
        for labels, value in zip(column.series.labels, _values(column), strict=True):
            yield Record(
                step=frame.step,
                micro_step=micro_step,
                attempt=frame.attempt,
                time=frame.time or None,
                metric=column.series.metric,
                labels=dict(labels),
                value=value,
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
                self._record(decode(line))
            except (ValueError, RecursionError) as error:
                self.passed.unread(self._line, _reason(error))
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
        time = record.time if record.time is not None and math.isfinite(record.time) else 0.0
        if record.metric != "attempt_step" and self._steps.enter(record.step, time):
            self._steps.add(record.metric, (value,), self._cached(record.labels), micro_step)

    def _cached(self, labels: dict[str, str]) -> LabelSet:
        key = tuple(labels.items())
        if key not in self._labels:
            self._labels[key] = label_set(labels)
        return self._labels[key]


def recognises(head: str) -> bool:
    """By the keys of its first line, whatever is wrong with it otherwise: the reader says what."""
    first = head.lstrip().partition("\n")[0]
    try:
        found = json.loads(first)
    except (ValueError, RecursionError):
        return False
    return isinstance(found, dict) and found.keys() >= {"step", "metric"}


FORMAT = Format("records", "JSON lines, one object a sample, as printed by healthwatch read", recognises, RecordLog)
