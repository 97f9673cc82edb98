"""What the codes of problems mean: `schemas/codes.yaml`, read once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType

import yaml

from healthwatch import resources


@dataclass(frozen=True, slots=True)
class Code:
    """`text` is Markdown: why it matters, and how to mend it."""

    name: str
    title: str
    text: str

    @property
    def page(self) -> str:
        return f"# {self.name}: {self.title}\n\n{self.text}"


@cache
def codes() -> Mapping[str, Code]:
    """Every code by name."""
    entries: Mapping[str, Mapping[str, str]] = yaml.safe_load(resources.read_text("schemas/codes.yaml"))
    return MappingProxyType({name: Code(name, entry["title"], entry["text"]) for name, entry in entries.items()})
