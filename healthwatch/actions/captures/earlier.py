"""What earlier attempts of a run have left in its folder of captures."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from healthwatch.actions.captures.afterwards import INTERRUPTED, follow, interrupt
from healthwatch.actions.captures.shelf import Stored, shelf, stored

Tell = Callable[[str, str], Any]


def earlier(folder: Path, tell: Tell) -> list[Stored]:
    """All of them; those that were not recorded to their end have failed, others may still be analysed."""
    return [_ended(one, tell) for one in shelf(folder)]


def _ended(one: Stored, tell: Tell) -> Stored:
    if one.over or one.state == "finishing":
        return one
    try:
        return interrupt(one)
    except OSError as error:
        tell("capture manifest", f"{one.folder} can't be written: {error.strerror}")
        return Stored(one.folder, {**one.manifest, "state": "failed", "problem": INTERRUPTED})


def follow_all(folders: Iterable[Path], pattern: str, tell: Tell) -> bool:
    """Conclude those that are still analysed, one after the other; whether a healthy reference is among them."""
    found = []
    for folder in folders:
        try:
            follow(folder, pattern)
        except Exception as error:
            tell("capture analysis", f"the capture in {folder} could not be concluded: {error}")
        found.append(stored(folder))
    return any(one.healthy and one.over for one in found if one is not None)
