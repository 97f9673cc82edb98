"""What is wrong with something a user wrote, where it stands, and how it is shown."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class Span:
    """A place on one line of a file; lines and columns count from 1, `end_column` is exclusive."""

    file: str
    line: int
    column: int
    end_column: int


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One problem. `label` stands behind the carets, `help` in a line of its own."""

    code: str
    severity: Literal["error", "warning", "info"]
    message: str
    span: Span | None = None
    label: str = ""
    help: str = ""


class Invalid(Exception):  # noqa: N818 - it is a state of the input, and the text of every problem in it
    """The configuration can't be used; raised before step 1 with every problem found."""

    def __init__(self, diagnostics: Sequence[Diagnostic]) -> None:
        self.diagnostics = tuple(diagnostics)
        super().__init__("\n" + render_text(self.diagnostics))


def errors(diagnostics: Iterable[Diagnostic]) -> list[Diagnostic]:
    return [found for found in diagnostics if found.severity == "error"]


def render_json(diagnostics: Iterable[Diagnostic]) -> str:
    return json.dumps([asdict(found) for found in diagnostics], ensure_ascii=False, indent=2)


def render_text(diagnostics: Iterable[Diagnostic]) -> str:
    """Each problem with its source line and a caret under the exact span."""
    return "\n".join(_render_one(found) for found in diagnostics)


def _render_one(found: Diagnostic) -> str:
    raise NotImplementedError
