"""Keys that are written for those of a rule: from other tools, or misspelt."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from healthwatch.diagnostics import did_you_mean

_OTHER_WORDS: Mapping[str, Mapping[str, str]] = {
    # by form of the schema: the key that was written, and the one it stands for
    "rule": {
        "name": "alert",
        "expression": "expr",
        "query": "expr",
        "condition": "when",
        "conditions": "when",
        "severity": "labels",
        "summary": "annotations",
        "action": "annotations",
        "description": "annotations",
    },
    "override": {"severity": "labels"},
}
_BELOW = ("labels", "annotations")  # which hold what was written as a key beside them


def meant(key: str, value: Any, form: str) -> str:
    """Help for a key that is another word for a known one, or nothing; the numbers of an override are parameters."""
    known = _OTHER_WORDS.get(form, {}).get(key.lower())
    if known is None:
        number = form == "override" and isinstance(value, (int, float)) and not isinstance(value, bool)
        return f"write params: {{{key}: {value}}}" if number else ""
    return f"write {known}: {{{key.lower()}: ...}}" if known in _BELOW else f'did you mean "{known}"?'


def stands_for(key: str, known: str, form: str) -> bool:
    """Whether an unknown key was written for a known one, so that the known one is not missing."""
    other = _OTHER_WORDS.get(form, {}).get(key.lower())
    return bool(did_you_mean(key, (known,))) if other is None else other == known
