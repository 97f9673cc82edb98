"""Fitting a message to a service: its format, its length, and cuts between characters as people see them."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable

MARK = "\n… (cut here, {} more characters)"

_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")
_CODE = re.compile(r"(?P<fence>`+)(?P<inside>.+?)(?<!`)(?P=fence)(?!`)", re.DOTALL)
_STRONG = re.compile(r"\*\*(?P<inside>[^*\n]+)\*\*")
_ZERO_WIDTH_JOINER = "\u200d"
_LEAST_LINE_SHARE = 0.6  # a cut goes back to the end of a line if this much of the text is kept


def length(text: str) -> int:
    """UTF-16 units, the strictest of the counts that services use: never less than the number of characters."""
    return len(text) + sum(character > "\uffff" for character in text)


def clean(text: str) -> str:
    """The text without control characters and lone surrogates, which no service can carry."""
    return _CONTROL.sub("", text.replace("\r\n", "\n")).encode("utf-8", "replace").decode("utf-8")


def plain(markdown: str) -> str:
    """Our own Markdown without its marks, for services that show text as it is."""
    return _outside_code(markdown, lambda text: _STRONG.sub(r"\g<inside>", text), keep_fences=False)


def escape_html(markdown: str) -> str:
    """Markdown in which no name can turn into a tag: code spans are escaped by the converter itself."""
    return _outside_code(markdown, lambda text: text.replace("&", "&amp;").replace("<", "&lt;"), keep_fences=True)


def _outside_code(markdown: str, change: Callable[[str], str], *, keep_fences: bool) -> str:
    parts: list[str] = []
    end = 0
    for span in _CODE.finditer(markdown):
        parts += [change(markdown[end : span.start()]), span[0] if keep_fences else span["inside"].strip()]
        end = span.end()
    return "".join([*parts, change(markdown[end:])])


def cut(text: str, limit: int) -> str:
    """At most `limit` UTF-16 units of the text; a cut is marked where the mark itself has room."""
    if length(text) <= limit:
        return text
    room = limit - length(MARK.format(len(text)))
    if room <= 0:
        return text[: _border(text, _prefix(text, max(limit, 0)))]
    end = _border(text, _prefix(text, room))
    line_end = text.rfind("\n", int(end * _LEAST_LINE_SHARE), end)
    head = text[: line_end if line_end > 0 else end].rstrip()
    return head + MARK.format(len(text) - len(head))


def fit(markdown: str, budget: int, convert: Callable[[str], str], size: Callable[[str], int] = length) -> str:
    """The longest marked head of the Markdown whose converted form is no larger than the budget."""
    converted, keep = convert(markdown), length(markdown)
    while (found := size(converted)) > budget and keep > 0:
        keep = min(keep - 1, keep * max(budget, 0) // found)
        converted = convert(cut(markdown, keep))
    return converted


def _prefix(text: str, units: int) -> int:
    """How many characters fit into so many UTF-16 units."""
    end = min(len(text), units)
    while (excess := length(text[:end]) - units) > 0:
        end -= (excess + 1) // 2
    return end


def _border(text: str, end: int) -> int:
    """The last border between characters, as people see them, at or before `end`."""
    while 0 < end < len(text) and _belong_together(text[end - 1], text[end]):
        end -= 1
    return end


def _belong_together(before: str, after: str) -> bool:
    return (
        _ZERO_WIDTH_JOINER in (before, after)
        or unicodedata.category(after) in ("Mn", "Me", "Mc")
        or "\U0001f3fb" <= after <= "\U0001f3ff"  # skin tones
        or "\U000e0020" <= after <= "\U000e007f"  # tags, of regional flags
        or (_is_regional(before) and _is_regional(after))
    )


def _is_regional(character: str) -> bool:
    return "\U0001f1e6" <= character <= "\U0001f1ff"
