"""What a plain scalar means in YAML 1.1, what surprises in it, and where each of its characters stands."""

from __future__ import annotations

import re
from typing import Any, Literal, TypeAlias

import yaml

TAG = "tag:yaml.org,2002:"

Offset: TypeAlias = tuple[int, int]  # [start, end) in the text as written

_WORDS = {"yes": True, "true": True, "on": True, "no": False, "false": False, "off": False}
_ODD_NUMBER = re.compile(
    r"[-+]?(?:0[0-7_]+|0x[\da-fA-F_]+|0b[01_]+|[\d_]+(?::[0-5]?\d)+(?:\.[\d_]*)?|[\d.]*_[\d_.]*(?:[eE][-+]\d+)?)"
)
_BARE_EXPONENT = re.compile(r"([-+]?\d+)(?:\.(\d*))?[eE]([-+]?)(\d+)")
_ESCAPE_LENGTHS = {"x": 4, "u": 6, "U": 10}


def resolve(node: yaml.ScalarNode) -> tuple[Any, str]:
    """The value of a scalar, and what is odd about it (empty where nothing is)."""
    kind, text = node.tag.removeprefix(TAG), node.value
    match kind:
        case "null":
            return None, ""
        case "bool" if text.lower() in _WORDS:
            return _WORDS[text.lower()], ""
        case "int" | "float":
            return _number(node, kind)
        case "str" | "timestamp" | "value" | "merge":
            return text, ""
        case _:
            return text, f"the tag {_short_tag(node.tag)} has no meaning here"


def key_text(node: yaml.ScalarNode) -> tuple[str, str]:
    """A key as it was written, and what YAML would make of it instead (empty where it is text)."""
    kind = node.tag.removeprefix(TAG)
    if kind == "bool":
        return node.value, str(_WORDS.get(node.value.lower(), node.value)).lower()
    if kind in ("int", "float", "null"):
        return node.value, "null" if kind == "null" else "a number"
    return node.value, ""


def number_hint(text: str) -> str:
    """How to write what looks like a number but is text in YAML 1.1: `1e-3` as `1.0e-3`."""
    found = _BARE_EXPONENT.fullmatch(text.strip())
    if found is None:
        return ""
    whole, fraction, sign, exponent = found.groups()
    return f"{whole}.{fraction or '0'}e{sign or '+'}{exponent}"


def _number(node: yaml.ScalarNode, kind: Literal["int", "float"]) -> tuple[Any, str]:
    constructor = yaml.constructor.SafeConstructor()
    construct = constructor.construct_yaml_int if kind == "int" else constructor.construct_yaml_float
    try:
        value = construct(node)
    except (ValueError, IndexError, OverflowError):
        return node.value, f"can't read {node.value[:40]!r} as a number"
    if _ODD_NUMBER.fullmatch(node.value):
        return value, f"YAML reads {node.value} as {value!r}"
    return value, ""


def _short_tag(tag: str) -> str:
    return f"!!{tag.removeprefix(TAG)}" if tag.startswith(TAG) else tag


def offsets(written: str, value: str, style: str | None) -> list[Offset]:
    """For each character of `value` where it stands in `written`; empty where the two can't be aligned.

    Folding changes white space only, so the other characters keep their order: they are matched one by one.
    """
    position = _content_start(written, style)
    found: list[Offset] = []
    for character in value:
        step = _match_one(written, position, character, style)
        if step is None:
            return []
        offset, position = step
        found.append(offset)
    return found


def _content_start(written: str, style: str | None) -> int:
    lead = len(written) - len(written.lstrip())
    if style in ("'", '"'):
        return lead + 1
    if style in ("|", ">"):
        return written.find("\n", lead) + 1 or len(written)
    return lead


def _match_one(written: str, position: int, character: str, style: str | None) -> tuple[Offset, int] | None:
    if style == '"' and written[position : position + 1] == "\\":
        return _match_escape(written, position, character)
    if character.isspace():
        here = min(position, max(len(written) - 1, 0))
        moved = written[position : position + 1].isspace()
        return (here, here + 1), position + moved
    while written[position : position + 1].isspace():
        position += 1
    if style == '"' and written[position : position + 1] == "\\":
        return _match_escape(written, position, character)
    if written[position : position + 1] != character:
        return None
    length = 2 if style == "'" and character == "'" else 1
    return (position, position + length), position + length


def _match_escape(written: str, position: int, character: str) -> tuple[Offset, int] | None:
    if written[position + 1 : position + 2] in ("\n", "\r"):
        position += 2
        while written[position : position + 1].isspace():
            position += 1
        return _match_one(written, position, character, '"') if position < len(written) else None
    length = _ESCAPE_LENGTHS.get(written[position + 1 : position + 2], 2)
    return (position, position + length), position + length
