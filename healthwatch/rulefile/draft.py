"""A rule as it is read, before it is known whether it can be used."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from healthwatch.diagnostics import Diagnostic, Severity
from healthwatch.promql.ast import Expr
from healthwatch.promql.parse import Expression
from healthwatch.rulefile.keys import stands_for
from healthwatch.yamlfile import Document, KeyPath


def name_of(rule: Mapping[str, Any]) -> str:
    """Its alert; empty where it has none, which the schema tells."""
    name = rule.get("alert")
    return name if isinstance(name, str) else ""


@dataclass(slots=True)
class Draft:
    """What stands in the file, the override of the config, and what is wrong."""

    document: Document
    path: KeyPath  # of the rule
    written: Mapping[str, Any]
    data: Mapping[str, Any]  # of what is written the keys that the schema allows
    group: Mapping[str, Any]
    override: Mapping[str, Any]
    sound: bool  # whether the schema allows all of it
    diagnostics: list[Diagnostic] = field(default_factory=list)
    expressions: dict[str, Expression] = field(default_factory=dict)  # those that can be parsed
    partial: dict[str, Expr] = field(default_factory=dict)  # those in which only a parameter is not defined
    inhibited_by: tuple[str, ...] = ()  # those that are loaded
    guessed: bool = False  # whether a number stands for a parameter that can't be used

    @property
    def name(self) -> str:
        return name_of(self.data)

    @property
    def label(self) -> str:
        return f'rule "{self.name}"' if self.name else "a rule without a name"

    def told(self, key: str) -> bool:
        """Whether a key that is told to be unknown stands for this one."""
        unknown = [each for each in self.written if each not in self.data]
        return any(stands_for(each, key, "rule") for each in unknown)

    @property
    def enabled(self) -> bool:
        return self.override.get("enabled", True) is not False

    def report(self, code: str, message: str, *path: str | int, **fields: Any) -> None:
        at_key = fields.pop("at_key", False)
        place = self.document.at_key if at_key else self.document.at_value
        self.diagnostics.append(place(code, message, (*self.path, *path), label=self.label, **fields))

    def report_text(
        self, code: str, message: str, path: KeyPath, place: tuple[int, int], mend: str, severity: Severity = "error"
    ) -> None:
        """A problem between two characters of a text value."""
        span = self.document.text_span((*self.path, *path), *place)
        self.diagnostics.append(
            self.document.at_span(code, message, span, severity=severity, label=self.label, help=mend)
        )
