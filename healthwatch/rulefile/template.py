"""Annotation templates: the part of Go's template language that Prometheus users write in annotations.

`{{ $labels.name }}` and `{{ $value }}`, piped into or preceded by `humanize`, `humanizePercentage` or `printf "..."`.
Anything else is a problem at its place; a compiled template never raises.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from healthwatch.diagnostics import did_you_mean
from healthwatch.rulefile.goformat import go_float, go_verb, humanize, humanize_percentage

Labels: TypeAlias = Mapping[str, str] | Iterable[tuple[str, str]]
Piece: TypeAlias = Callable[[Mapping[str, str], float], str]

_NUMBER_FUNCTIONS: dict[str, Callable[[float], str]] = {
    "humanize": humanize,
    "humanizePercentage": humanize_percentage,
}
_VARIABLES = ("$labels", "$value")
_FUNCTIONS = (*_NUMBER_FUNCTIONS, "printf")
_ACTION = re.compile(r"\{\{(.*?)\}\}", re.DOTALL)
_LABEL = re.compile(r"\$labels\.([A-Za-z_][A-Za-z0-9_]*)")
_REFERENCE = r"\$labels\.[A-Za-z_][A-Za-z0-9_]*|\$value"
_BODY = re.compile(
    rf"""\s*(?:
        (?P<operand>{_REFERENCE}) (?:\s*\|\s*(?P<pipe>[A-Za-z]\w*)(?:\s+"(?P<pipe_format>(?:[^"\\]|\\.)*)")?)?
      | (?P<call>[A-Za-z]\w*)(?:\s+"(?P<call_format>(?:[^"\\]|\\.)*)")?\s+(?P<argument>{_REFERENCE})
    )\s*""",
    re.VERBOSE,
)
_VERB = re.compile(r"%(?P<flags>[-+0 ]*)(?P<width>\d{0,3})(?:\.(?P<precision>\d{1,2}))?(?P<verb>.)", re.DOTALL)

SYNTAX_HELP = (
    'known are {{ $labels.NAME }} and {{ $value }}, also with | humanize, | humanizePercentage or | printf "%.2f"'
)


@dataclass(frozen=True, slots=True)
class TemplateProblem:
    """What is wrong between `start` and `end` of the template's text."""

    message: str
    start: int
    end: int
    help: str = SYNTAX_HELP


@dataclass(frozen=True, slots=True, eq=False)
class Template:
    """An annotation, compiled. `str()` gives the text as written."""

    text: str
    pieces: tuple[str | Piece, ...]

    def render(self, labels: Labels, value: float) -> str:
        """The text for one series; a label that the series does not have is empty, as in Prometheus."""
        known = dict(labels)
        return "".join(piece if isinstance(piece, str) else piece(known, value) for piece in self.pieces)

    def __str__(self) -> str:
        return self.text


def compile_template(text: str) -> tuple[Template, tuple[TemplateProblem, ...]]:
    """The template and everything wrong with it; an action that can't be used renders as it is written."""
    pieces: list[str | Piece] = []
    problems: list[TemplateProblem] = []
    position = 0
    for action in _ACTION.finditer(text):
        pieces.append(text[position : action.start()])
        compiled = _compile_action(action)
        problems += [compiled] if isinstance(compiled, TemplateProblem) else []
        pieces.append(action[0] if isinstance(compiled, TemplateProblem) else compiled)
        position = action.end()
    pieces.append(text[position:])
    return Template(text, tuple(piece for piece in pieces if piece)), (*problems, *_unclosed(text, position))


def references(text: str) -> Iterator[tuple[str, int, int]]:
    """Every label that a template names, and where."""
    for action in _ACTION.finditer(text):
        for found in _LABEL.finditer(action[1]):
            yield found[1], action.start(1) + found.start(), action.start(1) + found.end()


def _unclosed(text: str, position: int) -> list[TemplateProblem]:
    start = text.find("{{", position)
    return [] if start < 0 else [TemplateProblem("this {{ is never closed", start, len(text))]


def _compile_action(action: re.Match[str]) -> Piece | TemplateProblem:
    start, end = action.span(1)
    body = _BODY.fullmatch(action[1])
    if body is None:
        return _misread(action)
    function = body["pipe"] or body["call"]
    verb_format = body["pipe_format"] if body["pipe"] else body["call_format"]
    operand = body["operand"] or body["argument"]
    if function is None:
        return _value if operand == "$value" else _label(operand)
    if function not in _FUNCTIONS:
        place = body.span("pipe" if body["pipe"] else "call")
        message = f"no template function is called {function!r}"
        return TemplateProblem(message, start + place[0], start + place[1], _near(function, _FUNCTIONS))
    if function == "printf":
        return _printf(verb_format, operand, (start, end))
    if verb_format is not None:
        return TemplateProblem(f"{function} takes no format", start, end)
    if operand != "$value":
        return TemplateProblem(f"{function} takes a number, a label is text", start, end)
    number_function = _NUMBER_FUNCTIONS[function]
    return lambda _labels, value: number_function(value)


def _near(written: str, known: Sequence[str]) -> str:
    return SYNTAX_HELP if written in known else did_you_mean(written, known) or SYNTAX_HELP


def _misread(action: re.Match[str]) -> TemplateProblem:
    """Point at the first variable that does not exist, else at the whole action."""
    start = action.start(1)
    for found in re.finditer(r"\$\w*(?:\.\w*)*", action[1]):
        if not re.fullmatch(_REFERENCE, found[0]):
            mend = _near(found[0].partition(".")[0], _VARIABLES)
            message = f"{found[0]} is not known in a template"
            return TemplateProblem(message, start + found.start(), start + found.end(), mend)
    shown = action[1].strip()
    if not shown:
        return TemplateProblem("this template action is empty", *action.span())
    lead = len(action[1]) - len(action[1].lstrip())
    return TemplateProblem(f"can't read {shown!r} in a template", start + lead, start + lead + len(shown))


def _value(_labels: Mapping[str, str], value: float) -> str:
    return go_float(value)


def _label(operand: str) -> Piece:
    name = operand.removeprefix("$labels.")
    return lambda labels, _value: labels.get(name, "")


def _printf(written: str | None, operand: str, place: tuple[int, int]) -> Piece | TemplateProblem:
    if written is None:
        return TemplateProblem('printf needs a format, for example printf "%.2f" $value', *place)
    pattern = re.sub(r"\\(.)", lambda escape: {"n": "\n", "t": "\t"}.get(escape[1], escape[1]), written)
    found = _VERB.search(pattern.replace("%%", "\0\0"))
    rest = "" if found is None else pattern[: found.start()] + pattern[found.end() :]
    if found is None or "%" in rest.replace("%%", ""):
        return TemplateProblem("the format must hold exactly one verb, such as %.2f", *place)
    if found["verb"] not in ("efgEGv" if operand == "$value" else "sv"):
        kind = "a number" if operand == "$value" else "a label"
        return TemplateProblem(f"%{found['verb']} does not print {kind}", *place)
    before = pattern[: found.start()].replace("%%", "%")
    after = pattern[found.end() :].replace("%%", "%")
    verb = (found["flags"], found["width"], found["precision"], found["verb"])
    if operand == "$value":
        return lambda _labels, value: before + go_verb(*verb, value) + after
    label = _label(operand)
    return lambda labels, value: before + go_verb(*verb, label(labels, value)) + after
