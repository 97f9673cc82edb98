"""A file's data, and where each part of it stands."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

import yaml

from healthwatch.diagnostics import Diagnostic, Severity, Span, masked, starred
from healthwatch.yamlfile.scalars import offsets

KeyPath: TypeAlias = tuple[str | int, ...]

SCHEME = re.compile(r"[\"']?[A-Za-z][A-Za-z0-9+.-]*://")
LINE_BREAK = re.compile("\r\n|[\r\n\x85\u2028\u2029]")


@dataclass(frozen=True, slots=True)
class Place:
    """The nodes behind one path: its key (none for list items and the root) and its value."""

    key: yaml.Node | None
    value: yaml.Node


@dataclass(frozen=True, slots=True)
class Problem:
    """A diagnostic and the path that it belongs to; a syntax error belongs to the root."""

    path: KeyPath
    diagnostic: Diagnostic


@dataclass(frozen=True, slots=True, eq=False)
class Text:
    """A file's text by line; a position is the character's offset in it."""

    file: str
    text: str
    lines: tuple[str, ...]
    starts: tuple[int, ...]

    @classmethod
    def of(cls, file: str, text: str) -> Text:
        breaks = list(LINE_BREAK.finditer(text))
        starts = (0, *(found.end() for found in breaks))
        ends = (*(found.start() for found in breaks), len(text))
        return cls(file, text, tuple(text[a:b] for a, b in zip(starts, ends, strict=True)), starts)

    def line(self, number: int) -> str:
        return self.lines[number - 1] if 0 < number <= len(self.lines) else ""

    def span(self, start: int, end: int) -> Span:
        """Characters [start, end) of the text, cut at the end of the first one's line."""
        low, high = 0, len(self.starts)
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if self.starts[middle] <= start else (low, middle)
        column = start - self.starts[low]
        stop = min(end - self.starts[low], len(self.lines[low]))
        return Span(self.file, low + 1, column + 1, max(stop, column + 1) + 1)

    def diagnostic(
        self,
        code: str,
        message: str,
        span: Span,
        *,
        severity: Severity = "error",
        label: str = "",
        help: str = "",  # noqa: A002 - named after the field that it fills
    ) -> Diagnostic:
        """A diagnostic with its source line filled in; addresses in it are masked."""
        return Diagnostic(code, severity, masked(message), span, label, help, masked(self.line(span.line)))


@dataclass(frozen=True, slots=True, eq=False)
class Document:
    """One file. `data` is None where it can't be read; every key is the text that was written.

    `hidden` are values that are credentials whether or not they look like an address.
    """

    text: Text
    data: Any
    problems: tuple[Problem, ...]
    raw: bytes = b""
    places: Mapping[KeyPath, Place] = field(default_factory=dict)
    hidden: frozenset[KeyPath] = frozenset()

    @property
    def file(self) -> str:
        return self.text.file

    @property
    def diagnostics(self) -> tuple[Diagnostic, ...]:
        return tuple(problem.diagnostic for problem in self.problems)

    def key_span(self, path: KeyPath) -> Span:
        """Where the key stands; for an item of a list, and for what has no key, its value."""
        place = self.places.get(path)
        if place is None or place.key is None:
            return self.value_span(path)
        return self._node_span(place.key)

    def value_span(self, path: KeyPath) -> Span:
        """Where the value stands; an empty value is shown at its key, a missing one at what should hold it."""
        place = self.places.get(path)
        if place is None:
            return self.key_span(path[:-1]) if path else Span(self.file, 1, 1, 2)
        empty = place.value.start_mark.index == place.value.end_mark.index
        return self._node_span(place.key if empty and place.key is not None else place.value)

    def text_span(self, path: KeyPath, start: int, end: int) -> Span:
        """Where characters [start, end) of a text value stand, whatever its quotes, folds and escapes."""
        place = self.places.get(path)
        if place is None or not isinstance(place.value, yaml.ScalarNode):
            return self.value_span(path)
        base = place.value.start_mark.index
        found = offsets(self.text.text[base : place.value.end_mark.index], place.value.value, place.value.style)
        if not found:
            return self.value_span(path)
        stop = len(place.value.value.rstrip())
        if start >= stop:  # something is missing behind the end
            after = base + (found[stop - 1][1] if stop else found[0][0])
            return self.text.span(after, after + 1)
        return self.text.span(base + found[start][0], base + found[max(min(end, stop) - 1, start)][1])

    def written(self, path: KeyPath) -> str | None:
        """A scalar as it was written, without its quotes: `010`, `1e-3`, `no`; None for anything else."""
        place = self.places.get(path)
        return str(place.value.value) if place and isinstance(place.value, yaml.ScalarNode) else None

    def quoted(self, path: KeyPath) -> bool:
        place = self.places.get(path)
        return bool(place and isinstance(place.value, yaml.ScalarNode) and place.value.style)

    def at_key(self, code: str, message: str, path: KeyPath, **fields: Any) -> Diagnostic:
        return self.at_span(code, message, self.key_span(path), **fields)

    def at_value(self, code: str, message: str, path: KeyPath, **fields: Any) -> Diagnostic:
        return self.at_span(code, message, self.value_span(path), **fields)

    def at_span(self, code: str, message: str, span: Span, **fields: Any) -> Diagnostic:
        return replace(self.text.diagnostic(code, message, span, **fields), source=self.shown(span.line))

    def shown(self, number: int) -> str:
        """A line as diagnostics show it: credentials starred out in their own text, the rest of the line as it is."""
        line = self.text.line(number)
        position, end = (self.text.starts[number - 1], 0) if line else (0, 0)
        end, pieces = position + len(line), []
        for start, text in self._scalars(position, end):
            pieces.append(masked(self.text.text[position : max(start, position)]))  # comments among it
            pieces.append(text[max(position - start, 0) : end - start])
            position = max(position, min(start + len(text), end))
        return "".join((*pieces, masked(self.text.text[position:end])))

    def _scalars(self, start: int, end: int) -> list[tuple[int, str]]:
        """The keys and values within these characters, in their order: where each begins, and its text, masked."""
        found = {}
        for path, place in self.places.items():
            for node in (place.key, place.value):
                if not isinstance(node, yaml.ScalarNode):
                    continue
                first, last = node.start_mark.index, node.end_mark.index
                if first < end and last > start:
                    hidden = node is place.value and path in self.hidden
                    found[first] = _masked(self.text.text[first:last], hidden=hidden)
        return sorted(found.items())

    def _node_span(self, node: yaml.Node) -> Span:
        start, end = node.start_mark, node.end_mark
        if end.line == start.line:
            return self.text.span(start.index, end.index)
        line = self.text.line(start.line + 1)
        return self.text.span(start.index, start.index + len(line.rstrip()) - start.column)


def _masked(written: str, *, hidden: bool) -> str:
    """A scalar as it was written, without what may be a credential."""
    return concealed(written) if hidden else masked(written)


def concealed(written: str) -> str:
    """Nothing but the scheme of an address, and the variables that stand for the rest."""
    scheme = SCHEME.match(written)
    shown = scheme.end() if scheme else 0
    return written[:shown] + starred(written[shown:])
