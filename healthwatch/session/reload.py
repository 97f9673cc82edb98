"""Rule files and receivers that change while the training runs."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any, TypeAlias

from healthwatch.config import Checked, Config, load_all, load_config
from healthwatch.diagnostics import Diagnostic, errors, in_order, render_text
from healthwatch.recording import describe
from healthwatch.rulefile import Rule
from healthwatch.rulefile.load import BUILTIN, files_of
from healthwatch.session.guard import Guard
from healthwatch.yamlfile import Document

RENEWED = ("rules", "override", "escalation", "receivers", "group_by", "no_data_after")
"""What of a config takes effect in a running training; the rest waits for the next start."""

Stamps: TypeAlias = Mapping[Path, tuple[int, int]]


def examine(source: Path | str | Document) -> tuple[Checked, list[Diagnostic]]:
    """A config with its rules, and everything that is wrong with it, its receivers and its actions."""
    checked = load_all(source)
    return checked, in_order([*checked.diagnostics, *beyond(checked.readable)])


def beyond(config: Config | None) -> list[Diagnostic]:
    """What only those who are to act can say of a config: its receivers and its actions."""
    return [*_receivers(config), *_actions(config)]


def _actions(config: Config | None) -> list[Diagnostic]:
    if config is None or config.disabled:
        return []
    from healthwatch.actions.action import check

    return check(config)


def _receivers(config: Config | None) -> list[Diagnostic]:
    """Problems of the receivers' URLs; apprise is imported only where there is one to send to."""
    if config is None or config.disabled or not config.receivers:
        return []
    from healthwatch.actions.notify import validate

    return validate(config.receivers)


@dataclass(frozen=True, slots=True)
class Renewed:
    """A new version that can be used."""

    config: Config
    rules: tuple[Rule, ...]
    meta: Mapping[str, Any]  # of what a recording says about it


@dataclass(slots=True)
class Reloader:
    """Looks at the config and its rule files, off the step's path; a version is taken once it has stood for a look.

    A bad version is told once and refused: the last good one goes on.
    """

    config: Config  # the one in force, or about to be
    guard: Guard
    _sources: tuple[str, ...] = ()  # of the last version that was looked into, a refused one too
    _stamps: Stamps = field(default_factory=dict)
    _digest: str = ""  # of the last version that was looked into
    _changing: bool = False
    _renewed: Renewed | None = None

    def begin(self) -> None:
        """What is on disk now is in force; nothing is looked at where the config is no file."""
        self._sources = self.config.rules
        self._stamps = self._look_at_files()
        self._digest = _digest(self._stamps)

    def look(self) -> None:
        """See whether something has changed. Reads files only when one has another time or size."""
        if not self._stamps:
            return
        stamps, before = self._look_at_files(), self._stamps
        self._stamps = stamps
        if stamps != before:
            self._changing = True
            return  # whoever writes may not be ready
        if not self._changing:
            return
        self._changing = False
        digest = _digest(stamps)
        if digest != self._digest:
            self._digest = digest
            self._read()

    def take(self) -> Renewed | None:
        """The new version, once."""
        renewed, self._renewed = self._renewed, None
        return renewed

    def _read(self) -> None:
        assert self.config.file is not None
        checked, found = examine(self.config.file)
        self._follow(checked.config or load_config(self.config.file)[0])
        if checked.config is None or errors(found):
            why = render_text(errors(found))
            self.guard.say(f"a new version of the rules is refused, the last good one goes on:\n{why}", logging.ERROR)
            return
        later = _waits(self.config, checked.config)
        merged = {name: getattr(checked.config, name) for name in RENEWED}
        config = replace(self.config, **merged, digest=checked.config.digest)
        meta = describe(config)
        if _digest(self._stamps) != self._digest:
            self._changing = True  # once more: what was read and what is written down may differ
            return
        self.config = config
        self._renewed = Renewed(config, checked.rules.rules, meta)
        if later:
            self.guard.say(f"{', '.join(later)} of the config: changes take effect at the next start", logging.WARNING)

    def _follow(self, config: Config | None) -> None:
        """Look at the files that this version names from now on."""
        if config is not None and config.rules != self._sources:
            self._sources = config.rules
            self._stamps = self._look_at_files()
            self._digest = _digest(self._stamps)

    def _look_at_files(self) -> Stamps:
        """Times and sizes of the config and of every rule file; nothing where the config is no file."""
        if self.config.file is None:
            return {}
        sources = [Path(source) for source in self._sources if not source.startswith(BUILTIN)]
        return {
            path: _stamp(path) for path in [self.config.file, *(file for each in sources for file in files_of(each))]
        }


def _stamp(path: Path) -> tuple[int, int]:
    """A file that is not there, or not for a moment, has none."""
    try:
        found = path.stat()
    except OSError:
        return 0, 0
    return found.st_mtime_ns, found.st_size


def _digest(stamps: Stamps) -> str:
    """Of the files' names and bytes."""
    digest = hashlib.sha256()
    for path in stamps:
        content = path.read_bytes() if path.is_file() else b""
        digest.update(str(path).encode("utf-8", "surrogateescape") + b"\0" + content + b"\0")
    return digest.hexdigest()


def _waits(before: Config, after: Config) -> list[str]:
    """Fields that differ and can't change in a running training."""
    names = [each.name for each in fields(Config) if each.name not in (*RENEWED, "digest", "file")]
    return [name for name in names if getattr(before, name) != getattr(after, name)]
