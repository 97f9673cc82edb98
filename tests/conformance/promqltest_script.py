"""Reads promqltest scripts: a list of commands, each with the line it stands on."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from promqltest_series import ScriptError, WrittenSeries, number, read_series, read_time

from healthwatch.promql.tokens import unquote


@dataclass(frozen=True, slots=True)
class Clear:
    line: int


@dataclass(frozen=True, slots=True)
class Load:
    """One sample every `gap` ticks, from time 0. `converts`: classic histograms come as native ones too."""

    line: int
    gap: int
    series: tuple[WrittenSeries, ...]
    converts: bool = False


@dataclass(frozen=True, slots=True)
class Expected:
    """What an evaluation must give; `fail` is a part of the error's message, or a pattern in it."""

    fail: str | re.Pattern[str] | None = None
    ordered: bool = False
    annotated: bool = False
    string: str | None = None
    scalar: float | None = None
    ranges: tuple[int, int, int] | None = None
    series: tuple[WrittenSeries, ...] = ()

    @property
    def has_histogram(self) -> bool:
        return any(series.has_histogram for series in self.series)


@dataclass(frozen=True, slots=True)
class Eval:
    """At `start` alone where `step` is None, else at start, start + step ... up to `end`. Times are ticks."""

    line: int
    text: str
    start: int
    end: int
    step: int | None
    expected: Expected = field(default_factory=Expected)


Command: TypeAlias = Clear | Load | Eval

_INSTANT = re.compile(r"eval(?:_(?P<mode>fail|warn|ordered|info))?\s+instant\s+(?:at\s+(?P<at>\S+)\s+)?(?P<text>.+)")
_RANGE = re.compile(
    r"eval(?:_(?P<mode>fail|warn|info))?\s+range\s+from\s+(?P<start>\S+)\s+to\s+(?P<end>\S+)\s+step\s+(?P<step>\S+)\s+(?P<text>.+)"
)
_EXPECT = re.compile(r"expect\s+(?P<what>\w+)\s*(?:(?P<how>msg|regex)\s*:)?\s*(?P<rest>.*)")
_RANGES = re.compile(r"vector\s+from\s+(\S+)\s+to\s+(\S+)\s+step\s+(\S+)")
_OLD_FAIL = re.compile(r"expected_fail_(?P<how>message|regexp)\s+(?P<rest>.*)")


def read_script(text: str) -> Iterator[Command]:
    """The commands of a script in turn. Raises ScriptError, with the line, at what it can't read."""
    lines = ["" if line.strip().startswith("#") else line.strip() for line in text.split("\n")]
    position = 0
    while position < len(lines):
        if not lines[position]:
            position += 1
            continue
        end = next((i for i in range(position, len(lines)) if not lines[i]), len(lines))
        length = 1 if lines[position] == "clear" else end - position
        try:
            yield _command(position + 1, lines[position], lines[position + 1 : position + length])
        except ScriptError as error:
            raise ScriptError(f"line {position + 1}: {error}") from None
        position += length


def _command(line: int, head: str, body: list[str]) -> Command:
    if head == "clear":
        return Clear(line)
    words = head.split()
    if words[0] in ("load", "load_with_nhcb") and len(words) == 2:
        return Load(line, read_time(words[1]), tuple(map(read_series, body)), words[0] != "load")
    if found := _INSTANT.fullmatch(head):
        at = read_time(found["at"] or "0")
        return Eval(line, found["text"], at, at, None, _expected(found["mode"], body))
    if found := _RANGE.fullmatch(head):
        start, end, step = (read_time(found[name]) for name in ("start", "end", "step"))
        return Eval(line, found["text"], start, end, step, _expected(found["mode"], body))
    raise ScriptError(f"no command in {head!r}")


def _expected(mode: str | None, body: list[str]) -> Expected:
    expected = Expected(
        fail="" if mode == "fail" else None, ordered=mode == "ordered", annotated=mode in ("warn", "info")
    )
    for line in body:
        expected = _more(expected, line)
    return expected


def _more(expected: Expected, line: str) -> Expected:
    if found := _OLD_FAIL.fullmatch(line):
        return replace(expected, fail=_failure("regex" if found["how"] == "regexp" else "msg", found["rest"]))
    if found := _EXPECT.fullmatch(line):
        return _clause(expected, found["what"], found["how"], found["rest"])
    try:
        return replace(expected, scalar=number(line))
    except ScriptError:
        return replace(expected, series=(*expected.series, read_series(line)))


def _clause(expected: Expected, what: str, how: str | None, rest: str) -> Expected:
    if what == "fail":
        return replace(expected, fail=_failure(how or "msg", rest))
    if what == "ordered":
        return replace(expected, ordered=True)
    if what in ("warn", "info"):
        return replace(expected, annotated=True)
    if what in ("no_warn", "no_info"):
        return expected
    if what == "string":
        return replace(expected, string=unquote(rest))
    if what == "range" and (found := _RANGES.fullmatch(rest)):
        start, end, step = map(read_time, found.groups())
        return replace(expected, ranges=(start, end, step))
    raise ScriptError(f"nothing can be expected by {what!r}")


def _failure(how: str, text: str) -> str | re.Pattern[str]:
    return re.compile(text.strip()) if how == "regex" else text.strip()
