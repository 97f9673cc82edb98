"""A document to a Config, defaults filled in."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from healthwatch import resources
from healthwatch.config import escalation, trainer
from healthwatch.config.model import CaptureSettings, Config
from healthwatch.config.section import Section, share, size
from healthwatch.diagnostics import Diagnostic, did_you_mean, errors
from healthwatch.rulefile.load import BUILTIN
from healthwatch.rulefile.schema import findings
from healthwatch.stream.ticks import parse_duration
from healthwatch.yamlfile import Document, KeyPath, Problem, number_hint

OURS = "healthwatch"
READ = (OURS, "monitor", "callbacks", "profiler")
DISABLED, DRY_RUN = "HEALTHWATCH_DISABLED", "HEALTHWATCH_DRY_RUN"


def read(document: Document, environment: Mapping[str, str]) -> tuple[Config | None, Section]:
    """The config with whatever could be read, None only where there is no such section; and that section."""
    diagnostics = [_foreign(problem) for problem in document.problems if _concerns_us(problem)]
    if not isinstance(document.data, dict) or OURS not in document.data:
        found = diagnostics if errors(diagnostics) else [*diagnostics, _no_section(document)]
        return None, Section(document, (OURS,), {}, frozenset(), found)
    document = replace(document, hidden=escalation.credentials(document, OURS))
    broken = [problem for problem in findings(document, "config") if not _plug_in(problem.path)]
    diagnostics += (problem.diagnostic for problem in broken)
    refused = frozenset(problem.path for problem in broken)
    root = Section(document, (), document.data, refused, diagnostics)
    ours = root.below(OURS)
    return _config(root, ours, environment), ours


def _plug_in(path: KeyPath) -> bool:
    """Whether this is the name of an action of a plug-in, which the shipped schema can't know."""
    return len(path) == 5 and path[:2] == (OURS, "escalation") and path[4] in escalation.plug_ins()


def _concerns_us(problem: Problem) -> bool:
    """A key that YAML does not read as text may be the trainer's own; syntax and duplicates concern everybody."""
    return not problem.path or problem.path[0] in READ or problem.diagnostic.code in ("HW003", "HW004")


def _foreign(problem: Problem) -> Diagnostic:
    """Outside our section the trainer decides: what it reads is no error of ours."""
    if not problem.path or problem.path[0] == OURS or problem.diagnostic.code == "HW003":
        return problem.diagnostic
    return replace(problem.diagnostic, severity="warning")


def _no_section(document: Document) -> Diagnostic:
    message = "this file has no healthwatch section"
    keys = document.data if isinstance(document.data, dict) else {}
    misspelt = next((key for key in keys if did_you_mean(key, [OURS])), None)
    if misspelt is not None:
        return document.at_key("HW021", message, (misspelt,), help=did_you_mean(misspelt, [OURS]))
    mend = "add a section healthwatch: {} to the training YAML"
    return document.at_value("HW021", message, (), help=mend)


def _config(root: Section, ours: Section, environment: Mapping[str, str]) -> Config:
    folder = Path(root.document.file).parent
    disabled = _switch(environment, DISABLED) or not ours.get("enabled", True)
    dry_run = _switch(environment, DRY_RUN) or ours.get("dry_run", False)
    receivers = escalation.receivers(ours, environment, folder, muted=disabled or dry_run)
    late_after = parse_duration(ours.get("late_after", "30s"))
    record = ours.below("record").get("max_size")
    return Config(
        run=ours.get("run", Path(root.document.file).stem),
        output=Path(ours.get("output", "./output/healthwatch")),
        rules=_sources(ours, folder),
        digest=hashlib.sha256(root.document.raw).hexdigest(),
        override=_overrides(ours),
        escalation=escalation.ladders(ours, ours.below("receivers").data) or escalation.LOG_ONLY,
        receivers=receivers,
        capture=_capture(ours.below("capture")),
        group_by=ours.items("group_by", ("run",)),
        no_data_after=ours.get("no_data_after", 200),
        late_after=30.0 if late_after is None or late_after.seconds is None else late_after.seconds,
        budget=share(ours.get("budget", "2%")),
        record_max_size=None if record is None else size(record),
        train_state=trainer.train_state(root),
        moe_monitor=trainer.moe_monitor(root),
        max_logits_interval=trainer.max_logits_interval(root),
        total_steps=trainer.total_steps(root),
        profiler=trainer.profiler(root),
        qk_clip_threshold=trainer.qk_clip_threshold(root),
        top_k=ours.get("top_k", trainer.top_k(root)),
        experts=trainer.experts(root),
        file=_file_of(root.document),
        disabled=disabled,
        dry_run=dry_run,
    )


def _file_of(document: Document) -> Path | None:
    """None where what was read is not what lies there: a trainer may have put its configuration together."""
    path = Path(document.file).absolute()
    try:
        return path if path.read_bytes() == document.raw else None
    except (OSError, ValueError):
        return None


def _switch(environment: Mapping[str, str], name: str) -> bool:
    return environment.get(name, "").strip().lower() not in ("", "0", "false", "no", "off")


def _sources(ours: Section, folder: Path) -> tuple[str, ...]:
    """Packs as they are, files relative to the config's folder."""
    written = ours.data.get("rules")
    one = [written] if isinstance(written, str) and written else []  # which is refused, and told so
    named = one or ours.get("rules") or [f"{BUILTIN}{pack}" for pack in resources.packs()]
    texts = (source for source in named if isinstance(source, str) and source)
    return tuple(source if source.startswith(BUILTIN) else str(folder / source) for source in texts)


def _overrides(ours: Section) -> dict[str, dict[str, Any]]:
    """By rule; of each what the schema allows."""
    section = ours.below("override")
    return {
        name: {
            key: _params(each) if key == "params" else _sound(each.get(key), (*each.path, key), each.refused)
            for key in each.data
            if each.get(key) is not None
        }
        for name in section.data
        for each in [section.below(name)]
    }


def _params(override: Section) -> dict[str, Any]:
    """Parameters without those that are a number by their look and text to YAML."""
    section = override.below("params")
    return {
        name: value
        for name, value in _sound(section.data, section.path, section.refused).items()
        if not _text_for_number(section, name, value)
    }


def _text_for_number(section: Section, name: str, value: Any) -> bool:
    if not isinstance(value, str) or not (number_hint(value) or value.replace(".", "", 1).isdigit()):
        return False
    quoted = section.document.quoted((*section.path, name))
    mend = "remove the quotes" if quoted else f"write {number_hint(value)}"
    section.report("HW009", f"YAML reads {value} as text, not as a number", name, help=mend)
    return True


def _sound(value: Any, path: KeyPath, refused: frozenset[KeyPath]) -> Any:
    if not isinstance(value, dict):
        return value
    return {key: each for key, each in value.items() if (*path, key) not in refused}


def _capture(section: Section) -> CaptureSettings:
    default = CaptureSettings()
    ranks = section.get("ranks", list(default.ranks))
    return CaptureSettings(
        max_captures=section.get("max_captures", default.max_captures),
        cooldown=section.get("cooldown", default.cooldown),
        min_free_disk=size(section.get("min_free_disk", default.min_free_disk)),
        max_total_size=size(section.get("max_total_size", default.max_total_size)),
        ranks=tuple(ranks) if isinstance(ranks, list) else default.ranks,
        reference_at=section.get("reference_at"),
    )
