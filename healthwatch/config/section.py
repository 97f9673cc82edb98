"""A part of the config file on its way to its dataclass: values, and problems at their place."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from healthwatch.diagnostics import Diagnostic
from healthwatch.stream.ticks import Duration, parse_duration
from healthwatch.yamlfile import Document, KeyPath

_UNITS = {"": 1, "K": 1000, "M": 1000**2, "G": 1000**3, "T": 1000**4}
_BINARY = {"Ki": 1 << 10, "Mi": 1 << 20, "Gi": 1 << 30, "Ti": 1 << 40}


@dataclass(slots=True)
class Section:
    """A mapping of the file. What the schema refuses is left out, so each value read has its right type."""

    document: Document
    path: KeyPath
    data: Mapping[str, Any]
    refused: frozenset[KeyPath]
    diagnostics: list[Diagnostic] = field(default_factory=list)

    def below(self, key: str | int) -> Section:
        """The section under a key; empty where there is none."""
        value = self.get(key)
        path = (*self.path, key)
        return Section(self.document, path, value if isinstance(value, dict) else {}, self.refused, self.diagnostics)

    def get(self, key: str | int, default: Any = None) -> Any:
        """The value, the default where it is absent, null or refused."""
        value = self.data.get(str(key)) if isinstance(self.data, dict) else None
        return default if value is None or (*self.path, key) in self.refused else value

    def items(self, key: str, default: tuple[Any, ...]) -> tuple[Any, ...]:
        """As `get` for a list, without the items that are refused."""
        found = enumerate(self.get(key, default))
        return tuple(each for position, each in found if (*self.path, key, position) not in self.refused)

    def steps(self, key: str, default: int) -> Duration:
        return parse_duration(self.get(key, default)) or Duration(steps=default)

    def report(self, code: str, message: str, *path: str | int, **fields: Any) -> None:
        at_key = fields.pop("at_key", False)
        place = self.document.at_key if at_key else self.document.at_value
        self.diagnostics.append(place(code, message, (*self.path, *path), **fields))


def size(value: int | str) -> int:
    """`5GiB`, `500 MB` or a number of bytes, in bytes."""
    if isinstance(value, int):
        return value
    number = value.rstrip("KMGTiB ")
    unit = value[len(number) :].strip().removesuffix("B")
    return int(float(number) * (_BINARY.get(unit) or _UNITS[unit]))


def share(value: float | str) -> float:
    """`2%` is 0.02; a number is a share already."""
    return float(value) if isinstance(value, (int, float)) else float(value.rstrip("% ")) / 100
