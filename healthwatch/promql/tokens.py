"""The lexer of PromQL: tokens with exact spans, literals decoded as Go decodes them, `$params` put in as values."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from math import nan
from typing import Literal, TypeAlias

from healthwatch.diagnostics import suggest
from healthwatch.promql import hints
from healthwatch.promql.ast import Problem, Span
from healthwatch.stream.ticks import TICKS_PER_STEP

UNDEFINED = "HW107"

Kind: TypeAlias = Literal["name", "number", "duration", "string", "punctuation", "bad", "end"]
Params: TypeAlias = Mapping[str, float | int | str]


@dataclass(frozen=True, slots=True)
class Token:
    """`value`: a number (a duration counts steps), or a decoded string in which stray bytes are surrogates."""

    kind: Kind
    text: str
    span: Span
    value: float | str | None = None

    @property
    def word(self) -> str:
        """What keywords are compared with: they have no case."""
        return self.text.lower()

    @property
    def number(self) -> float:
        return self.value if isinstance(self.value, float) else 0.0

    @property
    def string(self) -> str:
        return self.value if isinstance(self.value, str) else ""


@dataclass(frozen=True, slots=True)
class Lexed:
    """Every token in source order, the last of kind `end`. What is no token is `bad` and has a problem.

    An undefined `$param` has a problem too, and stands for a number so that the rest can be read.
    """

    tokens: tuple[Token, ...]
    problems: tuple[Problem, ...]


_PATTERNS = {
    "blank": r"[ \t\r\n]+|\#[^\r\n]*",
    "param": r"\$[A-Za-z_][A-Za-z0-9_]*",
    "number": r"(?:[0-9]|\.[0-9])(?:[eE][+-](?=[0-9])|[A-Za-z0-9_.])*",
    "string": r'"(?:[^"\\\n]|\\.)*"' + r"|'(?:[^'\\\n]|\\.)*'" + r"|`[^`]*`",
    "open_string": r"""["'][^\n]*|`[\s\S]*""",
    "name": r"[A-Za-z_][A-Za-z0-9_]*",
    "punctuation": r"==|!=|=~|!~|<=|>=|[-+*/%^<>=(){}\[\],@:]",
    "bad": r"&+|\|+|[\s\S]",
}
_INSIDE = re.compile("|".join(f"(?P<{kind}>{pattern})" for kind, pattern in _PATTERNS.items()))
# Outside braces and brackets a colon belongs to a name, as recording rules have it.
_OUTSIDE = re.compile(_INSIDE.pattern.replace("(?P<name>[A-Za-z_][A-Za-z0-9_]*", "(?P<name>[A-Za-z_:][A-Za-z0-9_:]*"))

_UNQUOTED = re.compile(r"[^\s\"',}]+")

_HEX = re.compile(r"0[xX](?:_?[0-9a-fA-F])+")
_OCTAL = re.compile(r"0(?:_?[0-7])+")
_INTEGER = re.compile(r"(?:[1-9](?:_?[0-9])*|0)")
_FLOAT = re.compile(r"(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_UNITS = {"y": 31_536_000_000, "w": 604_800_000, "d": 86_400_000, "h": 3_600_000, "m": 60_000, "s": 1000, "ms": 1}
_DURATION = re.compile("".join(rf"(?:([0-9]+){unit}(?![a-z]))?" for unit in _UNITS))

_ESCAPE = re.compile(r"\\(x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|[0-7]{3}|.)", re.DOTALL)
_SIMPLE_ESCAPES = {"a": 7, "b": 8, "f": 12, "n": 10, "r": 13, "t": 9, "v": 11, "\\": 92}


def tokenize(text: str, params: Params | None = None) -> Lexed:
    """Split an expression; a `$param` becomes a number or string token that stands where it was written."""
    lexer = _Lexer(text, params or {})
    position = 0
    while position < len(text):
        position = lexer.advance(position)
    end = lexer.tokens[-1].span[1] if lexer.tokens else len(text)
    lexer.tokens.append(Token("end", "", (end, end)))
    return Lexed(tuple(lexer.tokens), tuple(lexer.problems))


def ticks(steps: float) -> int:
    """A number of steps in ticks."""
    return round(steps * TICKS_PER_STEP)


def parse_number(text: str) -> float | None:
    """A number as Prometheus reads it: also hexadecimal, octal (a leading 0), an integer with underscores."""
    if _HEX.fullmatch(text):
        return float(int(text, 16))
    if _OCTAL.fullmatch(text):
        return float(int(text, 8)) if len(text) < 400 else None
    if _INTEGER.fullmatch(text) or _FLOAT.fullmatch(text):
        return float(text)
    return None


def parse_steps(text: str) -> float | None:
    """A Prometheus duration (`1h30m`) in steps, one a second."""
    found = _DURATION.fullmatch(text)
    if not found or not text:
        return None
    milliseconds = sum(int(n) * unit for n, unit in zip(found.groups(), _UNITS.values(), strict=True) if n)
    return milliseconds / 1000


def unquote(literal: str) -> str | None:
    """The value of a string literal, None where it holds an escape that Go does not know."""
    quote, body = literal[0], literal[1:-1]
    if quote == "`" or "\\" not in body:
        return body
    pieces: list[bytes] = []
    position = 0
    while position < len(body):
        if body[position] != "\\":
            pieces.append(body[position].encode("utf-8", "surrogatepass"))
            position += 1
            continue
        found = _ESCAPE.match(body, position)
        piece = _unescape(found[1], quote) if found else None
        if found is None or piece is None:
            return None
        pieces.append(piece)
        position = found.end()
    return b"".join(pieces).decode("utf-8", "surrogateescape")


def _unescape(escape: str, quote: str) -> bytes | None:
    if escape == quote:
        return quote.encode()
    if escape in _SIMPLE_ESCAPES:
        return bytes([_SIMPLE_ESCAPES[escape]])
    if len(escape) == 1:
        return None
    code = int(escape, 8) if escape.isdigit() else int(escape[1:], 16)
    if escape[0] not in "uU":
        return bytes([code]) if code < 256 else None
    if code > 0x10FFFF:
        return None
    return b"\xef\xbf\xbd" if 0xD800 <= code < 0xE000 else chr(code).encode()


class _Lexer:
    def __init__(self, text: str, params: Params) -> None:
        self.text = text
        self.params = params
        self.tokens: list[Token] = []
        self.problems: list[Problem] = []
        self.open = ""  # the brace or bracket that is open, one at most

    def advance(self, position: int) -> int:
        """Read what starts at `position`; where it ends."""
        found = (_INSIDE if self.open else _OUTSIDE).match(self.text, position)
        assert found is not None  # the last alternative takes any character
        if found.lastgroup == "bad" and self.open == "{":  # a value without quotes is told once
            found = _UNQUOTED.match(self.text, position) or found
        kind, text = found.lastgroup or "bad", found[0]
        if kind != "blank":
            self.tokens.append(self._token(kind, text, found.span()))
        return found.end()

    def _token(self, kind: str, text: str, span: Span) -> Token:
        if kind == "number":
            return self._number(text, span)
        if kind == "string":
            return self._string(text, span)
        if kind == "param":
            return self._param(text, span)
        if kind == "open_string":
            return self._bad(text, span, "this string is never closed", f"it ends with another {text[0]}")
        if kind == "bad":
            help_ = hints.of_bad(text, self.tokens, self.text[span[0] : span[0] + 200], matchers=self.open == "{")
            return self._bad(text, span, f"{text!r} means nothing in PromQL", help_)
        if kind == "name":
            value = float(text) if text.lower() in ("inf", "nan") and self.open != "{" else None
            return Token("name" if value is None else "number", text, span, value)
        self._track(text)
        return Token("punctuation", text, span)

    def _track(self, text: str) -> None:
        if text in "{[":
            self.open = self.open or text
        elif text == {"{": "}", "[": "]"}.get(self.open):
            self.open = ""

    def _number(self, text: str, span: Span) -> Token:
        value = parse_number(text)
        if value is not None:
            return Token("number", text, span, value)
        steps = parse_steps(text)
        if steps is not None:
            return Token("duration", text, span, steps)
        return self._bad(text, span, f"{text!r} is neither a number nor a duration", hints.of_number(text))

    def _string(self, text: str, span: Span) -> Token:
        value = unquote(text)
        if value is None:
            meant = hints.of_escape(text, self.tokens)
            help_ = r"write \\ for a backslash, or put the string in backticks"
            help_ = f"write {meant}" if unquote(meant) is not None else help_
            return self._bad(text, span, "this string has an escape that does not exist", help_)
        return Token("string", text, span, value)

    def _param(self, text: str, span: Span) -> Token:
        name = text[1:]
        value = self.params.get(name)
        if value is None:
            help_ = suggest(name, self.params, "params") or "there are no params"
            self.problems.append(Problem(UNDEFINED, f"the parameter {text} is not defined", span, help_))
            return Token("number", text, span, nan)
        if isinstance(value, str):
            return Token("string", text, span, value)
        return Token("number", text, span, float(value))

    def _bad(self, text: str, span: Span, message: str, help_: str = "") -> Token:
        self.problems.append(Problem("HW102", message, span, help_))
        return Token("bad", text, span)
