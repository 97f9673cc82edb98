"""The frames of a test, from its series, a recorded run or JSON lines."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from healthwatch.diagnostics import Diagnostic, Invalid, Span
from healthwatch.recording import Run
from healthwatch.ruletest.model import Case, Sample, WrittenSeries
from healthwatch.ruletest.notation import Trouble, read_series
from healthwatch.stream import Frame, LabelSet, SeriesTable
from healthwatch.stream.history import STALE

Cell = tuple[int, int | None]  # step, micro-step from 0
ATTEMPT_STEP = "attempt_step"  # every source gives it
OFTEN = 1.0  # seconds
RESERVED = ("step", "attempt", "time", "micro_step")

_RUN_SUFFIXES = (".sqlite", ".db")


def frames(case: Case, table: SeriesTable, every: int) -> Iterator[Frame]:
    """Closed frames in order, one at every `every` steps even where nothing comes.

    Raises:
        Invalid: the file can't be read.
    """
    if case.source is None:
        return _from_series(case, table, every)
    if _is_run(case.source):
        return Run.open(case.source).frames(table)
    return _from_lines(case.source, table)


def standing(case: Case) -> Callable[[Frame, Frame | None], Sequence[float]]:
    """Between a frame and the next: the times at which somebody looks at the clock, as beside a training."""
    if case.source is not None and _is_run(case.source):
        with Run.open(case.source) as run:
            events = run.clock_events()
        return lambda frame, _: events.get((frame.attempt, frame.step, frame.time), ())
    return lambda frame, following: [frame.time + still for still in _between(case, frame, following)]


def _between(case: Case, frame: Frame, following: Frame | None) -> Iterator[float]:
    """Seconds after a frame; the end of a standstill that is written down is looked at as well."""
    lasts = case.standstills.get(frame.step)
    if lasts is not None:
        yield from _moments(lasts)
        yield lasts
    elif following is not None and following.attempt == frame.attempt:
        yield from _moments(following.time - frame.time)


def _moments(lasts: float) -> Iterator[float]:
    """Every second at first, ever less often."""
    still = OFTEN
    while still < lasts:
        yield still
        still += max(OFTEN, still / 50)


def _is_run(source: Path) -> bool:
    return source.is_dir() or source.suffix in _RUN_SUFFIXES


def _from_series(case: Case, table: SeriesTable, every: int) -> Iterator[Frame]:
    cells = _cells(case)
    last = max((step for step, _ in cells), default=0)
    end = max(last, case.last_asked, *case.standstills)
    micro_steps = {series.micro_steps for series in case.series if series.micro_steps}
    steps = sorted({*range(case.start, end + 1, every), *(step for step, _ in cells)})
    by_step: dict[int, list[Cell]] = defaultdict(list)
    for cell in cells:
        by_step[cell[0]].append(cell)
    for step in steps:
        begins = [case.start, *(each for each in case.resume_at if each <= step)]
        stood = sum(max(lasts - case.step_time, 0) for after, lasts in case.standstills.items() if after < step)
        frame = Frame(step, len(begins), step * case.step_time + stood)
        for cell in by_step[step]:
            _fill(frame, cell[1], cells[cell], table)
        if all(series.metric != ATTEMPT_STEP for series in case.series):
            frame.add(table.register(ATTEMPT_STEP, [{}]), step - begins[-1] + 1)
        frame.close(max(micro_steps) if any(cell[1] is not None for cell in by_step[step]) else None)
        yield frame


def _cells(case: Case) -> Mapping[Cell, list[tuple[WrittenSeries, float]]]:
    """What comes at each step or micro-step."""
    cells: dict[Cell, list[tuple[WrittenSeries, float]]] = defaultdict(list)
    for series in case.series:
        for position, sample in enumerate(series.values):
            if sample is not None:
                cells[_cell(series, position, case)].append((series, _value(sample)))
    return cells


def _cell(series: WrittenSeries, position: int, case: Case) -> Cell:
    if series.micro_steps is None:
        return case.start + position * case.interval, None
    step, micro_step = divmod(position, series.micro_steps)
    return case.start + step * case.interval, micro_step


def _value(sample: Sample) -> float:
    return STALE if sample == "stale" else float(sample or 0.0)


def _fill(
    frame: Frame, micro_step: int | None, samples: Iterable[tuple[WrittenSeries, float]], table: SeriesTable
) -> None:
    by_metric: dict[str, dict[LabelSet, float]] = defaultdict(dict)
    for series, value in samples:
        by_metric[series.metric][series.labels] = value
    _add(frame, micro_step, by_metric, table)


def _add(
    frame: Frame, micro_step: int | None, by_metric: Mapping[str, Mapping[LabelSet, float]], table: SeriesTable
) -> None:
    for metric, values in by_metric.items():
        series = table.register(metric, [dict(labels) for labels in values])
        frame.add(series, np.array(list(values.values())), micro_step)


def _from_lines(path: Path, table: SeriesTable) -> Iterator[Frame]:
    """JSON lines: an object a step, as {"step": 3, "loss": 2.1}; null is no sample.

    `micro_step` (from 1), `attempt` and `time` (unix seconds) may stand beside `step`; lines of one step follow each
    other.
    """
    frame: Frame | None = None
    first = 0
    for number, record in _records(path):
        step, attempt = record["step"], record.get("attempt", 1)
        if frame is None or (frame.step, frame.attempt) != (step, attempt):
            if frame is None or frame.attempt != attempt:
                first = step
            if frame is not None:
                frame.close()
                yield frame
            frame = Frame(step, attempt, float(record.get("time", step)))
            frame.add(table.register(ATTEMPT_STEP, [{}]), step - first + 1)
        micro_step = record.get("micro_step")
        _add(frame, None if micro_step is None else micro_step - 1, _samples(path, number, record), table)
    if frame is not None:
        frame.close()
        yield frame


def _records(path: Path) -> Iterator[tuple[int, Mapping[str, Any]]]:
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise _refused(path, 0, f"it can't be read: {error}") from None
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip():
            continue
        try:
            record = json.loads(line)
        except ValueError as error:
            raise _refused(path, number, f"this line is no JSON: {error}", line) from None
        if not isinstance(record, dict) or not _whole(record.get("step")):
            raise _refused(path, number, 'a line is an object with a whole number under "step"', line)
        if not all(_whole(record.get(key, 1)) and record.get(key, 1) >= 1 for key in ("attempt", "micro_step")):
            raise _refused(path, number, '"attempt" and "micro_step" count from 1', line)
        yield number, record


def _samples(path: Path, number: int, record: Mapping[str, Any]) -> Mapping[str, Mapping[LabelSet, float]]:
    found: dict[str, dict[LabelSet, float]] = defaultdict(dict)
    for key, value in record.items():
        if key in RESERVED or value is None:
            continue
        series = read_series(key)
        if isinstance(series, Trouble):
            raise _refused(path, number, f"{key!r} is no series: {series.message}")
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise _refused(path, number, f"{key!r} is not a number but {value!r}")
        metric, labels = series
        found[metric][labels] = float(value)
    return found


def _whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _refused(path: Path, line: int, message: str, source: str = "") -> Invalid:
    span = Span(path.as_posix(), line, 1, len(source) + 1)
    return Invalid([Diagnostic("HW202", "error", message, span, source=source)])
