"""The training YAML to a Config, every problem of the file and of its rules at once."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from healthwatch import resources, yamlfile
from healthwatch.config.escalation import LOG_ONLY
from healthwatch.config.model import Config
from healthwatch.config.overrides import check_overrides, of_the_files
from healthwatch.config.read import read
from healthwatch.config.section import Section
from healthwatch.diagnostics import Diagnostic, errors, in_order, likely_typo, suggest
from healthwatch.rulefile.build import SEVERITIES
from healthwatch.rulefile.lint import Facts
from healthwatch.rulefile.load import BUILTIN, load_rules
from healthwatch.rulefile.model import Loaded
from healthwatch.stream.catalogue import PLACEMENT, catalogue

LOGITS = "max_attention_logit"
OF_EVERY_INCIDENT = ("alertname", "rank", "rule", "run", "severity")


@dataclass(frozen=True, slots=True)
class Checked:
    """A config with its rules. `config` is None where anything is an error; the rules are checked all the same.

    `readable` is what could be read of it, errors or not: for whoever looks for further problems.
    """

    config: Config | None
    rules: Loaded
    diagnostics: tuple[Diagnostic, ...]
    readable: Config | None = None


def load_config(
    source: str | Path | yamlfile.Document, environment: Mapping[str, str] | None = None
) -> tuple[Config | None, list[Diagnostic]]:
    """Read a training YAML; the config is None where anything in it is an error. Never raises.

    `environment` (default: the process') fills in `${NAME}`. Rules are resolved relative to the file's folder; they
    are loaded by `load_all`.
    """
    config, ours = read(_document(source), os.environ if environment is None else environment)
    found = in_order(ours.diagnostics)
    return (None if errors(found) else config), found


def load_all(source: str | Path | yamlfile.Document, environment: Mapping[str, str] | None = None) -> Checked:
    """As `load_config`, with the rules that it names loaded and its overrides checked against them."""
    config, ours = read(_document(source), os.environ if environment is None else environment)
    if config is None:
        return Checked(None, Loaded((), ()), tuple(in_order(ours.diagnostics)))
    rules = load_rules(_present(config, ours), config.override, Facts(config.top_k, config.experts))
    check_overrides(ours, config.override, rules)
    _check_ladders(ours, config, rules)
    _check_logits(ours, config, rules)
    _check_groups(ours, config, rules)
    found = (*in_order(ours.diagnostics), *of_the_files(rules))
    return Checked(None if errors(found) else config, rules, found, config)


def _document(source: str | Path | yamlfile.Document) -> yamlfile.Document:
    return source if isinstance(source, yamlfile.Document) else yamlfile.load(source)


def _present(config: Config, ours: Section) -> list[str]:
    """The sources that are there; for the others a problem where the config names them."""
    present = []
    for position, source in zip(_places(ours, config), config.rules, strict=True):
        message, mend = _missing(source)
        if message:
            ours.report("HW018", message, "rules", position, help=mend)
        else:
            present.append(source)
    return present


def _places(ours: Section, config: Config) -> list[int]:
    """Where in the list each source stands: what is no name has been left out, and told."""
    named = ours.get("rules")
    texts = [position for position, each in enumerate(named or ()) if isinstance(each, str) and each]
    return texts if isinstance(named, list) and texts else list(range(len(config.rules)))


def _missing(source: str) -> tuple[str, str]:
    if source.startswith(BUILTIN):
        pack, packs = source.removeprefix(BUILTIN), resources.packs()
        known = pack in packs
        return ("", "") if known else (f'no pack is called "{pack}"', suggest(pack, packs, "shipped packs"))
    if Path(source).exists():
        return "", ""
    return f"there is no rule file {source}", "a path is relative to the config's folder"


def _check_ladders(ours: Section, config: Config, rules: Loaded) -> None:
    """A rule that names a ladder needs it; one whose severity has none is recorded and tells nobody."""
    written = {*config.escalation, *ours.below("escalation").data}  # one that can't be read is told
    silent = {rule.severity for rule in rules.rules if rule.escalation is None} - {*written, "info"}
    for severity in sorted(silent & {*SEVERITIES}):  # of any other it is told that there is none
        message = f'there is no ladder "{severity}": rules of this severity are recorded and tell nobody'
        level = LOG_ONLY[severity][0].argument
        mend = f"add {severity}: [{{log: {level}}}]"
        ours.report("HW035", message, "escalation", at_key=True, severity="info", help=mend)
    _check_unused(ours, config, rules)
    for rule in rules.rules:
        if rule.escalation is None or rule.escalation in written:
            continue
        own = config.override.get(rule.name, {}).get("escalation")
        place = ("override", rule.name, "escalation") if own else ("escalation",)
        message = f'rule "{rule.name}" climbs the ladder "{rule.escalation}", which is not here'
        mend = suggest(rule.escalation, config.escalation, "ladders")
        ours.report("HW035", message, *place, at_key=not own, help=mend)


def _check_unused(ours: Section, config: Config, rules: Loaded) -> None:
    """A ladder that no rule climbs does nothing; one that looks like another was meant to be that one."""
    climbed = {*SEVERITIES, *(rule.ladder for rule in rules.rules)}
    missing = {*(rule.escalation for rule in rules.rules if rule.escalation)} - config.escalation.keys()
    for name in config.escalation.keys() - climbed:
        if likely_typo(name, missing):
            continue  # told where the rule climbs it
        message, meant = f'no rule climbs the ladder "{name}"', likely_typo(name, climbed)
        if meant is not None:
            mend = f'did you mean "{meant}"?'
            ours.report("HW042", message, "escalation", name, at_key=True, severity="warning", help=mend)
        elif not errors(rules.diagnostics):
            ours.report("HW042", message, "escalation", name, at_key=True, severity="info")


def _check_groups(ours: Section, config: Config, rules: Loaded) -> None:
    """An incident is a rule's: what its rule carries divides groups, what its series carry does not."""
    dividing = {*OF_EVERY_INCIDENT, *(label for rule in rules.rules for label in rule.labels)}
    declared = [label for metric in rules.metrics.values() for label in metric.get("labels") or ()]
    of_series = {*PLACEMENT, *declared, *(label for metric in catalogue().values() for label in metric.labels)}
    for position, name in enumerate(ours.get("group_by", config.group_by)):
        if name not in config.group_by or name in dividing:  # what is no name has been told
            continue
        message, severity = f'nothing that rules tell of has the label "{name}"', "warning"
        mend = suggest(name, dividing, "labels that divide")
        if name in of_series:
            message = f'"{name}" is a label of series: an incident holds all series of its rule, so it divides nothing'
            mend = "group by alertname, or add it to the labels of rules"
        elif likely_typo(name, dividing | of_series):
            mend, severity = f'did you mean "{likely_typo(name, dividing | of_series)}"?', "error"
        place = () if "group_by" not in ours.data else ("group_by", position)
        ours.report("HW039", message, *place, severity=severity, help=mend)


def _check_logits(ours: Section, config: Config, rules: Loaded) -> None:
    """The trainer tracks attention logits if something in its own sections asks for them; a rule is none of those."""
    if config.max_logits_interval is not None or config.qk_clip:
        return
    callbacks = ours.document.data.get("callbacks")
    asking = [rule.name for rule in rules.rules if LOGITS in rule.expression.text]
    for position, callback in enumerate(callbacks if isinstance(callbacks, list) and asking else []):
        if isinstance(callback, dict) and callback.get("type") == "HealthWatch":
            message = f'the trainer tracks no attention logits, for which "{asking[0]}" asks'
            mend = "add - {type: MaxLogitsMonitor, step_interval: 1000} to the callbacks"
            place = ("callbacks", position, "type")
            ours.diagnostics.append(ours.document.at_value("HW038", message, place, severity="warning", help=mend))
