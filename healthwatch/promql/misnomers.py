"""Other names of functions and aggregations, and calls of what PromQL has an operator for."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from healthwatch.promql.signatures import FUNCTIONS

if TYPE_CHECKING:
    from healthwatch.promql.ast import ValueType

_OVER_TIME = "_over_time"
_PLAIN = r"[\w:.]+(\{[^}]*\})?"
_SAME = frozenset(("count", "max", "min", "quantile", "sum"))
_MODULES = frozenset(("math", "mint", "mnp", "ms", "np", "numpy", "ops", "pd", "torch"))

AGGREGATIONS: Mapping[str, str] = {
    "average": "avg",
    "mean": "avg",
    "median": "quantile",
    "std": "stddev",
    "stdev": "stddev",
    "var": "stdvar",
    "variance": "stdvar",
    "maximum": "max",
    "minimum": "min",
    "percentile": "quantile",
}
"""Other names of aggregations."""

OF_TWO: Mapping[tuple[str, tuple[ValueType | None, ...]], str] = {
    ("max", ("vector", "scalar")): "clamp_min({0}, {1})",
    ("max", ("scalar", "vector")): "clamp_min({1}, {0})",
    ("max", ("scalar", "scalar")): "max_of({0}, {1})",
    ("max", ("vector", "vector")): "{0} > {1} or {1}",
    ("min", ("vector", "scalar")): "clamp_max({0}, {1})",
    ("min", ("scalar", "vector")): "clamp_max({1}, {0})",
    ("min", ("scalar", "scalar")): "min_of({0}, {1})",
    ("min", ("vector", "vector")): "{0} < {1} or {1}",
}
"""The larger or the smaller of two, by their types."""

_FUNCTIONS: Mapping[str, str] = {
    "ewma": "ema({0})",
    "first": "first_over_time({0})",
    "holt_winters": "double_exponential_smoothing({0})",
    "isfinite": "{1} unless nonfinite({0})",
    "isinf": "nonfinite({0})",
    "isnan": "nonfinite({0})",
    "is_nan": "nonfinite({0})",
    "lag": "{1} offset {2}",
    "last": "last_over_time({0})",
    "len": "count({0})",
    "log": "ln({0}), log2({0}) or log10({0})",
    "mad": "mad_over_time({0})",
    "moving_average": "avg_over_time({0})",
    "pow": "{1} ^ {2}",
    "power": "{1} ^ {2}",
    "prev": "{1} offset {2}",
    "previous": "{1} offset {2}",
    "rolling_mean": "avg_over_time({0})",
    "shift": "{1} offset {2}",
    "size": "count({0})",
    "top_k": "topk({0})",
}
"""Other names of functions; `{0}` stands for the arguments, `{1}` and `{2}` for one each."""

_HISTOGRAMS: Mapping[str, str] = {
    "histogram_avg": "avg({0})",
    "histogram_count": "count({0})",
    "histogram_quantile": "quantile({0})",
    "histogram_stddev": "stddev({0})",
    "histogram_stdvar": "stdvar({0})",
    "histogram_sum": "sum({0})",
}

NO_IF = "there is no if: x > 3 alone keeps what holds; (a and x > 3) or b is a where x > 3, and b elsewhere"


def placed(form: str, args: Sequence[str], place: str) -> str:
    """A form with its arguments, in parentheses where it stands beside the operator `place` that would part it."""
    plain, written = form.removeprefix("{"), form.format(*args)
    tight = re.search(r" (\^|offset) ", plain) and place not in ("^", "[")
    return written if plain == form or not place or tight else f"({written})"


def of_function(name: str, args: Sequence[str], *, over_time: bool = False, place: str = "") -> str:
    """Of a function that does not exist; `args` as they are written, the first of which may be a range.

    `place` is the operator of which the call is an operand, if it is.
    """
    if share := re.fullmatch(r"p([0-9]{1,2}|100|9{3,5})(_over_time)?", name):
        digits = share[1]
        quantile = 1.0 if digits == "100" else int(digits) / 10 ** max(2, len(digits))
        return of_function(f"percentile{share[2] or ''}", [f"{quantile:g}", *args], over_time=over_time)
    plain = name.removesuffix(_OVER_TIME)
    known = AGGREGATIONS.get(plain)
    if known == "quantile":
        args = _shared(plain, args)
    if known is not None:
        fitting = args if len(args) == (2 if known == "quantile" else 1) else ["..."]
        return f"write {known}{_OVER_TIME if name != plain or over_time else ''}({', '.join(fitting)})"
    if name in ("if", "iff", "iif"):
        return NO_IF
    form = _FUNCTIONS.get(name, "")
    if re.search(r"(_over_time|^ema)\(\{0\}", form) and not over_time:
        args = _windowed(args)
    each = [text if re.fullmatch(_PLAIN, text) else f"({text})" for text in args]
    if "offset" in form:
        steps = args[1] if len(args) > 1 else "1"
        each = [each[0] if args and re.fullmatch(_PLAIN, args[0]) else "...", steps if steps.isdigit() else "..."]
    return f"write {placed(form, (', '.join(args), *each, '...', '...'), place)}" if form else ""


def of_method(owner: str, name: str, args: Sequence[str], *, place: str) -> str:
    """Of a call with a dot: of a function in a module, or of a method."""
    args = args if owner in _MODULES else [owner, *args]
    ranged = any("[" in each for each in args)
    if ranged and f"{name}{_OVER_TIME}" in FUNCTIONS:
        name += _OVER_TIME
    if name in FUNCTIONS or name in _SAME:
        return f"write {name}({', '.join(args)})"
    return of_function(name, args, over_time=ranged, place=place)


def _windowed(args: Sequence[str]) -> Sequence[str]:
    """A selector with its window, which may be the second argument."""
    if not args or not re.fullmatch(_PLAIN, args[0]):
        return ["..."]
    return [f"{args[0]}[{args[1] if len(args) > 1 and args[1].isdigit() else 50}]"]


def _shared(plain: str, args: Sequence[str]) -> Sequence[str]:
    """The share that a quantile is of (a percentage is divided), and what is asked for it."""
    numbers = [each for each in args if re.fullmatch(r"[0-9]+([.][0-9]+)?", each)] if plain == "percentile" else []
    others = [each for each in args if each not in numbers]
    if not numbers:
        return ["0.5" if plain == "median" else "0.99", *others]
    share = float(numbers[0])
    return [f"{share / 100 if share > 1 else share:g}", *others]


def of_histogram(name: str, args: str) -> str:
    """Of a function on histograms, and of `info`."""
    if name == "info":
        return "join the labels: ... * on (...) group_left (...) ..."
    instead = _HISTOGRAMS.get(name)
    if instead is None:
        return "a sample is one number, without buckets"
    along = instead.partition("(")[0] + _OVER_TIME
    return f"a sample is one number, without buckets: write {instead.format(args)}, or {along} over a window"
