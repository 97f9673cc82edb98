"""Reading one parameter's value, as YAML gave it: the value to use, or why it can't be used."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from typing import Any

from healthwatch.diagnostics import did_you_mean, suggest
from healthwatch.promql.regex import compile_regex
from healthwatch.rulefile.conditions.problems import Bad, Scope
from healthwatch.rulefile.conditions.spec import Kind, Parameter, number
from healthwatch.stream.ticks import parse_duration
from healthwatch.yamlfile import number_hint

METRIC_NAME = re.compile(r"[A-Za-z_:][A-Za-z0-9_:]*")
LABEL_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
MOST_STEPS = 1_000_000_000
MATCH_OPERATORS = ("=~", "!~", "!=")


def show(value: object) -> str:
    """A value as its YAML file has it, more or less."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return "nothing" if value is None else f'"{value}"' if isinstance(value, str) else str(value)


def read_value(written: Any, parameter: Parameter, scope: Scope) -> Any | Bad:
    """The parameter's value, `$name` replaced by what `params` says."""
    if isinstance(written, str) and written.startswith("$") and parameter.kind in _NUMERIC:
        name = written[1:]
        if name not in scope.params:
            return Bad(f'"{written}" is not among the params', did_you_mean(name, scope.params), "undefined parameter")
        written = scope.params[name]
    return _READERS[parameter.kind](written, parameter)


def _number(written: Any, parameter: Parameter) -> float | Bad:
    if isinstance(written, bool) or not isinstance(written, (int, float)):
        return Bad(f'"{parameter.name}" is a number, not {show(written)}', _number_advice(written))
    if not math.isfinite(written):
        return Bad(f'"{parameter.name}" must be finite: nothing compares with {written}', kind="out of range")
    return _in_range(float(written), parameter)


def _number_advice(written: Any) -> str:
    """YAML 1.1 takes 1e-3 for text: it wants a dot."""
    if not isinstance(written, str):
        return ""
    if number_hint(written):
        return f"YAML reads {written} as text: write {number_hint(written)}"
    try:
        value = float(written)
    except ValueError:
        return ""
    plain = repr(value)
    return f"write {plain if '.' in plain else plain.replace('e', '.0e')} without quotes"


def _in_range(value: float, parameter: Parameter) -> float | Bad:
    least, most = parameter.least, parameter.most
    strict = parameter.open_bounds
    low = least is not None and (value < least or (strict and value == least))
    high = most is not None and (value > most or (strict and value == most))
    if not (low or high):
        return value
    return Bad(f'"{parameter.name}" {_range_text(parameter)}, this is {number(value)}', kind="out of range")


def _range_text(parameter: Parameter) -> str:
    least, most, strict = parameter.least, parameter.most, parameter.open_bounds
    if least is not None and most is not None:
        return f"lies between {number(least)} and {number(most)}"
    if least is not None:
        return f"must be {'more than' if strict else 'at least'} {number(least)}"
    return f"must be {'less than' if strict else 'at most'} {number(most or 0)}"


def _whole(written: Any, parameter: Parameter) -> int | Bad:
    what = "a whole number of steps" if parameter.kind == "steps" else "a whole number"
    if isinstance(written, bool) or not isinstance(written, (int, float)):
        unit = isinstance(written, str) and parse_duration(written) is not None
        help_ = "windows count steps: leave out the unit" if unit else ""
        return Bad(f'"{parameter.name}" is {what}, not {show(written)}', help_)
    if not math.isfinite(written) or written != int(written):
        return Bad(f'"{parameter.name}" is {what}, not {written}', kind="out of range")
    least = int(parameter.least or 1)
    if written < least:
        return Bad(f'"{parameter.name}" must be at least {least}, this is {written}', kind="out of range")
    if written > MOST_STEPS:
        return Bad(f'"{parameter.name}" must be at most {MOST_STEPS:,}, this is {written}', kind="out of range")
    return int(written)


def _choice(written: Any, parameter: Parameter) -> str | Bad:
    if written in parameter.choices and isinstance(written, str):
        return written
    message = f'"{parameter.name}" is one of {", ".join(parameter.choices)}, not {show(written)}'
    return Bad(message, did_you_mean(written, parameter.choices), kind="out of range")


def _flag(written: Any, parameter: Parameter) -> bool | Bad:
    return written if isinstance(written, bool) else Bad(f'"{parameter.name}" is true or false, not {show(written)}')


def _wall(written: Any, parameter: Parameter) -> float | Bad:
    duration = parse_duration(written)
    if duration is None or duration.seconds is None or duration.seconds <= 0:
        return Bad(f'"{parameter.name}" is a time by the clock, not {show(written)}', "write it with its unit: 10m")
    return duration.seconds


def _metric(written: Any, parameter: Parameter) -> tuple[str, ...] | Bad:
    names = written if isinstance(written, list) else [written]
    if not names:
        return Bad(f'"{parameter.name}" names no metric')
    for position, name in enumerate(names):
        below = (position,) if isinstance(written, list) else ()
        if not isinstance(name, str):
            return Bad(f'"{parameter.name}" is the name of a metric, not {show(name)}', below=below)
        if not METRIC_NAME.fullmatch(name):
            help_ = "labels go into select" if "{" in name else ""
            return Bad(f"{show(name)} can't be the name of a metric", help_, below=below)
        if name in names[:position]:
            return Bad(f"{name} is named twice", kind="conflict", below=below)
    return tuple(names)


def _count_or_metric(written: Any, parameter: Parameter) -> int | str | Bad:
    if isinstance(written, str) and METRIC_NAME.fullmatch(written):
        return written
    if isinstance(written, str):
        return Bad(f'"{parameter.name}" is a whole number or the name of a metric, not {show(written)}')
    return _whole(written, parameter)


def _labels(written: Any, parameter: Parameter) -> tuple[str, ...] | Bad:
    if not isinstance(written, list):
        help_ = f"write [{written}]" if isinstance(written, str) else ""
        return Bad(f'"{parameter.name}" is a list of labels, not {show(written)}', help_)
    if not written and parameter.name == "over":
        return Bad('"over" names no label', "leave it out, or name the labels to aggregate away", "out of range")
    for position, name in enumerate(written):
        if not isinstance(name, str) or not LABEL_NAME.fullmatch(name):
            return Bad(f"{show(name)} can't be the name of a label", below=(position,))
    return tuple(dict.fromkeys(written))


def _select(written: Any, parameter: Parameter) -> tuple[tuple[str, str, str], ...] | Bad:
    if not isinstance(written, Mapping):
        return Bad(
            f'"{parameter.name}" holds a value per label, not {show(written)}', 'write {param: "=~.*attention.*"}'
        )
    matchers = [_matcher(label, value) for label, value in written.items()]
    bad = [found for found in matchers if isinstance(found, Bad)]
    return bad[0] if bad else tuple(found for found in matchers if not isinstance(found, Bad))


def _matcher(label: Any, value: Any) -> tuple[str, str, str] | Bad:
    if not isinstance(label, str) or not LABEL_NAME.fullmatch(label):
        return Bad(f"{show(label)} can't be the name of a label", below=(label,), on="key")
    if isinstance(value, bool) or not isinstance(value, (str, int, float)):
        help_ = "quote it" if isinstance(value, bool) else ""
        return Bad(f"a label's value is text, not {show(value)}", help_, below=(label,))
    text = str(value)
    op = next((op for op in MATCH_OPERATORS if text.startswith(op)), "")
    pattern = text.removeprefix(op)
    if op in ("=~", "!~"):
        try:
            compile_regex(pattern)
        except ValueError as error:
            return Bad(f"{show(pattern)} is not a regular expression: {error}", kind="bad pattern", below=(label,))
    return (label, op or "=", pattern)


_NUMERIC = frozenset(("number", "steps", "count", "count or metric"))
_READERS: Mapping[Kind, Callable[[Any, Parameter], Any | Bad]] = {
    "number": _number,
    "steps": _whole,
    "count": _whole,
    "choice": _choice,
    "flag": _flag,
    "wall": _wall,
    "metric": _metric,
    "count or metric": _count_or_metric,
    "labels": _labels,
    "select": _select,
}


def unknown_key(name: object, known: tuple[str, ...], what: str) -> Bad:
    return Bad(f"{what} has no key {show(name)}", suggest(name, known, "it has"), "unknown key", on="key")
