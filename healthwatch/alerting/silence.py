"""Silences: who is asked to be quiet about what, and for how long. Recording goes on; nobody is told."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal, TypeAlias

from healthwatch.alerting.book import Book
from healthwatch.alerting.model import Incident, LabelSet, Now
from healthwatch.promql.regex import compile_regex

Operator: TypeAlias = Literal["=", "!=", "=~", "!~"]

_MATCHER = re.compile(r"""\s*([a-zA-Z_][a-zA-Z0-9_]*)\s*(=~|!~|!=|=)\s*("(?:[^"\\]|\\.)*"|.*?)\s*""", re.DOTALL)
_ESCAPED = re.compile(r"\\(.)", re.DOTALL)


@dataclass(frozen=True)
class Matcher:
    """One label and what its value must be; a label that is absent has the empty value."""

    name: str
    operator: Operator
    value: str

    def matches(self, labels: Mapping[str, str]) -> bool:
        found = labels.get(self.name, "")
        same = self._regex.fullmatch(found) is not None if "~" in self.operator else found == self.value
        return same != self.operator.startswith("!")

    @cached_property
    def _regex(self) -> re.Pattern[str]:
        pattern: re.Pattern[str] = compile_regex(self.value)
        return pattern

    def __str__(self) -> str:
        return f"{self.name}{self.operator}{self.value}"


@dataclass(frozen=True)
class Silence:
    """In force while its matchers fit, from `starts` to `ends` (unix seconds) and up to `until_step`."""

    id: str
    matchers: tuple[Matcher, ...]
    starts: float
    ends: float | None = None
    until_step: int | None = None
    comment: str = ""
    author: str = ""

    def in_force(self, now: Now) -> bool:
        on_time = self.starts <= now.time and (self.ends is None or now.time < self.ends)
        return on_time and (self.until_step is None or now.step <= self.until_step)


def parse_matcher(text: str) -> Matcher:
    """`alertname=LossSpike`, `param=~".*attention.*"`.

    Raises:
        ValueError: it is no matcher, or its regular expression is none.
    """
    found = _MATCHER.fullmatch(text)
    if found is None:
        raise ValueError(f"{text!r} is no matcher: write label=value, label!=value, label=~regex or label!~regex")
    name, operator, value = found.groups()
    if value.startswith('"') and value.endswith('"') and len(value) > 1:
        value = _ESCAPED.sub(r"\1", value[1:-1])
    matcher = Matcher("alertname" if name == "rule" else name, _operator(operator), value)
    if "~" in operator:
        try:
            compile_regex(value)
        except Exception as error:
            raise ValueError(f"{text!r}: {value!r} is no regular expression: {error}") from None
    return matcher


def _operator(text: str) -> Operator:
    operators: dict[str, Operator] = {"=": "=", "!=": "!=", "=~": "=~", "!~": "!~"}
    return operators[text]


def mark(
    incident: Incident, silences: Collection[Silence], labels: Mapping[str, str], book: Book, now: Now
) -> Incident:
    """The incident with `silenced` as it stands now: every alert that fires must be silenced.

    `labels` are those that all its alerts share: run, rank, those of the rule; alertname and severity are added.
    """
    if not incident.active:
        return incident
    shared = {**labels, "alertname": incident.rule, "severity": incident.severity}
    applying = [each for each in silences if each.in_force(now)]
    held = bool(applying) and _all_silenced(applying, shared, book, incident.rule)
    return incident if held == incident.silenced else replace(incident, silenced=held)


def _all_silenced(silences: Sequence[Silence], shared: Mapping[str, str], book: Book, rule: str) -> bool:
    ledger = book.page(rule).ledger
    firing: list[LabelSet] = [ledger.labels[row] for row in ledger.firing()]
    for silence in silences:
        own = [each for each in silence.matchers if each.name not in shared]
        if not all(each.matches(shared) for each in silence.matchers if each.name in shared):
            continue
        firing = [labels for labels in firing if not _fits(own, labels)] if own else []
        if not firing:
            return True
    return False


def _fits(matchers: Sequence[Matcher], labels: LabelSet) -> bool:
    named = dict(labels)
    return all(matcher.matches(named) for matcher in matchers)
