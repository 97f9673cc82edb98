"""What people ask of a running training, as files in `<output>/control/`: silences."""

from __future__ import annotations

import json
import os
import secrets
import time
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from healthwatch.alerting.silence import Silence, parse_matcher


def folder_of(output: Path) -> Path:
    return output / "control" / "silences"


def new_id() -> str:
    return secrets.token_hex(4)


def write(output: Path, silence: Silence) -> Path:
    """So that whoever reads finds the old file or the new one, never half of it."""
    folder = folder_of(output)
    folder.mkdir(parents=True, exist_ok=True)
    fields = {
        "matchers": [str(matcher) for matcher in silence.matchers],
        "starts": silence.starts,
        "ends": silence.ends,
        "until_step": silence.until_step,
        "comment": silence.comment,
        "author": silence.author,
    }
    path = folder / f"{silence.id}.json"
    half = path.with_suffix(f".{os.getpid()}.tmp")
    half.write_text(json.dumps(fields, ensure_ascii=False, indent=2) + "\n", encoding="utf-8")
    half.replace(path)
    return path


def read(path: Path) -> Silence:
    """
    Raises:
        ValueError: it is no silence.
        OSError: it can't be read.
    """
    fields: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    try:
        return Silence(
            id=path.stem,
            matchers=tuple(parse_matcher(text) for text in fields["matchers"]),
            starts=float(fields["starts"]),
            ends=None if fields.get("ends") is None else float(fields["ends"]),
            until_step=None if fields.get("until_step") is None else int(fields["until_step"]),
            comment=str(fields.get("comment", "")),
            author=str(fields.get("author", "")),
        )
    except (KeyError, TypeError) as error:
        raise ValueError(f"{path.name} is no silence: {error}") from None


def expire(output: Path, silence: Silence) -> Silence:
    """End a silence now; its file stays, for the record."""
    ended = replace(silence, ends=min(time.time(), silence.ends or time.time()))
    write(output, ended)
    return ended


def all_of(output: Path) -> list[Silence]:
    """Every silence there is a file of, in force or not.

    Raises:
        ValueError: a file is no silence.
    """
    return [read(path) for path in sorted(folder_of(output).glob("*.json"))]


@dataclass(slots=True)
class Silences:
    """The silences of an output folder as they change; a file that can't be read is told once and left out."""

    output: Path
    problems: list[str] = field(default_factory=list)
    _known: dict[Path, tuple[tuple[int, int], Silence | None]] = field(default_factory=dict)

    def look(self) -> tuple[Silence, ...]:
        known = {}
        for path in sorted(folder_of(self.output).glob("*.json")):
            try:
                found = path.stat()
            except OSError:
                continue
            stamp = found.st_mtime_ns, found.st_size
            known[path] = (
                self._known[path] if self._known.get(path, ((), None))[0] == stamp else (stamp, self._read(path))
            )
        self._known = known
        return tuple(silence for _, silence in known.values() if silence is not None)

    def _read(self, path: Path) -> Silence | None:
        try:
            return read(path)
        except (ValueError, OSError) as error:
            self.problems.append(f"{path}: {error}")
            return None
