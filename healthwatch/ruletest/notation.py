"""Prometheus' notation of test series: `metric{label="value"}` and `1 2+3x4 _x2 stale`."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

from healthwatch.promql import ast, parse
from healthwatch.promql.tokens import parse_number, parse_steps
from healthwatch.ruletest.model import Sample
from healthwatch.stream.series import METRIC_NAME, LabelSet, label_set

MOST_VALUES = 1_000_000
"""A series may not be longer: `1x99999999` is a slip."""


@dataclass(frozen=True, slots=True)
class Trouble:
    """What can't be read, between two offsets of the text."""

    message: str
    start: int
    end: int
    help: str = ""


# No hexadecimal: 0x5 is six zeros.
_NUMBER = r"[+-]?(?:inf(?:inity)?|nan|(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:e[+-]?[0-9]+)?)"
_ITEM = re.compile(
    rf"_(?:x(?P<gaps>\d+))?|stale(?:x(?P<stales>\d+))?"
    rf"|(?P<value>{_NUMBER})(?:(?P<step>[+-]{_NUMBER.removeprefix('[+-]?')})?x(?P<times>\d+))?",
    re.IGNORECASE,
)


def read_values(text: str) -> tuple[Sample, ...] | Trouble:
    """`a+bxn` is a and n more, each b higher; `axn` the same value n + 1 times; `_` no sample, `_xn` n of them."""
    samples: list[Sample] = []
    for word in re.finditer(r"\S+", text):
        item = _ITEM.fullmatch(word[0])
        if item is None:
            help_ = "such as 1, 0+2x10, 5x3, _, _x4, stale, NaN, Inf"
            return Trouble(f'"{word[0]}" is no value of a series', word.start(), word.end(), help_)
        if len(samples) + _count(item) > MOST_VALUES:
            return Trouble(f"a series has at most {MOST_VALUES} values", word.start(), word.end())
        samples += _samples(item)
    return tuple(samples)


def _count(item: re.Match[str]) -> int:
    return 1 + sum(int(item[name] or 0) for name in ("gaps", "stales", "times"))


def _samples(item: re.Match[str]) -> list[Sample]:
    if item[0].startswith("_"):
        return [None] * int(item["gaps"] or 1)
    if item["value"] is None:
        return ["stale"] * (int(item["stales"] or 0) + 1)
    value, step = number(item["value"]), number(item["step"] or "0")
    samples: list[Sample] = [value]
    for _ in range(int(item["times"] or 0)):
        value += step  # again and again, as Prometheus does: a product would round differently
        samples.append(value)
    return samples


def number(text: str) -> float:
    """A number with an optional sign, `nan` or `inf`; NaN for anything else."""
    digits = text.lstrip("+-")
    value = math.inf if digits.lower() in ("inf", "infinity") else parse_number(digits)
    return math.nan if value is None else -value if text.startswith("-") else value


def read_series(text: str) -> tuple[str, LabelSet] | Trouble:
    """The metric and the labels of `metric{label="value"}`."""
    found = _read(text)
    if not isinstance(found, Trouble) and not found[0]:
        return Trouble("this names no metric", 0, len(text), 'write metric{label="value"}')
    return found


def _read(text: str) -> tuple[str, LabelSet] | Trouble:
    parsed = parse(text, rule=False)
    if parsed.expression is None:
        problem = parsed.problems[0]
        return Trouble(problem.message, *problem.span, problem.help)
    node = parsed.expression.tree
    if not isinstance(node, ast.VectorSelector) or node.offset or node.at is not None:
        return Trouble('this is no series: write metric{label="value"}', 0, len(text))
    labels = dict(_label(matcher) for matcher in node.matchers)
    metric = node.metric or labels.pop(METRIC_NAME, "")
    wrong = next((matcher for matcher in node.matchers if matcher.op != "="), None)
    if wrong is not None:
        return Trouble(f"a series has {wrong.name}=, not {wrong.op}", *wrong.span)
    return metric, label_set(labels)


def _label(matcher: ast.Matcher) -> tuple[str, str]:
    return matcher.name, matcher.value


def read_labels(text: str) -> LabelSet | Trouble:
    """The labels of an expected sample, with `__name__` where there is one: `{a="b"}`, `metric{a="b"}` or `{}`."""
    if text.strip() in ("", "{}"):
        return ()
    found = _read(text)
    if isinstance(found, Trouble):
        return found
    metric, labels = found
    return tuple(sorted((*labels, *(((METRIC_NAME, metric),) if metric else ()))))


def read_step(written: int | str) -> int | None:
    """A point or length on the step axis: `10`, or as Prometheus has it `10s` (one second is one step)."""
    if isinstance(written, int):
        return written
    found = parse_steps(written)
    return int(found) if found is not None and found == int(found) else None
