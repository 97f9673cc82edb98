"""From bytes to a Document: decoding, composing nodes, and building data with its places."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from healthwatch.diagnostics import Diagnostic, Span
from healthwatch.yamlfile.document import Document, KeyPath, Place, Problem, Text
from healthwatch.yamlfile.scalars import TAG, key_text, resolve

_DEEPEST = 64
_MOST_VALUES = 50_000  # after aliases are expanded; a real file holds thousands
_NOT_YAML = re.compile("[^\t\n\r -~\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_SAVE = "save it as UTF-8"
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # libyaml is 70 times faster

_QUOTED = 'put quotes around it: "{{ $value }} is high"'

_OPEN = r"unexpected end of stream|expected ',' or '[\]}]'"
_TEMPLATE = re.compile(r"(?<=: )\s*(\{\{.*?\}\})")
"""A value that begins as a template does, which to YAML are two mappings."""
_SELECTOR = re.compile(r"""(?<=: )\s*(\{\w+\s*[=!]=?~?\s*["'][^{}]*\})\s*[^\s#,}]""")
"""An expression that begins with a selector's braces, which to YAML are a mapping that is over before the line is."""
_HALF_QUOTED = re.compile(r"""(?<=: )\s*("(?:[^"\\]|\\.)*"|'(?:[^']|'')*')(?:\s+[^\s#,\]}:'"]|[^\s\w#,\]}:'"])""")

_SYNTAX = (  # what the parsers say (libyaml and pure Python differ), what we say, how to mend it
    (r"cannot start any token", "this character can't start a value", "quote the text that begins with it"),
    (r"mapping values are not allowed", "a second ':' can't stand here",
     "check the indentation of this line; quote a text that contains ': '"),
    (r"could not find expected ':'|did not find expected ':'", "this line is neither a key nor part of a value",
     "a key needs ': ' behind it; a text that goes on over several lines is indented deeper than its key"),
    (r"expected <block end>|did not find expected (key|'-' indicator)", "the indentation does not fit the lines above",
     "items of one list and keys of one mapping start in the same column"),
    (r"sequence entries are not allowed", "a list can't begin beside its key",
     "write each item on a line of its own below, behind '- '; quote a text that begins with '- '"),
    (r"block scalar", "nothing can follow the > or | here",
     "the text goes on below, indented deeper; quote a text that begins with > or |"),
    (r"scanning an (alias|anchor)", "a name must follow the * or & here", "quote a text that begins with * or &"),
    (r"unknown escape", "this \\ begins no escape that YAML knows", "put the text in single quotes"),
    (r"undefined alias", "no anchor (&name) stands before this alias", ""),
    (r"(expected|another|single) document|expected a single", "a second document starts here",
     "one file holds one document; remove the ---"),
    (_OPEN, "this quote or bracket is never closed", "close it"),
    (r"expected node content|expected the node content", "a value is missing here",
     "quote a text that begins with this character"),
    (r"maximum nesting depth", "brackets are nested too deeply", ""),
)  # fmt: skip

_BEGINNINGS = (  # of a value: what is found, what we say, how to mend it
    (_TEMPLATE, "a text that begins with {{ must be quoted", _QUOTED.replace("{", "{{").replace("}", "}}")),
    (_SELECTOR, "an expression that begins with { must be quoted", "put single quotes around all of it: '{} ...'"),
    (_HALF_QUOTED, "the quoted text ends before its line does", "put single quotes around all of it, or none"),
)


def load(path: str | Path, name: str | None = None) -> Document:
    """Read a YAML file; `name` is how diagnostics call it (default: the path as given)."""
    shown = name if name is not None else str(path)
    try:
        raw = Path(path).read_bytes()
    except FileNotFoundError:
        return _unreadable(shown, "there is no such file")
    except IsADirectoryError:
        return _unreadable(shown, "this is a folder, not a file")
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        return _unreadable(shown, f"can't read this file: {reason}")
    return parse(raw, shown)


def parse(raw: bytes, name: str) -> Document:
    """As `load`, of bytes that are already there."""
    if raw[:2] in (b"\xff\xfe", b"\xfe\xff"):
        text = Text.of(name, "")
        return _failed(text, Diagnostic("HW002", "error", "this file is UTF-16", Span(name, 0, 0, 0), help=_SAVE), raw)
    try:
        text = Text.of(name, raw.decode("utf-8").removeprefix("\ufeff"))
    except UnicodeDecodeError as error:
        return _undecodable(name, raw, error)
    strange = _NOT_YAML.search(text.text)
    if strange is not None:
        span = text.span(*strange.span())
        message = f"YAML does not allow the character U+{ord(strange[0]):04X}"
        return _failed(text, text.diagnostic("HW003", message, span), raw)
    return _composed(text, raw)


def _unreadable(name: str, message: str) -> Document:
    return _failed(Text.of(name, ""), Diagnostic("HW001", "error", message, Span(name, 0, 0, 0)), b"")


def _undecodable(name: str, raw: bytes, error: UnicodeDecodeError) -> Document:
    text = Text.of(name, raw.decode("utf-8", "replace"))
    start = len(raw[: error.start].decode("utf-8", "replace"))
    message = f"the byte 0x{raw[error.start]:02X} is not UTF-8"
    return _failed(text, text.diagnostic("HW002", message, text.span(start, start + 1), help=_SAVE), raw)


def _failed(text: Text, found: Diagnostic, raw: bytes) -> Document:
    return Document(text, None, (Problem((), found),), raw)


def _composed(text: Text, raw: bytes) -> Document:
    try:
        root = yaml.compose(text.text, Loader=_LOADER)
    except yaml.MarkedYAMLError as error:
        return _failed(text, _syntax_error(text, error), raw)
    except (yaml.YAMLError, RecursionError, ValueError, OverflowError) as error:
        shown = "brackets are nested too deeply" if isinstance(error, RecursionError) else f"not YAML: {error}"
        return _failed(text, text.diagnostic("HW003", shown, Span(text.file, 1, 1, 2)), raw)
    if root is None:
        return Document(text, None, (), raw)
    builder = _Builder(text)
    data = builder.build(root, None, (), ())
    return Document(text, data, tuple(builder.problems), raw, builder.places)


def _syntax_error(text: Text, error: yaml.MarkedYAMLError) -> Diagnostic:
    said = f"{error.context or ''} {error.problem or ''}".strip()
    opened = error.context_mark if re.search(_OPEN, said) else None
    mark = opened or error.problem_mark or error.context_mark
    line, column = (mark.line, mark.column) if mark is not None else (0, 0)
    written = text.line(line + 1)
    if "\t" in written[: column + 1] and not written[: column + 1].strip():
        place = written.index("\t")
        span = Span(text.file, line + 1, place + 1, place + 2)
        return text.diagnostic("HW003", "a tab can't indent YAML", span, help="indent with spaces")
    slip = _slip(text, error.problem_mark)
    if slip is not None:
        return slip
    known = (each for each in _SYNTAX if re.search(each[0], said))
    _, message, mend = next(known, ("", said, ""))
    if "unknown escape" in said and written[column : column + 1] != "\\":
        column -= 1  # pure Python points at the letter
    line = min(line, len(text.lines) - 1)
    start = min(text.starts[line] + column, len(text.text))
    return text.diagnostic("HW003", message, text.span(start, start + 1), help=mend)


def _slip(text: Text, mark: yaml.Mark | None) -> Diagnostic | None:
    """What is usually meant where a value is not as it must be: a parser sees but that something else should follow."""
    if mark is None or mark.line >= len(text.lines):
        return None
    written, start = text.line(mark.line + 1), text.starts[mark.line]
    for pattern, message, mend in _BEGINNINGS:
        found = pattern.search(written)
        if found is not None:
            span = text.span(start + found.start(1), start + found.end(1))
            return text.diagnostic("HW003", message, span, help=mend.format(found[1]))
    return _slip_at(text, mark, written)


def _slip_at(text: Text, mark: yaml.Mark, written: str) -> Diagnostic | None:
    """The same, told by what stands around the mark."""
    start = text.starts[mark.line]
    before, here = written[: mark.column], written[mark.column : mark.column + 1]
    if before.endswith(("'", '"')) and here.isalnum():
        place = text.span(start + mark.column - 1, start + mark.column)
        quote = before[-1]
        mend = "write it twice: ''" if quote == "'" else 'write \\" or put the text in single quotes'
        return text.diagnostic("HW003", f"this {quote} ends the quoted text", place, help=mend)
    if here == ":" and re.search(r"[{,]\s*\w+: [^,{}]*$", before):
        span = text.span(start + mark.column, start + mark.column + 1)
        return text.diagnostic("HW003", "a second ':' can't stand here", span, help="quote a text that contains ': '")
    return None


@dataclass(slots=True)
class _Builder:
    """Turns nodes into data, noting the place of each part and everything odd on the way."""

    text: Text
    places: dict[KeyPath, Place] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)
    values: int = 0

    def build(self, node: yaml.Node, key: yaml.Node | None, path: KeyPath, above: tuple[int, ...]) -> Any:
        self.places[path] = Place(key, node)
        self.values += 1
        if id(node) in above:
            return self._note("HW003", "this alias refers to what it stands in", node, path)
        if len(above) > _DEEPEST or self.values > _MOST_VALUES:
            if self.values <= _MOST_VALUES + 1:
                self._note("HW003", "this is nested too deeply, or its aliases expand to too much", node, path)
            return None
        if isinstance(node, yaml.MappingNode):
            return self._mapping(node, path, (*above, id(node)))
        if isinstance(node, yaml.SequenceNode):
            items = enumerate(node.value)
            return [self.build(item, None, (*path, n), (*above, id(node))) for n, item in items]
        if not isinstance(node, yaml.ScalarNode):
            return None
        value, odd = resolve(node)
        if odd:
            mend = "quote it if it is text; write a number with decimal digits alone"
            self._note("HW006", odd, node, path, mend)
        return value

    def _mapping(self, node: yaml.MappingNode, path: KeyPath, above: tuple[int, ...]) -> dict[str, Any]:
        entries: dict[str, tuple[yaml.Node, yaml.Node]] = {}
        for key, value in node.value:
            if key.tag == f"{TAG}merge":
                continue
            name = self._key(key, path)
            if name is None:
                continue
            if name in entries:
                first = entries[name][0].start_mark.line + 1
                self._note("HW004", f'duplicate key "{name}"', key, (*path, name), label=f"first on line {first}")
            entries[name] = (key, value)
        for key, value in self._merged(node, path, above):
            if (name := self._key(key, path)) is not None:
                entries.setdefault(name, (key, value))
        return {name: self.build(value, key, (*path, name), above) for name, (key, value) in entries.items()}

    def _merged(
        self, node: yaml.MappingNode, path: KeyPath, above: tuple[int, ...]
    ) -> Iterator[tuple[yaml.Node, yaml.Node]]:
        """What `<<` brings in: the entries of a mapping or of each of a list, the first one winning."""
        for key, value in node.value:
            if key.tag != f"{TAG}merge":
                continue
            for source in value.value if isinstance(value, yaml.SequenceNode) else [value]:
                if not isinstance(source, yaml.MappingNode) or id(source) in above or len(above) > _DEEPEST:
                    self._note("HW003", "<< needs a mapping, or a list of mappings", key, path)
                    continue
                yield from (entry for entry in source.value if entry[0].tag != f"{TAG}merge")
                yield from self._merged(source, path, (*above, id(source)))

    def _key(self, key: yaml.Node, path: KeyPath) -> str | None:
        """None where it is a list or a mapping: that is told, and what stands under it left out."""
        if not isinstance(key, yaml.ScalarNode):
            template = self.text.text[key.start_mark.index - 1 : key.start_mark.index + 1] == "{{"
            self._note("HW005", "a key must be text", key, path, _QUOTED if template else "")
            return None
        name, otherwise = key_text(key)
        if otherwise:
            mend = f'quote it: "{name}":'
            self._note("HW005", f"YAML reads the key {name or '(empty)'} as {otherwise}", key, (*path, name), mend)
        return name

    def _note(self, code: str, message: str, node: yaml.Node, path: KeyPath, mend: str = "", label: str = "") -> None:
        end = node.end_mark.index if node.end_mark.line == node.start_mark.line else node.start_mark.index + 1
        span = self.text.span(node.start_mark.index, end)
        self.problems.append(Problem(path, self.text.diagnostic(code, message, span, label=label, help=mend)))
