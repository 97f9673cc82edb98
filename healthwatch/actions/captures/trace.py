"""Whether a trace is whole JSON with operators in every step that it is to hold, and where the time of them went.

Also a program of its own, which imports nothing of healthwatch: reading a large trace would hold the interpreter,
and with it the training.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from array import array
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, TextIO

_CHUNK = 1 << 20  # characters
_TIME_LIMIT = 600.0  # seconds
_BLANK = " \t\r\n,"
_BEHIND = _BLANK + "]"
_DERIVED = frozenset({"Scope Layer", "Overlap Analysis"})  # tracks that sum up what stands in others
_OPERATOR = re.compile(r"^(?:.*/)?(.+?)(?:-op\d+)?$", re.DOTALL)
_MOST_SHARES = 2000
_JITTER = 0.5  # microseconds; a float holds a time of today to a quarter of one


@dataclass(frozen=True, slots=True)
class TraceCheck:
    """What was found in a trace; `operators` counts the complete events that begin in each step."""

    size: int  # bytes
    events: int
    operators: tuple[int, ...]
    problem: str | None = None

    @property
    def whole(self) -> bool:
        return self.problem is None


@dataclass(frozen=True, slots=True)
class Share:
    """What one operator took of each step: milliseconds without those of what ran inside it, and calls.

    `track` is the trace's name for where it ran (CPU OP, Ascend Hardware, ...).
    """

    track: str
    name: str
    ms: tuple[float, ...]
    calls: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Breakdown:
    """Where the time of the recorded steps went; `busy` is by track the time in which any operator ran there."""

    step_ms: tuple[float, ...]
    shares: tuple[Share, ...] = ()
    busy: tuple[Share, ...] = ()


def read_trace(path: Path, boundaries: Sequence[float]) -> tuple[TraceCheck, Breakdown]:
    """Read a trace in the format of Chrome's trace viewer, a list of events or an object with `traceEvents`.

    Args:
        path: the file.
        boundaries: unix seconds at which the first step began and each step ended.
    """
    size = _size(path)
    found = _Events(boundaries)
    problem = None
    try:
        with path.open(encoding="utf-8") as file:
            for event in _events(file):
                found.take(event)
    except (OSError, ValueError) as error:
        problem = f"the trace is not whole: {error}"
    except (KeyError, TypeError) as error:
        problem = f"an event of the trace can't be read: {type(error).__name__}: {error}"
    operators = found.operators()
    empty = [str(step + 1) for step, count in enumerate(operators) if not count]
    if problem is None and empty:
        problem = f"no operators in step {', '.join(empty)} of the window"
    return TraceCheck(size, found.count, tuple(operators), problem), found.breakdown()


def check_trace(path: Path, boundaries: Sequence[float]) -> TraceCheck:
    return read_trace(path, boundaries)[0]


def read_aside(path: Path, boundaries: Sequence[float]) -> tuple[TraceCheck, Breakdown]:
    """`read_trace` in a process of its own; waits for it, so it is to be called beside the training."""
    if not sys.executable:
        return read_trace(path, boundaries)
    command = [sys.executable, "-I", "-S", __file__, str(path), *map(repr, boundaries)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_TIME_LIMIT, check=True)
        found = json.loads(done.stdout)
    except (OSError, subprocess.SubprocessError, ValueError) as error:
        return TraceCheck(_size(path), 0, (), f"the trace could not be checked: {error}"), Breakdown(())
    check = found["check"]
    return TraceCheck(check["size"], check["events"], tuple(check["operators"]), check["problem"]), breakdown_of(
        found["breakdown"]
    )


def breakdown_of(data: Any) -> Breakdown:
    """The way back from `asdict` through JSON."""
    return Breakdown(tuple(data["step_ms"]), _shares_of(data["shares"]), _shares_of(data["busy"]))


def _shares_of(rows: Iterable[Any]) -> tuple[Share, ...]:
    return tuple(Share(row["track"], row["name"], tuple(row["ms"]), tuple(row["calls"])) for row in rows)


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


# Events by thread


@dataclass(slots=True)
class _Thread:
    """The complete events of one thread, microseconds since the window began."""

    begin: array[float] = field(default_factory=lambda: array("d"))
    length: array[float] = field(default_factory=lambda: array("d"))
    name: array[int] = field(default_factory=lambda: array("l"))

    def in_order(self) -> Iterator[tuple[float, float, int]]:
        """By begin; of two that begin together the outer one first."""
        rows = zip(self.begin, self.length, self.name, strict=True)
        return iter(sorted(rows, key=lambda row: (row[0], -row[1])))


class _Events:
    """Takes events one by one, and adds up what they say of each step."""

    def __init__(self, boundaries: Sequence[float]) -> None:
        self.count = 0
        self._origin = boundaries[0] * 1e6
        self._ends = [(each - boundaries[0]) * 1e6 for each in boundaries]
        self._steps = len(boundaries) - 1
        self._threads: dict[tuple[Any, Any], _Thread] = {}
        self._names: dict[str, int] = {}
        self._tracks: dict[Any, str] = {}

    def take(self, event: Any) -> None:
        self.count += 1
        if not isinstance(event, dict):
            return
        if event.get("ph") == "M" and event.get("name") == "process_name":
            self._tracks[event.get("pid")] = str(event.get("args", {}).get("name"))
        if event.get("ph") != "X":
            return
        thread = self._threads.setdefault((event.get("pid"), event.get("tid")), _Thread())
        thread.begin.append(float(event["ts"]) - self._origin)
        thread.length.append(float(event.get("dur", 0)))
        thread.name.append(self._names.setdefault(str(event.get("name")), len(self._names)))

    def _measured(self) -> Iterator[tuple[str, _Thread]]:
        for (pid, _), thread in self._threads.items():
            track = self._tracks.get(pid, str(pid))
            if track not in _DERIVED:
                yield track, thread

    def _step(self, begin: float) -> int | None:
        step = bisect_right(self._ends, begin) - 1
        return step if 0 <= step < self._steps else None

    def operators(self) -> list[int]:
        counts = [0] * self._steps
        for _, thread in self._measured():
            for begin in thread.begin:
                step = self._step(begin)
                if step is not None:
                    counts[step] += 1
        return counts

    def breakdown(self) -> Breakdown:
        names = [_operator(name) for name in self._names]
        own: dict[tuple[str, str], tuple[list[float], list[int]]] = {}
        spans: dict[str, list[tuple[float, float]]] = {}
        for track, thread in self._measured():
            rows = list(thread.in_order())
            for (begin, _, name), spent in zip(rows, _own_times(rows), strict=True):
                step = self._step(begin)
                if step is not None:
                    ms, calls = own.setdefault((track, names[name]), ([0.0] * self._steps, [0] * self._steps))
                    ms[step] += spent / 1e3
                    calls[step] += 1
            spans.setdefault(track, []).extend((begin, begin + length) for begin, length, _ in rows)
        shares = sorted((_share(*key, *value) for key, value in own.items()), key=lambda one: -sum(one.ms))
        busy = (_share(track, "", self._covered(found), [0] * self._steps) for track, found in sorted(spans.items()))
        return Breakdown(tuple(self._step_ms()), tuple(shares[:_MOST_SHARES]), tuple(busy))

    def _step_ms(self) -> list[float]:
        return [round((end - begin) / 1e3, 3) for begin, end in zip(self._ends, self._ends[1:], strict=False)]

    def _covered(self, spans: list[tuple[float, float]]) -> list[float]:
        """Milliseconds of each step in which at least one of the spans lasts."""
        covered, reached = [0.0] * self._steps, float("-inf")
        for begin, end in sorted(spans):
            new, reached = max(begin, reached), max(end, reached)
            for step in range(max(bisect_right(self._ends, new) - 1, 0), self._steps):
                if self._ends[step] >= reached:
                    break
                inside = min(reached, self._ends[step + 1]) - max(new, self._ends[step])
                covered[step] += max(inside, 0.0) / 1e3
        return covered


def _own_times(rows: Sequence[tuple[float, float, int]]) -> list[float]:
    """The length of each event without those that lie within it; `rows` are one thread's, in order."""
    own = [length for _, length, _ in rows]
    around: list[tuple[float, int]] = []  # end and place of each event that is still open
    for place, (begin, length, _) in enumerate(rows):
        while around and around[-1][0] <= begin + _JITTER:
            around.pop()
        if around:
            own[around[-1][1]] -= min(length, around[-1][0] - begin)
        around.append((begin + length, place))
    return [max(spent, 0.0) for spent in own]


def _operator(name: str) -> str:
    """`TopK` of `Default/network/TopK-op0`."""
    found = _OPERATOR.match(name)
    return found[1] if found else name


def _share(track: str, name: str, ms: Sequence[float], calls: Sequence[int]) -> Share:
    return Share(track, name, tuple(round(each, 4) for each in ms), tuple(calls))


# The file


def _events(file: TextIO) -> Iterator[Any]:
    """Each event of the list, read piece by piece: a trace may be larger than the memory that is left."""
    buffer = file.read(_CHUNK).lstrip()
    if not buffer.startswith("["):
        yield from _of_object(json.loads(buffer + file.read()))
        return
    decoder, position = json.JSONDecoder(), 1
    while True:
        position = _skip_blank(buffer, position)
        if buffer.startswith("]", position):
            break
        try:
            event, end = decoder.raw_decode(buffer, position)
        except ValueError:
            end = len(buffer)
        if end < len(buffer) and buffer[end] in _BEHIND:  # or the rest of a number may be still to come
            yield event
            position = end
            continue
        more = file.read(_CHUNK)
        if not more:
            raise ValueError("the list of events has no end")
        buffer, position = buffer[position:] + more, 0
    if (buffer[position + 1 :] + file.read()).strip():
        raise ValueError("something follows the list of events")


def _skip_blank(buffer: str, position: int) -> int:
    while position < len(buffer) and buffer[position] in _BLANK:
        position += 1
    return position


def _of_object(data: Any) -> Iterator[Any]:
    if not isinstance(data, dict) or not isinstance(data.get("traceEvents"), list):
        raise ValueError("there is no list of events")  # noqa: TRY004 - of what stands in the file
    yield from data["traceEvents"]


def main() -> None:
    check, breakdown = read_trace(Path(sys.argv[1]), [float(each) for each in sys.argv[2:]])
    print(json.dumps({"check": asdict(check), "breakdown": asdict(breakdown)}))


if __name__ == "__main__":
    main()
