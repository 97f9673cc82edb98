"""`${NAME}` and `${file:PATH}` in receiver URLs. A problem names the variable or file, never what it holds."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from healthwatch.config.model import Secret
from healthwatch.diagnostics import did_you_mean

_REFERENCE = re.compile(r"\$\{(?P<inside>[^}]*)\}?")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")

UNKNOWN = Secret("")


@dataclass(frozen=True, slots=True)
class SecretProblem:
    """What is wrong between `start` and `end` of the text that refers to the secret."""

    message: str
    start: int
    end: int
    help: str = ""


def resolve(text: str, environment: Mapping[str, str], folder: Path) -> tuple[Secret, list[SecretProblem]]:
    """The text with its references filled in; relative files lie beside the config."""
    problems: list[SecretProblem] = []
    parts: list[str] = []
    position = 0
    for reference in _REFERENCE.finditer(text):
        value, message, mend = _look_up(reference, environment, folder)
        if message:
            problems.append(SecretProblem(message, *reference.span(), mend))
        parts += [text[position : reference.start()], value]
        position = reference.end()
    parts.append(text[position:])
    return (UNKNOWN if problems else Secret("".join(parts))), problems


def _look_up(reference: re.Match[str], environment: Mapping[str, str], folder: Path) -> tuple[str, str, str]:
    """The value, or what is wrong and how to mend it."""
    inside = reference["inside"]
    if not reference[0].endswith("}"):
        return "", "this ${ is never closed", "write ${NAME}"
    if inside.startswith("file:"):
        return _read(inside.removeprefix("file:"), folder)
    if not _NAME.fullmatch(inside):
        return "", f"${{{inside}}} names neither a variable nor a file", "write ${NAME} or ${file:PATH}"
    if inside not in environment:
        return "", f"the environment variable {inside} is not set", did_you_mean(inside, environment)
    value = environment[inside].strip()
    return value, "" if value else f"the environment variable {inside} is empty", ""


def _read(name: str, folder: Path) -> tuple[str, str, str]:
    try:
        value = (folder / name).read_text(encoding="utf-8").strip()
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "it is not UTF-8 text"
        return "", f"can't read the file {name}: {reason}", ""
    return value, "" if value else f"the file {name} is empty", ""
