"""`healthwatch check FILE...`."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Literal

import click

from healthwatch import config, rulefile, yamlfile
from healthwatch.cli import resolved
from healthwatch.config import Config
from healthwatch.diagnostics import Diagnostic, in_order, render_json, render_text
from healthwatch.rulefile import Rule
from healthwatch.rulefile.load import BUILTIN, declared_metric, files_of
from healthwatch.ruletest.coverage import untested
from healthwatch.ruletest.files import problems as test_problems
from healthwatch.session.reload import beyond
from healthwatch.stream.catalogue import Metric

CLEAN, FINDINGS, COULD_NOT_RUN = 0, 1, 2

Kind = Literal["rules", "config", "ruletest", "unreadable", "neither"]


@dataclass(frozen=True, slots=True)
class Report:
    """What was found in which files, and what is in force. Notes (severity info) are shown and do not count."""

    files: tuple[str, ...]
    unreadable: tuple[str, ...]
    diagnostics: tuple[Diagnostic, ...]
    rules: tuple[Rule, ...] = ()
    configs: tuple[tuple[Config, tuple[Rule, ...]], ...] = ()
    metrics: Mapping[str, Metric] = field(default_factory=dict)  # those that rule files declare

    @property
    def in_force(self) -> str:
        """YAML of every config with its rules, and of the rule files."""
        alone = [(None, self.rules)] if self.rules else []
        return "---\n".join(resolved.text(config, rules) for config, rules in (*self.configs, *alone))

    def count(self, severity: str) -> int:
        return sum(found.severity == severity for found in self.diagnostics)

    @property
    def exit_code(self) -> int:
        if self.unreadable:
            return COULD_NOT_RUN
        return FINDINGS if self.count("error") or self.count("warning") else CLEAN

    @property
    def summary(self) -> str:
        counting = (each for each in self.diagnostics if each.severity != "info" and each.span is not None)
        bad = {each.span.file for each in counting if each.span is not None}
        total = len({*self.files, *bad})
        if not bad:
            return f"{_count(total, 'file')} checked, no problems"
        counts = f"{_count(self.count('error'), 'error')}, {_count(self.count('warning'), 'warning')}"
        return f"{total - len(bad)} of {_count(total, 'file')} without problems, {len(bad)} with: {counts}"


@click.command("check")
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@click.option("--output", type=click.Choice(["text", "json"]), default="text", show_default=True)
@click.option("--strict", is_flag=True, help="A rule without a test is a finding.")
@click.option(
    "--show-resolved", is_flag=True, help="Print what is in force after defaults, packs and overrides; secrets masked."
)
def command(files: tuple[str, ...], output: str, strict: bool, show_resolved: bool) -> None:
    """Check rule files, rule tests and config files; every problem at once.

    A FILE is a rule file, a training YAML with a healthwatch section (its rules are checked with it), a rule test, a
    folder of rule files, or builtin:PACK. Exit code: 0 clean, 1 errors or warnings, 2 a file could not be read.
    """
    report = check(files, strict=strict)
    if output == "json":
        click.echo(render_json(report.diagnostics))
        sys.exit(report.exit_code)
    shown = [render_text(report.diagnostics)] if report.diagnostics else []
    if show_resolved:  # on standard output alone, so that it can be kept as a file
        click.echo(report.in_force, nl=False)
    for line in (*shown, report.summary):
        click.echo(line, err=show_resolved)
    sys.exit(report.exit_code)


def check(sources: Sequence[str], *, strict: bool = False) -> Report:
    """All files together: a name or an inhibition may cross files."""
    files = list(dict.fromkeys(_files(sources)))
    kinds: dict[str, Kind] = {file: _kind(file) for file in files}
    loaded = rulefile.load_rules([file for file in files if kinds[file] in ("rules", "unreadable")])
    checked = [config.load_all(file) for file in files if kinds[file] == "config"]
    found = [*loaded.diagnostics, *(each for one in checked for each in (*one.diagnostics, *_beyond(one.readable)))]
    for file in files:
        if kinds[file] == "ruletest":
            found += test_problems(yamlfile.load(file))
        elif kinds[file] == "neither":
            found += [_neither(file), *yamlfile.load(file).diagnostics]
    if strict:
        rules = [rule for one in (loaded, *(each.rules for each in checked)) for rule in one.rules]
        found += untested({(rule.span.file, rule.name): rule for rule in rules}.values())
    unreadable = tuple(file for file in files if _absent(file))
    configs = tuple((each.config, each.rules.rules) for each in checked if each.config is not None)
    declared = {
        name: declared_metric(name, each)
        for one in (loaded, *(each.rules for each in checked))
        for name, each in one.metrics.items()
    }
    return Report(tuple(files), unreadable, tuple(in_order(dict.fromkeys(found))), loaded.rules, configs, declared)


def _beyond(read: Config | None) -> list[Diagnostic]:
    """What a training would refuse as well; URLs for apprise only where it is here."""
    if read is None:
        return []
    if find_spec("apprise") is None:
        read = replace(read, receivers={name: replace(each, urls=()) for name, each in read.receivers.items()})
    return beyond(read)


def _files(sources: Sequence[str]) -> Iterator[str]:
    """Folders opened; an empty one stays, so that it is reported. `./r.yaml` is `r.yaml`."""
    for source in sources:
        if source.startswith(BUILTIN):
            yield source
        else:
            yield from map(str, files_of(Path(source)) or [Path(source)])


def _kind(source: str) -> Kind:
    """Told by the content: `groups` makes a rule file, `healthwatch` a config, `rule_files` a rule test."""
    if source.startswith(BUILTIN) or Path(source).is_dir():
        return "rules"
    document = yamlfile.load(source)
    if not isinstance(document.data, dict):
        return "unreadable" if document.problems or document.data is None else "neither"
    if "healthwatch" in document.data:
        return "config"
    if {"rule_files", "tests"} & set(document.data):
        return "ruletest"
    return "rules" if {"groups", "metrics", "rules"} & set(document.data) else "neither"


def _absent(source: str) -> bool:
    """Whether there is nothing to read: it is not the content that is wrong."""
    if source.startswith(BUILTIN):
        return False
    return any(found.code == "HW001" for found in yamlfile.load(source).diagnostics)


def _neither(file: str) -> Diagnostic:
    message = "this is neither a rule file nor a config file"
    mend = "a rule file begins with groups:, a config has a section healthwatch:, a rule test begins with rule_files:"
    return yamlfile.load(file).at_value("HW021", message, (), help=mend)


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"
