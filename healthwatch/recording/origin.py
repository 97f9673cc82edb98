"""What a run was watched with, kept in its file: enough to say the same again without the config or the rule files."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from healthwatch.config import Config
from healthwatch.rulefile.load import opened_once

BUILTIN = "builtin:"


def describe(config: Config) -> dict[str, Any]:
    """The meta of an attempt. Nothing of receivers or commands is in it: those may hold credentials."""
    documents = [document for opened, _ in opened_once(config.rules) for document in opened]
    return {
        "run": config.run,
        "config_digest": config.digest,
        "no_data_after": config.no_data_after,
        "top_k": config.top_k,
        "override": config.override,
        "rules": [{"source": document.file, "text": document.raw.decode()} for document in documents],
    }


def write_rules(meta: Mapping[str, Any], folder: Path) -> list[Path]:
    """The rule files of an attempt, written below `folder` under their own names, in their order."""
    written = []
    for number, rules in enumerate(meta.get("rules", ()), start=1):
        name = rules["source"].removeprefix(BUILTIN)
        file = folder / str(number) / Path(name).with_suffix(".yaml").name
        file.parent.mkdir()
        file.write_text(rules["text"], encoding="utf-8")
        written.append(file)
    return written
