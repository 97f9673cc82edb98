"""Whether a trace is whole JSON with operators in every step that it is to hold.

Also a program of its own, which imports nothing of healthwatch: reading a large trace would hold the interpreter,
and with it the training.
"""

from __future__ import annotations

import json
import subprocess
import sys
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, TextIO

_CHUNK = 1 << 20  # characters
_TIME_LIMIT = 600.0  # seconds
_BLANK = " \t\r\n,"
_BEHIND = _BLANK + "]"


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


def check_trace(path: Path, boundaries: Sequence[float]) -> TraceCheck:
    """Check a trace in the format of Chrome's trace viewer, a list of events or an object with `traceEvents`.

    Args:
        path: the file.
        boundaries: unix seconds at which the first step began and each step ended.
    """
    size = _size(path)
    operators = [0] * (len(boundaries) - 1)
    events = 0
    try:
        with path.open(encoding="utf-8") as file:
            for event in _events(file):
                events += 1
                step = _step_of(event, boundaries)
                if step is not None:
                    operators[step] += 1
    except (OSError, ValueError) as error:
        return TraceCheck(size, events, tuple(operators), f"the trace is not whole: {error}")
    empty = [str(step + 1) for step, count in enumerate(operators) if not count]
    if empty:
        return TraceCheck(size, events, tuple(operators), f"no operators in step {', '.join(empty)} of the window")
    return TraceCheck(size, events, tuple(operators))


def check_aside(path: Path, boundaries: Sequence[float]) -> TraceCheck:
    """The same in a process of its own; waits for it, so it is to be called beside the training."""
    if not sys.executable:
        return check_trace(path, boundaries)
    command = [sys.executable, "-I", "-S", __file__, str(path), *map(repr, boundaries)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_TIME_LIMIT, check=True)
        found = json.loads(done.stdout)
    except (OSError, subprocess.SubprocessError, ValueError) as error:
        return TraceCheck(
            path.stat().st_size if path.exists() else 0, 0, (), f"the trace could not be checked: {error}"
        )
    return TraceCheck(found["size"], found["events"], tuple(found["operators"]), found["problem"])


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def _step_of(event: Any, boundaries: Sequence[float]) -> int | None:
    """The step in which an operator begins; `ts` is microseconds of the wall clock, often as text."""
    if not isinstance(event, dict) or event.get("ph") != "X":
        return None
    step = bisect_right(boundaries, float(event["ts"]) / 1e6) - 1
    return step if 0 <= step < len(boundaries) - 1 else None


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


if __name__ == "__main__":
    print(json.dumps(asdict(check_trace(Path(sys.argv[1]), [float(each) for each in sys.argv[2:]]))))
