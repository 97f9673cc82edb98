"""A test file to its nouns: every mistake in it at its place."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from healthwatch.config.escalation import LOG_ONLY, ladders
from healthwatch.config.section import Section
from healthwatch.diagnostics import Diagnostic
from healthwatch.promql import parse
from healthwatch.rulefile.load import BUILTIN
from healthwatch.rulefile.schema import findings
from healthwatch.ruletest.model import (
    AlertTest,
    Case,
    Expected,
    ExpectedAlert,
    ExprTest,
    RuleTest,
    WrittenSeries,
)
from healthwatch.ruletest.notation import Trouble, number, read_labels, read_series, read_step, read_values
from healthwatch.stream import parse_duration
from healthwatch.yamlfile import Document, KeyPath

UNREADABLE = "HW201"


def read(document: Document) -> tuple[RuleTest | None, list[Diagnostic]]:
    """The test file, None where it has no tests; what could not be read of it is among the problems."""
    diagnostics = list(document.diagnostics)
    if not isinstance(document.data, dict):
        if not diagnostics:
            diagnostics.append(document.at_value("HW021", "this file holds no rule tests", (), help=_BEGIN))
        return None, diagnostics
    broken = findings(document, "ruletest")
    diagnostics += (problem.diagnostic for problem in broken)
    refused = frozenset(problem.path for problem in (*document.problems, *broken))
    return _Reader(Section(document, (), document.data, refused, diagnostics)).file(), diagnostics


_BEGIN = "a test file begins with rule_files: and tests:"


@dataclass(frozen=True, slots=True)
class _Reader:
    whole: Section

    @property
    def document(self) -> Document:
        return self.whole.document

    def file(self) -> RuleTest:
        whole = self.whole
        folder = Path(whole.document.file).parent
        return RuleTest(
            whole.document.file,
            tuple(_located(source, folder) for source in self.rule_files() if isinstance(source, str)),
            tuple(self.case(section, folder) for section in self.items(whole, "tests")),
            self.length(whole, "evaluation_interval"),
            ladders(whole, _Anybody()) if whole.get("escalation") else LOG_ONLY,
            whole.get("override", {}),
        )

    def rule_files(self) -> Sequence[Any]:
        """A text, which is refused, is the one that is meant."""
        written = self.whole.data.get("rule_files")
        return [written] if isinstance(written, str) else self.whole.get("rule_files", [])

    def case(self, section: Section, folder: Path) -> Case:
        source = self.source(section)
        self.check_micro_steps(section)
        incidents, actions = self.expected(section, "exp_incidents"), self.expected(section, "exp_actions")
        return Case(
            str(section.get("name", f"test {section.path[-1] + 1}")),  # type: ignore[operator]
            section.document.value_span(section.path),
            tuple(filter(None, map(self.series, self.items(section, "input_series")))),
            self.length(section, "interval"),
            self.step(section, "start"),
            float(section.get("step_time", 1)),
            tuple(sorted(section.get("resume_at", []))),
            self.standstills(section),
            None if source is None else folder / source,
            tuple(map(self.alert_test, self.items(section, "alert_rule_test"))),
            tuple(filter(None, map(self.expr_test, self.items(section, "promql_expr_test")))),
            incidents,
            actions,
        )

    def source(self, section: Section) -> str | None:
        given = [key for key in ("input_series", "run", "jsonl") if key in section.data]
        if len(given) > 1:
            message = f'"{given[0]}" and "{given[1]}" exclude each other'
            section.report("HW011", message, given[1], at_key=True, help="a test has one source of samples")
        source: str | None = section.get("run") or section.get("jsonl")
        return source

    def standstills(self, section: Section) -> dict[int, float]:
        found: dict[int, float] = {}
        for each in self.items(section, "standstills"):
            step, lasts = each.get("after_step"), parse_duration(each.get("lasts"))
            if step is None or lasts is None:
                continue  # told by the schema
            if step in found:
                each.report("HW010", f"two standstills after step {step}", "after_step", help="add them up")
            elif "input_series" not in section.data:
                message = "a recording has standstills of its own, and JSON lines have times"
                each.report("HW011", message, "after_step", help="standstills go with input_series")
            else:
                found[step] = lasts.seconds or 0.0
        return found

    def check_micro_steps(self, section: Section) -> None:
        """A step has one number of micro-steps, whatever the series."""
        given = [(each, each.get("micro_steps")) for each in self.items(section, "input_series")]
        counts = [(each, count) for each, count in given if count is not None]
        for each, count in counts[1:]:
            if count != counts[0][1]:
                message = f"the first series has {counts[0][1]} micro-steps a step, this one {count}"
                each.report("HW010", message, "micro_steps", help="a step has one number of micro-steps")

    def series(self, section: Section) -> WrittenSeries | None:
        series = self.notation(section, "series", read_series)
        values = self.notation(section, "values", read_values)
        if series is None or values is None:
            return None
        metric, labels = series
        span = section.document.value_span((*section.path, "series"))
        return WrittenSeries(metric, labels, values, section.get("micro_steps"), span)

    def alert_test(self, section: Section) -> AlertTest:
        return AlertTest(
            self.step(section, "eval_time"),
            str(section.get("alertname", "")),
            tuple(map(self.alert, self.items(section, "exp_alerts"))),
            section.document.value_span((*section.path, "eval_time")),
            section.document.value_span((*section.path, "alertname")),
        )

    def alert(self, section: Section) -> ExpectedAlert:
        texts = section.get("exp_annotations")
        value = section.get("exp_value")
        return ExpectedAlert(
            {key: text for key, text in self.texts(section, "exp_labels").items() if key != "alertname"},
            None if texts is None else self.texts(section, "exp_annotations"),
            None if value is None else self.number(section, "exp_value"),
        )

    def expr_test(self, section: Section) -> ExprTest | None:
        parsed = parse(str(section.get("expr", "")), rule=False)
        for problem in parsed.problems if section.get("expr") else ():
            span = self.document.text_span((*section.path, "expr"), *problem.span)
            found = self.document.at_span(problem.code, problem.message, span, help=problem.help)
            section.diagnostics.append(found)
        if parsed.expression is None:
            return None
        return ExprTest(
            parsed.expression,
            self.step(section, "eval_time"),
            section.get("micro_step"),
            self.length(section, "lookback") if section.get("lookback") else None,
            tuple(map(self.sample, self.items(section, "exp_samples"))),
            section.document.value_span((*section.path, "expr")),
        )

    def sample(self, section: Section) -> tuple[tuple[tuple[str, str], ...], float]:
        labels = self.notation(section, "labels", read_labels) if section.get("labels") else ()
        return labels or (), self.number(section, "value")

    def expected(self, section: Section, key: str) -> tuple[Expected, ...] | None:
        if not isinstance(section.get(key), list):
            return None
        items = self.items(section, key)
        return tuple(
            Expected(
                dict(item.data),
                self.document.value_span(item.path),
                self.document.value_span((*item.path, "rule") if "rule" in item.data else item.path),
            )
            for item in items
        )

    # Values

    def items(self, section: Section, key: str) -> Iterator[Section]:
        """The mappings of a list."""
        found = section.get(key)
        for position, item in enumerate(found if isinstance(found, list) else []):
            path = (*section.path, key, position)
            if isinstance(item, dict) and path not in section.refused:
                yield Section(section.document, path, item, section.refused, section.diagnostics)

    def notation(self, section: Section, key: str, read: Any) -> Any:
        path = (*section.path, key)
        text = self.written(path, section.get(key))
        if text is None:
            return None
        found = read(text)
        if isinstance(found, Trouble):
            span = self.document.text_span(path, found.start, found.end)
            section.diagnostics.append(self.document.at_span(UNREADABLE, found.message, span, help=found.help))
            return None
        return found

    def texts(self, section: Section, key: str) -> dict[str, str]:
        values = section.get(key, {})
        return {name: self.written((*section.path, key, name), value) or "" for name, value in values.items()}

    def written(self, path: KeyPath, value: Any) -> str | None:
        """Text as it stands in the file, whatever YAML makes of it."""
        if value is None:
            return None
        return value if isinstance(value, str) else self.document.written(path) or str(value)

    def number(self, section: Section, key: str) -> float:
        text = self.written((*section.path, key), section.get(key))
        value = number((text or "nan").strip())
        if value != value and (text or "nan").strip().lstrip("+-").lower() != "nan":
            section.report("HW009", f'"{key}" must be a number, NaN or Inf, not "{text}"', key)
        return value

    def step(self, section: Section, key: str) -> int:
        written = section.get(key, 0)
        found = read_step(written)
        if found is None:
            section.report("HW010", f'"{key}" is a whole number of steps', key, help="one second is one step")
        return found or 0

    def length(self, section: Section, key: str) -> int:
        return self.step(section, key) or 1 if section.get(key) is not None else 1


class _Anybody(Mapping[str, Any]):
    """Receivers, whatever they are called: in a test nothing is sent."""

    def __contains__(self, _: object) -> bool:
        return True

    def __getitem__(self, name: str) -> Any:
        raise KeyError(name)

    def __iter__(self) -> Iterator[str]:
        return iter(())

    def __len__(self) -> int:
        return 0


def _located(source: str, folder: Path) -> str:
    return source if source.startswith(BUILTIN) else (folder / source).as_posix()
