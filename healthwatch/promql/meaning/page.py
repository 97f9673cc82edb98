"""What the language means, for a terminal and as the page `docs/functions.md`."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping, Sequence

from healthwatch.promql.ast import ValueType
from healthwatch.promql.meaning import KINDS, MEANINGS, Kind, Meaning
from healthwatch.promql.signatures import FUNCTIONS

_WIDTH = 110

_TYPES: Mapping[ValueType, str] = {
    "scalar": "a number",
    "string": "a text",
    "vector": "a vector",
    "matrix": "a range of samples",
}
_GROUPED = "All elements are one group; `by (label, ...)` or `without (label, ...)` behind the name makes several."
_LOOKS_AHEAD = "Not in a rule, which must not look ahead; in `healthwatch query`."

_HEADINGS: Mapping[Kind, str] = {
    "own": "Functions of healthwatch",
    "function": "Functions of PromQL",
    "aggregation": "Aggregations",
    "operator": "Operators",
    "modifier": "Modifiers and ranges",
}


def brief(meaning: Meaning) -> str:
    """All there is to say of one, for a terminal."""
    details = dict(_details(meaning))
    width = max(map(len, details))
    lines = [f"{meaning.name}: {KINDS[meaning.kind]}", "", f"  {meaning.usage}", "", meaning.sentence, ""]
    for name, text in details.items():
        lines += textwrap.wrap(
            text,
            _WIDTH,
            initial_indent=f"  {name.ljust(width)}  ",
            subsequent_indent=" " * (width + 4),
            break_long_words=False,
            break_on_hyphens=False,
        )
    return "\n".join(lines)


def listed() -> str:
    """Everything with its sentence, for a terminal."""
    width = max(map(len, MEANINGS))
    parts = [
        "\n".join([f"{heading}:", *(f"  {each.name.ljust(width)}  {each.sentence}" for each in _of(kind))])
        for kind, heading in _HEADINGS.items()
    ]
    return "\n\n".join(parts)


def _of(kind: Kind) -> Sequence[Meaning]:
    return [each for each in MEANINGS.values() if each.kind == kind]


def _details(meaning: Meaning) -> Iterator[tuple[str, str]]:
    """By their headings, in the order in which they are read."""
    yield from meaning.details.items()
    if (signature := FUNCTIONS.get(meaning.name)) is not None:
        takes = ", ".join(_TYPES[each] for each in signature.args) or "nothing"
        yield "takes", f"{takes.capitalize()}; gives {_TYPES[signature.result]}."
    if meaning.kind == "aggregation":
        yield "groups", _GROUPED
    if meaning.looks_ahead:
        yield "rules", _LOOKS_AHEAD
    yield "example", meaning.example


def page() -> str:
    """The page of all of them as Markdown."""
    parts = [_INTRODUCTION]
    for kind, heading in _HEADINGS.items():
        text = "\n\n".join(map(_section, _of(kind))) if kind == "own" else _table(_of(kind))
        parts += [f"## {heading}", *([_NOTES[kind]] if kind in _NOTES else []), text]
    return "\n\n".join(parts) + "\n"


def _section(meaning: Meaning) -> str:
    rows = [
        f"- **{name}:** {f'`{text}`' if name == 'formula' else text}"
        for name, text in _details(meaning)
        if name != "example"
    ]
    example = f"```promql\n{meaning.example}\n```"
    return "\n\n".join([f"### {meaning.name}", f"`{meaning.usage}`", meaning.sentence, "\n".join(rows), example])


def _table(meanings: Sequence[Meaning]) -> str:
    rows = ["| written | meaning | example |", "|---|---|---|"]
    for each in meanings:
        ahead = f" {_LOOKS_AHEAD}" if each.looks_ahead else ""
        rows.append(f"| `{each.usage}` | {each.sentence}{ahead} | `{each.example}` |")
    return "\n".join(rows)


_INTRODUCTION = """# Functions and operators

All of the rule language: what rules, conditions and `healthwatch query` can call. It is PromQL over float samples, on
the axis of training steps, with a few functions more. `healthwatch explain NAME` says the same in a terminal, and
`healthwatch explain functions` lists all of them. [rules.md](rules.md) has the keys of a rule and how time is written.

A *vector* has one value (an element) a series, a *range* such as `loss[50]` the samples of its last 50 steps. An
argument with `=` may be left out; what is shown is its default."""

_NOTES: Mapping[Kind, str] = {
    "own": """They compare a sample with the recent past of its own series, or do what PromQL lacks for it. What has no
value is no data: neither a breach nor clear.""",
    "function": "As in Prometheus, except that they count steps where it counts seconds.",
    "aggregation": _GROUPED,
    "operator": """In the order in which they bind: `^`, then `* / % atan2`, `+ -`, comparisons, `and unless`, `or`.
Where one side is a number, the elements are those of the other side: `2 < loss` keeps what `loss > 2` keeps.""",
    "modifier": "What aggregations, operators and selectors take beside them.",
}
