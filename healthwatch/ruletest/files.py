"""Test files to a report."""

from __future__ import annotations

import glob
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from healthwatch import yamlfile
from healthwatch.config.overrides import check_overrides, of_the_files
from healthwatch.config.section import Section
from healthwatch.diagnostics import Diagnostic, Invalid, did_you_mean, errors, in_order, likely_typo
from healthwatch.rulefile import Rule, load_rules
from healthwatch.rulefile.load import BUILTIN
from healthwatch.rulefile.reads import Reads
from healthwatch.rulefile.shipped import meant
from healthwatch.ruletest.compare import Failure, failures
from healthwatch.ruletest.model import Case, RuleTest
from healthwatch.ruletest.read import read
from healthwatch.ruletest.show import text
from healthwatch.ruletest.trace import trace

PASSED, FAILED, COULD_NOT_RUN = 0, 1, 2


@dataclass(frozen=True, slots=True)
class CaseReport:
    """One test: what was not as expected, with the text that shows it."""

    name: str
    failures: tuple[tuple[Failure, str], ...]


@dataclass(frozen=True, slots=True)
class FileReport:
    """One file: the tests that ran, or the problems for which they could not."""

    file: str
    cases: tuple[CaseReport, ...] = ()
    diagnostics: tuple[Diagnostic, ...] = ()

    @property
    def could_run(self) -> bool:
        return not errors(self.diagnostics)


@dataclass(frozen=True, slots=True)
class Report:
    """All files."""

    files: tuple[FileReport, ...]

    @property
    def failed(self) -> int:
        return sum(bool(case.failures) for file in self.files for case in file.cases)

    @property
    def passed(self) -> int:
        return sum(len(file.cases) for file in self.files) - self.failed

    @property
    def exit_code(self) -> int:
        if not all(file.could_run for file in self.files):
            return COULD_NOT_RUN
        return FAILED if self.failed else PASSED


def run_files(files: Sequence[str | Path]) -> Report:
    """Run test files; a folder stands for the `*.test.yaml` in it. Never raises."""
    return Report(tuple(_run(file) for source in files for file in test_files(Path(source))))


def test_files(path: Path) -> list[Path]:
    """A file itself; of a folder its test files by name."""
    if not path.is_dir():
        return [path]
    return sorted(file for file in path.iterdir() if file.name.endswith((".test.yaml", ".test.yml")))


test_files.__test__ = False  # type: ignore[attr-defined]  # pytest collects functions of this name


def _run(path: Path) -> FileReport:
    file = path.as_posix()
    test, rules, diagnostics = _loaded(yamlfile.load(path))
    if test is None or errors(diagnostics):
        return FileReport(file, diagnostics=tuple(in_order(diagnostics)))
    try:
        cases = tuple(_case(case, test, rules) for case in test.cases)
    except Invalid as invalid:
        return FileReport(file, diagnostics=(*diagnostics, *invalid.diagnostics))
    return FileReport(file, cases, tuple(diagnostics))


def problems(document: yamlfile.Document) -> list[Diagnostic]:
    """What is wrong with a test file, its rule files and what it says of their rules, without running it."""
    return _loaded(document)[2]


def _loaded(document: yamlfile.Document) -> tuple[RuleTest | None, tuple[Rule, ...], list[Diagnostic]]:
    """The test and the rules under test, as far as they can be read."""
    test, diagnostics = read(document)
    if test is None:
        return None, (), diagnostics
    if errors(diagnostics):
        test = replace(test, override={})  # which may be what is wrong
    whole = Section(document, (), document.data, frozenset())
    rules, found = _rules(test, whole)
    found += [] if errors(found) else [*_unknown_rules(test, rules, document), *_unread(test, rules, document)]
    return test, rules, [*diagnostics, *found]


def _case(case: Case, test: RuleTest, rules: Sequence[Rule]) -> CaseReport:
    seen = trace(case, rules, test.escalation, test.evaluation_interval)
    return CaseReport(case.name, tuple((each, text(each, seen, rules)) for each in failures(case, seen, rules)))


def _rules(test: RuleTest, whole: Section) -> tuple[tuple[Rule, ...], list[Diagnostic]]:
    """The rules under test, the errors in their files and what the test overrides wrongly; `whole` is the test file."""
    sources: list[str] = []
    for position, pattern in enumerate(test.rule_files):
        sources += matching(pattern)
        if sources[-1] == pattern and not pattern.startswith(BUILTIN) and not Path(pattern).exists():
            mend = "a path is relative to the test file's folder"
            whole.report("HW018", f"there is no rule file {pattern}", "rule_files", position, help=mend)
    if whole.diagnostics:
        return (), whole.diagnostics
    loaded = load_rules(sources, test.override)
    check_overrides(whole, test.override, loaded)
    return loaded.rules, [*whole.diagnostics, *errors(of_the_files(loaded))]


def matching(pattern: str) -> Iterator[str]:
    """Prometheus lets a rule file be a pattern."""
    found = [] if pattern.startswith(BUILTIN) else sorted(glob.glob(pattern))  # noqa: PTH207 - the pattern is a path
    yield from found or [pattern]


def _unknown_rules(test: RuleTest, rules: Sequence[Rule], document: yamlfile.Document) -> list[Diagnostic]:
    """Expectations about rules that are not loaded would be met by silence."""
    known = [rule.name for rule in rules]
    asked = [(each.rule, each.named) for case in test.cases for each in case.alerts]
    asked += [
        (str(each.fields["rule"]), each.named)
        for case in test.cases
        for each in case.incidents or ()
        if "rule" in each.fields
    ]
    return [
        document.at_span("HW014", f'no rule is called "{name}"', span, help=meant(name, known))
        for name, span in asked
        if name not in known
    ]


def _unread(test: RuleTest, rules: Sequence[Rule], document: yamlfile.Document) -> Iterator[Diagnostic]:
    """Series that nothing reads, and what reads a series by nearly its name: such tests pass for no reason."""
    for case in test.cases:
        reads, given = Reads.of(rules, [each.expression.tree for each in case.expressions]), _given(case)
        for series in case.series:
            if series.span is not None and series.metric not in reads:
                message = f'no rule and no expression of this test reads "{series.metric}"'
                mend = did_you_mean(series.metric, sorted(reads.names))
                yield document.at_span("HW043", message, series.span, severity="warning", help=mend)
        for expression in case.expressions:
            for name in Reads.of((), [expression.expression.tree]).names - given:
                closest = likely_typo(name, given)
                if closest is not None:
                    message, mend = f'no series of this test is called "{name}"', f'did you mean "{closest}"?'
                    yield document.at_span("HW043", message, expression.span, severity="warning", help=mend)


def _given(case: Case) -> set[str]:
    return {each.metric for each in case.series}
