"""One thing in the language that has a name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from healthwatch.promql.parse import parse

Kind: TypeAlias = Literal["own", "function", "aggregation", "operator", "modifier"]

KINDS: Mapping[Kind, str] = {
    "own": "a function of healthwatch",
    "function": "a function of PromQL",
    "aggregation": "an aggregation of PromQL",
    "operator": "an operator of PromQL",
    "modifier": "a modifier of PromQL",
}
"""What a thing of each kind is called."""


@dataclass(frozen=True, slots=True)
class Meaning:
    """`usage` is how it is written, with the names of its arguments; `details` says the rest, under headings."""

    name: str
    kind: Kind
    usage: str
    sentence: str
    example: str
    details: Mapping[str, str] = field(default_factory=dict)

    @property
    def looks_ahead(self) -> bool:
        """Whether a rule may not have it (R13), but `query` may."""
        problems = parse(self.example, rule=True).problems
        return any(problem.code == "HW108" for problem in problems)


def entries(kind: Kind, table: str) -> Iterator[Meaning]:
    """Two lines each: `usage: sentence`, and an example, indented.

    The name is what stands before the bracket, or it is written: `name := usage: sentence`.
    """
    lines = table.strip().split("\n")
    for head, example in zip(lines[::2], lines[1::2], strict=True):
        written, _, sentence = head.partition(": ")
        name, _, usage = written.rpartition(" := ")
        yield Meaning(name or usage.partition("(")[0], kind, usage, sentence, example.strip())
