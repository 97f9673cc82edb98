"""Finds the files that ship with healthwatch, in a wheel and in an editable install."""

from __future__ import annotations

from pathlib import Path

_PACKAGE = Path(__file__).resolve().parent
_INSTALLED = _PACKAGE / "_data"


def path(name: str) -> Path:
    """Where a shipped file lies: `schemas/rules.schema.json`, `rules/loss.yaml`."""
    root = _INSTALLED if _INSTALLED.is_dir() else _PACKAGE.parent
    return root.joinpath(*name.split("/"))


def read_text(name: str) -> str:
    return path(name).read_text(encoding="utf-8")


def packs() -> tuple[str, ...]:
    """The names of the shipped rule packs: `builtin:<pack>`."""
    files = path("rules").glob("*.yaml")
    return tuple(sorted(file.stem for file in files if not file.stem.endswith(".test")))
