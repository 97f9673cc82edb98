"""What is wrong with something a user wrote, where it stands, and how it is shown."""

from __future__ import annotations

import difflib
import json
import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal, TypeAlias

Severity: TypeAlias = Literal["error", "warning", "info"]

_LONGEST_LINE = 160  # columns of source shown; a longer line is cut around the carets
_TAB = 4


@dataclass(frozen=True, slots=True)
class Span:
    """A place on one line of a file; lines and columns count from 1, `end_column` is exclusive."""

    file: str
    line: int
    column: int
    end_column: int


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One problem. `label` stands behind the carets, `help` in a line of its own; `source` is the line itself."""

    code: str
    severity: Severity
    message: str
    span: Span | None = None
    label: str = ""
    help: str = ""
    source: str = ""


class Invalid(Exception):  # noqa: N818 - it is a state of the input, and the text of every problem in it
    """The configuration can't be used; raised before step 1 with every problem found."""

    def __init__(self, diagnostics: Sequence[Diagnostic]) -> None:
        self.diagnostics = tuple(diagnostics)
        super().__init__("\n" + render_text(self.diagnostics))


def errors(diagnostics: Iterable[Diagnostic]) -> list[Diagnostic]:
    return [found for found in diagnostics if found.severity == "error"]


def in_order(diagnostics: Iterable[Diagnostic]) -> list[Diagnostic]:
    """By place within a file, the files in the order of their first problem; duplicates told once."""
    unique = list(dict.fromkeys(diagnostics))
    files = {found.span.file: None for found in unique if found.span is not None}
    rank = {file: position for position, file in enumerate(files)}

    def place(found: Diagnostic) -> tuple[int, int, int]:
        if found.span is None:
            return (-1, 0, 0)
        return (rank[found.span.file], found.span.line, found.span.column)

    return sorted(unique, key=place)


_ADDRESS = re.compile(r"(?<=://).+")
_HIDDEN = re.compile(r"(\$\{[^}]*\}?)|[^\s\"'\[\]{},]")


def masked(text: str) -> str:
    """The text with all that follows `://` starred out, since it may be a credential; `${NAME}` stays."""
    return _ADDRESS.sub(lambda found: starred(found[0]), text)


def starred(text: str) -> str:
    """A star for each letter; blanks, quotes, brackets, commas and `${NAME}` stay."""
    return _HIDDEN.sub(lambda part: part[1] or "*", text)


def counted(number: int, what: str) -> str:
    """So many of them, one in the singular."""
    return f"1 {what}" if number == 1 else f"{number} {what}s"


def did_you_mean(written: object, known: Iterable[object]) -> str:
    """`did you mean "..."?` where something known resembles what was written, else nothing."""
    names = {str(name).lower(): str(name) for name in known}
    closest = difflib.get_close_matches(str(written).lower(), names, n=1, cutoff=0.6)
    return f'did you mean "{names[closest[0]]}"?' if closest else ""


def likely_typo(written: str, known: Iterable[str], ratio: float = 0.8) -> str | None:
    """The known name that was surely meant: nearly the same text, or a single slip away from it."""
    names = sorted(known)
    closest = difflib.get_close_matches(written, names, n=1, cutoff=ratio)
    slips = [name for name in names if min(len(written), len(name)) >= 4 and _one_slip(written, name)]
    return next(iter([*closest, *slips]), None)


def _one_slip(written: str, name: str) -> bool:
    """One letter more, less or another, or two neighbours swapped."""
    short, long = sorted((written, name), key=len)
    if len(long) - len(short) == 1:
        return any(long[:place] + long[place + 1 :] == short for place in range(len(long)))
    differ = [place for place, (one, other) in enumerate(zip(short, long, strict=False)) if one != other]
    if len(long) != len(short) or len(differ) > 2:
        return False
    swapped = len(differ) == 2 and short[differ[0]] == long[differ[1]] and short[differ[1]] == long[differ[0]]
    return len(differ) == 1 or (swapped and differ[1] == differ[0] + 1)


def suggest(written: object, known: Iterable[object], what: str) -> str:
    """`did_you_mean`, and where nothing resembles it the list of what there is."""
    names = sorted(map(str, known))
    return did_you_mean(written, names) or (f"{what}: {', '.join(names)}" if names else "")


def indent_deeper(mapping: Mapping[Any, Any], key: object) -> str:
    """Help where `key` comes right after a key that has no value, or after others that do; else nothing."""
    empty = ""
    for name, value in mapping.items():
        if name == key:
            break
        if value is None:
            empty = str(name)
    return f'"{empty}" above it is empty: indent "{key}" deeper if it belongs there' if empty else ""


def render_json(diagnostics: Iterable[Diagnostic]) -> str:
    text = json.dumps([asdict(found) for found in diagnostics], ensure_ascii=False, indent=2)
    return text.encode("utf-8", "replace").decode("utf-8")  # a file's name may hold bytes that are no text


def render_text(diagnostics: Iterable[Diagnostic]) -> str:
    """Each problem with its source line and a caret under the exact span."""
    return "\n".join(_render_one(found) for found in diagnostics)


def _render_one(found: Diagnostic) -> str:
    headline = f"{found.severity}[{found.code}]: {_printable(found.message)}"
    lines = [headline if found.span is None else f"{_printable(_location(found.span))}: {headline}"]
    if found.span is not None and found.span.line > 0 and found.source:
        lines += _excerpt(found.span, found.source, found.label)
    if found.help:
        lines.append(f"help: {_printable(found.help)}")
    return "\n".join(lines)


def _location(span: Span) -> str:
    return f"{span.file}:{span.line}:{span.column}" if span.line > 0 else span.file


def _excerpt(span: Span, source: str, label: str) -> list[str]:
    """The source line and the carets below it, which count terminal cells, not characters."""
    start, end = span.column - 1, max(span.end_column - 1, span.column)
    source, start, end = _cut(source, start, end)
    cells = [_shown(character) for character in source]
    before = sum(map(_width, cells[:start]))
    carets = "^" * max(1, sum(map(_width, cells[start:end])))
    gutter = f"{span.line} | "
    under = f"{' ' * (len(gutter) - 2)}| {' ' * before}{carets} {_printable(label)}"
    return [(gutter + "".join(cells)).rstrip(), under.rstrip()]


def _cut(source: str, start: int, end: int) -> tuple[str, int, int]:
    """A line too long to show, reduced to the part around its span."""
    if len(source) <= _LONGEST_LINE:
        return source, start, end
    left = max(0, min(start - _LONGEST_LINE // 3, len(source) - _LONGEST_LINE))
    right = left + _LONGEST_LINE
    head, tail = ("..." if left else ""), ("..." if right < len(source) else "")
    shift = len(head) - left
    return head + source[left:right] + tail, start + shift, min(end, right) + shift


def _shown(character: str) -> str:
    """A character as a terminal may safely be given it."""
    if character == "\t":
        return " " * _TAB
    return "\ufffd" if unicodedata.category(character) in ("Cc", "Cs", "Zl", "Zp") else character


def _width(cell: str) -> int:
    if len(cell) > 1:
        return len(cell)
    if unicodedata.category(cell) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(cell) in "WF" else 1


def _printable(text: str) -> str:
    return "".join(" " if character in "\n\t" else _shown(character) for character in text)
