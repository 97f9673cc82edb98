"""Silences: who is asked to be quiet about what, and for how long. Recording goes on; nobody is told."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal, TypeAlias

from healthwatch.alerting.book import Book
from healthwatch.alerting.ledger import Ledger
from healthwatch.alerting.model import Incident, LabelSet, Now
from healthwatch.promql.regex import compile_regex, full_match

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
        return self.accepts(labels.get(self.name, ""))

    def accepts(self, found: str) -> bool:
        """Whether the label may have this value; a regular expression looks at each value once."""
        known = self._answers.get(found)
        if known is None:
            same = self._fits(found)
            known = self._answers[found] = same != self.operator.startswith("!")
        return known

    @cached_property
    def _answers(self) -> dict[str, bool]:
        return {}

    @cached_property
    def _fits(self) -> Callable[[str], bool]:
        return full_match(self.value) if "~" in self.operator else self.value.__eq__

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
    applying = tuple(each for each in silences if each.in_force(now))
    page = book.page(incident.rule)
    firing = page.ledger.firing()
    held = bool(applying) and page.silenced.of(
        (firing,), (applying, shared), lambda: _all_silenced(applying, shared, _firing(page.ledger))
    )
    return incident if held == incident.silenced else replace(incident, silenced=held)


def covered(incident: Incident, silences: Collection[Silence], labels: Mapping[str, str], now: Now) -> bool:
    """Whether all that an incident lists is silenced; for one that no rule has opened."""
    shared = {**labels, "alertname": incident.rule, "severity": incident.severity}
    applying = [each for each in silences if each.in_force(now)]
    return bool(applying) and _all_silenced(applying, shared, (sample.labels for sample in incident.firing))


def _firing(ledger: Ledger) -> Iterator[LabelSet]:
    return (ledger.labels[row] for row in ledger.firing().tolist())


def _all_silenced(silences: Sequence[Silence], shared: Mapping[str, str], alerts: Iterable[LabelSet]) -> bool:
    """Asks no further once an alert is found that none of them covers."""
    remaining = [  # of each silence that fits what all alerts share: the matchers on what they do not
        [each for each in silence.matchers if each.name not in shared]
        for silence in silences
        if all(each.matches(shared) for each in silence.matchers if each.name in shared)
    ]
    if not all(remaining):
        return True
    return bool(remaining) and all(
        any(all(matcher.matches(named) for matcher in own) for own in remaining) for named in map(dict, alerts)
    )
