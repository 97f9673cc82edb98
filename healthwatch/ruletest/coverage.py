"""Which rules have a test: one that expects an alert or an incident of them, or that there is none."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from healthwatch import resources, yamlfile
from healthwatch.diagnostics import Diagnostic
from healthwatch.rulefile import Rule
from healthwatch.rulefile.load import BUILTIN, open_source
from healthwatch.ruletest.files import matching, test_files
from healthwatch.ruletest.model import RuleTest
from healthwatch.ruletest.read import read


def untested(rules: Iterable[Rule]) -> Iterator[Diagnostic]:
    """A warning for every rule that no test file beside its rule file expects anything of."""
    for file, of_file in _by_file(rules).items():
        known = set(_tested(file))
        for rule in of_file:
            if rule.name not in known:
                yield _untested(rule)


def _untested(rule: Rule) -> Diagnostic:
    opened, _ = open_source(rule.span.file)
    message = f'no test expects anything of the rule "{rule.name}"'
    mend = f"write one into {_test_of(rule.span.file).name} beside it; healthwatch init shows what it looks like"
    return opened[0].at_span("HW037", message, rule.span, severity="warning", help=mend)


def _by_file(rules: Iterable[Rule]) -> dict[str, list[Rule]]:
    found: dict[str, list[Rule]] = {}
    for rule in rules:
        found.setdefault(rule.span.file, []).append(rule)
    return found


def _path_of(file: str) -> Path:
    return resources.path(f"rules/{file.removeprefix(BUILTIN)}.yaml") if file.startswith(BUILTIN) else Path(file)


def _test_of(file: str) -> Path:
    return _path_of(file).with_suffix(".test.yaml")


def _tested(file: str) -> Iterator[str]:
    """The rules of a file that the test files in its folder expect something of."""
    for path in test_files(_path_of(file).parent):
        test, _ = read(yamlfile.load(path))
        if test is not None and _path_of(file).resolve() in _rule_files(test):
            yield from expected(test)


def _rule_files(test: RuleTest) -> set[Path]:
    return {_path_of(source).resolve() for pattern in test.rule_files for source in matching(pattern)}


def expected(test: RuleTest) -> Iterator[str]:
    """The names of the rules that a test file asks about."""
    for case in test.cases:
        yield from (each.rule for each in case.alerts)
        yield from (str(each.fields["rule"]) for each in case.incidents or () if "rule" in each.fields)
