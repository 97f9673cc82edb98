"""The notation of series in promqltest scripts: `metric{label="value"} 1 2+3x4 _x2 stale`."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal, TypeAlias

from healthwatch.promql.tokens import parse_number, parse_steps, tokenize
from healthwatch.stream.series import METRIC_NAME, LabelSet, label_set
from healthwatch.stream.ticks import TICKS_PER_STEP


@dataclass(frozen=True, slots=True)
class Histogram:
    """A histogram as it is written, `schema:0` left out: enough to recognise one that is only passed on."""

    text: str


Sample: TypeAlias = float | Histogram | Literal["stale"] | None
"""A value, a histogram, an end of the series, or nothing."""


class ScriptError(Exception):
    """The script can't be read."""


@dataclass(frozen=True, slots=True)
class WrittenSeries:
    """`labels` hold `__name__` where the script gives one."""

    labels: LabelSet
    samples: tuple[Sample, ...]

    @property
    def has_histogram(self) -> bool:
        return any(isinstance(sample, Histogram) for sample in self.samples)


# There are no hexadecimal numbers here: 0x3 is four times 0.
_NUMBER = r"[+-]?(?:inf\b|nan\b|(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:e[+-]?[0-9]+)?)"
_ITEM = re.compile(
    rf"(?P<gap>_)(?:x(?P<gaps>\d+))?"
    rf"|(?P<stale>stale)(?:x(?P<stales>\d+))?"
    rf"|(?P<histogram>\{{\{{[^}}]*\}}\}})(?P<added>\s*[+-]\s*\{{\{{[^}}]*\}}\}})?(?:x(?P<histograms>\d+))?"
    rf"|(?P<value>{_NUMBER})(?:(?P<step>{_NUMBER.replace('?', '', 1)})?x(?P<times>\d+))?",
    re.IGNORECASE,
)


def read_series(line: str) -> WrittenSeries:
    """A line of `load` or of an expected result. Raises ScriptError."""
    labels, end = _read_metric(line)
    return WrittenSeries(labels, tuple(read_samples(line[end:])))


def _read_metric(line: str) -> tuple[LabelSet, int]:
    """The label set in front, and where it ends."""
    tokens = list(tokenize(line).tokens)
    labels: dict[str, str] = {}
    end = 0
    if tokens[0].kind == "name":
        labels[METRIC_NAME] = tokens[0].text
        end = tokens.pop(0).span[1]
    if tokens[0].text != "{" or (end and not line[end:].startswith("{")):
        if not end:
            raise ScriptError(f"no series in {line!r}")
        return _with_name(labels), end
    tokens.pop(0)
    while tokens[0].text != "}":
        key = tokens.pop(0)
        name = key.string if key.kind == "string" else key.text
        if tokens[0].text == "=":
            labels[name] = tokens[1].string
            del tokens[:2]
        elif key.kind == "string":
            labels[METRIC_NAME] = name
        else:
            raise ScriptError(f"no label in {line!r}")
        if tokens[0].text == ",":
            tokens.pop(0)
    return _with_name(labels), tokens[0].span[1]


def _with_name(labels: dict[str, str]) -> LabelSet:
    name = ((METRIC_NAME, labels[METRIC_NAME]),) if METRIC_NAME in labels else ()
    return tuple(sorted((*label_set(labels), *name)))


def read_samples(text: str) -> list[Sample]:
    """The samples of a series; `1+2x3` are four of them, `_x3` three gaps."""
    samples: list[Sample] = []
    text = text.partition("#")[0].strip()
    while text:
        found = _ITEM.match(text)
        if found is None or not (found.end() == len(text) or text[found.end()].isspace()):
            raise ScriptError(f"no sample in {text!r}")
        samples += _item(found)
        text = text[found.end() :].lstrip()
    return samples


def _item(found: re.Match[str]) -> list[Sample]:
    if found["gap"]:
        return [None] * int(found["gaps"] or 1)
    if found["stale"]:
        return ["stale"] * (int(found["stales"] or 0) + 1)
    if found["histogram"]:
        written, added = _plain(found["histogram"]), found["added"] or ""
        return [
            Histogram(written + (f" and {i} times {_plain(added)}" if added and i else ""))
            for i in range(int(found["histograms"] or 0) + 1)
        ]
    value, step = number(found["value"]), number(found["step"] or "0")
    # Prometheus adds the step again and again; a product would round differently.
    samples: list[Sample] = [value]
    for _ in range(int(found["times"] or 0)):
        value += step
        samples.append(value)
    return samples


def _plain(histogram: str) -> str:
    """Its fields in one order."""
    fields = re.findall(r"\w+:(?:\[[^]]*\]|[^\s}]+)", histogram)
    return " ".join(sorted(field for field in fields if field != "schema:0"))


def number(text: str) -> float:
    """A number with an optional sign. Raises ScriptError."""
    digits = text.strip().lstrip("+-")
    value = float(digits) if digits.lower() in ("inf", "nan") else parse_number(digits)
    if value is None or len(text.strip()) - len(digits) > 1:
        raise ScriptError(f"{text!r} is no number")
    return -value if text.strip().startswith("-") else value


def read_time(text: str) -> int:
    """A time or duration, `5m` or seconds, as ticks. Raises ScriptError."""
    digits = text.strip().lstrip("-")
    seconds = parse_number(digits)
    if seconds is None:
        seconds = parse_steps(digits)
    if seconds is None:
        raise ScriptError(f"{text!r} is no time")
    ticks = round(seconds * TICKS_PER_STEP)
    return -ticks if text.strip().startswith("-") else ticks
