"""What a log format is, which ones are installed, and which one a log is written in."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.metadata import entry_points
from pathlib import Path
from typing import Protocol

from healthwatch.diagnostics import Diagnostic, Invalid, suggest
from healthwatch.stream import Frame, SeriesTable

GROUP = "healthwatch.readers"
HEAD = 1 << 20  # characters by which a format is recognised
RECORD = '{"step": 12, "metric": "loss", "value": 2.31}'  # what the format `records` needs at least

_LONGEST_REASON = 100
_MOST_REASONS = 5
_NO_NUMBER = re.compile(r"(?:could not convert string to float|invalid literal for int\(\) with base 10): (.*)")


@dataclass(frozen=True, slots=True)
class Options:
    """What a log may not say itself: `top_k`, the experts that a router sends each token to."""

    top_k: int | None = None


@dataclass(slots=True)
class Passed:
    """What was passed over: lines that begin a record but can't be read, and samples of steps closed before.

    `reasons` are a few, each with the number of its first line; `otherwise` counts the records that have others.
    """

    unreadable: int = 0
    reasons: dict[str, int] = field(default_factory=dict)
    otherwise: int = 0
    late: int = 0

    def unread(self, line: int, reason: str = "") -> None:
        self.unreadable += 1
        if reason in self.reasons or len(self.reasons) < _MOST_REASONS:
            self.reasons.setdefault(reason, line)
        else:
            self.otherwise += 1


def reason_of(error: Exception) -> str:
    """What is wrong with a record, from what was raised over it."""
    match error:
        case KeyError(args=[key, *_]):
            return f'no key "{key}"'
        case json.JSONDecodeError():
            return f"no JSON from column {error.colno} on: {error.msg}"
        case RecursionError():
            return "nested too deeply"
    text = _NO_NUMBER.sub(r"not a number: \1", str(error))
    return text if len(text) <= _LONGEST_REASON else f"{text[:_LONGEST_REASON]}..."


class Reader(Protocol):
    """One log being read: lines in, frames out as soon as their step is over."""

    passed: Passed

    def feed(self, line: str) -> Sequence[Frame]:
        """Take in the next line, with or without its end; frames that it completes, closed."""
        ...

    def finish(self) -> Sequence[Frame]:
        """There are no more lines: the frame of the last step."""
        ...


@dataclass(frozen=True, slots=True)
class Format:
    """A log format, registered as an entry point of the group `healthwatch.readers`.

    `recognises` is asked with the beginning of a log, `open` makes a reader that registers its series in a table.
    """

    name: str
    help: str
    recognises: Callable[[str], bool]
    open: Callable[[SeriesTable, Options], Reader]


@cache
def formats() -> Mapping[str, Format]:
    """Every installed format by name."""
    found: list[Format] = [entry.load() for entry in entry_points(group=GROUP)]
    return {each.name: each for each in sorted(found, key=lambda each: each.name)}


@dataclass(slots=True)
class Log:
    """A log as a source of frames; `passed` is complete once they have all been taken."""

    path: Path
    format: Format
    options: Options = Options()
    table: SeriesTable = field(default_factory=SeriesTable)
    passed: Passed = field(default_factory=Passed)

    def frames(self) -> Iterator[Frame]:
        """Every step in the order of the log, closed."""
        reader = self.format.open(self.table, self.options)
        with self.path.open(encoding="utf-8", errors="replace") as lines:
            for line in lines:
                yield from reader.feed(line)
        last = reader.finish()
        self.passed = reader.passed  # now: whoever reads only the beginning once more would leave half of it here
        yield from last


def open_log(path: Path | str, name: str | None = None, options: Options = Options()) -> Log:
    """A log in the format called `name`, or in the one that recognises it.

    Raises:
        Invalid: there is no such format, or none recognises the log.
        OSError: the log can't be read.
    """
    path = Path(path)
    if name is not None:
        if name not in formats():
            raise _refused(f'no log format is called "{name}"', suggest(name, formats(), "installed formats"))
        return Log(path, formats()[name], options)
    with path.open(encoding="utf-8", errors="replace") as file:
        head = file.read(HEAD)
    for each in formats().values():
        if each.recognises(head):
            return Log(path, each, options)
    if not head.strip():
        raise _refused(f"{path.as_posix()} is empty")
    raise _refused(
        f"{path.as_posix()} is in no log format that is known",
        f"known are: {', '.join(formats())}. A trainer of your own can write lines of records, one a sample: {RECORD}; "
        "these and formats of your own are described in docs/readers.md",
    )


def _refused(message: str, help_: str = "") -> Invalid:
    return Invalid([Diagnostic("HW305", "error", message, help=help_)])
