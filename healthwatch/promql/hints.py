"""What people write who come from other languages, and what it is called in PromQL."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise, takewhile
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from healthwatch.promql.ast import ValueType
    from healthwatch.promql.tokens import Token

_OVER_TIME = "_over_time"

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
    "holt_winters": "double_exponential_smoothing({0})",
    "isfinite": "{0} unless nonfinite({0})",
    "isinf": "nonfinite({0})",
    "isnan": "nonfinite({0})",
    "is_nan": "nonfinite({0})",
    "last": "last_over_time({0})",
    "len": "count({0})",
    "log": "ln({0}), log2({0}) or log10({0})",
    "moving_average": "avg_over_time(x[50])",
    "pow": "{1} ^ {2}",
    "power": "{1} ^ {2}",
    "rolling_mean": "avg_over_time(x[50])",
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

_NOT = "there is no negation: turn the comparison round, or write ... unless ..."
_IF = "there is no if: x > 3 alone keeps what holds; (a and x > 3) or b is a where x > 3, and b elsewhere"

_BAD: Mapping[str, str] = {
    "&": "write and",
    "|": "write or",
    "!": _NOT,
    "?": _IF,
    "$": "the name of a parameter begins with a letter or _",
}

_WORDS: Mapping[str, str] = {
    **dict.fromkeys(("if", "then", "else", "elif"), _IF),
    "div": "write /",
    "mod": "write %",
}

_WRONG_OPERATORS: Mapping[tuple[str, str], str] = {
    ("=", ">"): "write >=",
    ("=", "<"): "write <=",
    ("<", ">"): "write !=",
    ("==", "="): "write ==",
    ("*", "*"): "write ^",
    ("/", "/"): "write floor(... / ...)",
}

_MATCHERS = ("=", "!=", "=~", "!~")


def of_bad(text: str) -> str:
    """Of characters that are no token."""
    return _BAD.get(text[0], "")


def of_number(text: str) -> str:
    """Of what begins as a number does."""
    found = re.match(r"[0-9]+(?=(steps?|it|iters?|iterations?)$)", text)
    return f"write {found[0]}: one step is 1" if found else ""


def of_unexpected(before: Sequence[Token], after: Sequence[Token]) -> str:
    """Of the first token of `after`, which can't stand behind `before`."""
    token = after[0]
    last = before[-1] if before else token
    following = after[1].text if len(after) > 1 else ""
    for pair in ((token.text, following), (last.text, token.text)):
        if pair in _WRONG_OPERATORS:
            return _WRONG_OPERATORS[pair]
    if token.text == "=":
        return "write == to compare"
    if token.text in ("=~", "!~"):
        return f'labels are compared within braces: loss{{split{token.text}"val.*"}}'
    if token.word in ("step", "steps") and last.kind == "number":
        return f"write {last.text}: one step is 1"
    if token.word in ("by", "without") and last.text == ")":
        return f"only an aggregation groups: max {token.word} (...) (...)"
    return _of_word(last, after)


def _of_word(last: Token, after: Sequence[Token]) -> str:
    """Of a word of another language, or of a number's comma."""
    words = [each.word for each in after[:2]]
    negated = "not" in words
    if (following := next((each for each in words if each != "not"), "")) in _AFTER:
        return _AFTER[following](last, after[1 + negated :], negated=negated)
    if words[0] == "," and last.kind == "number":
        return _of_comma(last, after)
    if last.word == "not":
        return _NOT
    return _WORDS.get(words[0]) or _WORDS.get(last.word, "")


def _of_in(last: Token, after: Sequence[Token], *, negated: bool) -> str:
    """Of `in (...)`: numbers are values, strings are those of a label."""
    inside = [each for each in takewhile(lambda each: each.text not in (")", ""), after) if each.text not in ("(", ",")]
    name = last.text if last.kind == "name" else "..."
    if any(each.kind == "string" for each in inside):
        choice = "|".join(each.string for each in inside)
        choice = choice if re.fullmatch(r"[\w|/ -]+", choice) else "...|..."
        return f'labels are compared within braces: loss{{{name}{"!~" if negated else "=~"}"{choice}"}}'
    comparisons = [f"{name} {'!=' if negated else '=='} {each.text}" for each in inside if each.kind == "number"]
    return f"write {(' and ' if negated else ' or ').join(comparisons)}" if comparisons else ""


def _of_is(last: Token, after: Sequence[Token], *, negated: bool) -> str:
    """Of `is NaN` and of `is` for `==`."""
    name = last.text if last.kind == "name" else "..."
    if after[0].word in ("nan", "inf", "infinite", "infinity"):
        return f"write {name} unless nonfinite({name})" if negated else f"write nonfinite({name})"
    return f"write {'!=' if negated else '=='}"


_AFTER: Mapping[str, Callable[..., str]] = {"in": _of_in, "is": _of_is}


def _of_comma(last: Token, after: Sequence[Token]) -> str:
    """Of a comma within a number, between thousands or before the fraction."""
    written, end = "", last.span[1]
    for comma, digits in zip(after[::2], after[1::2], strict=False):
        if comma.text != "," or (comma.span[0], digits.span[0]) != (end, end + 1) or not digits.text.isdigit():
            break
        written, end = f"{written},{digits.text}", digits.span[1]
    if not written or not last.text.isdigit():
        return ""
    if re.fullmatch(r"(,[0-9]{3})+", written):
        return f"write {last.text}{written.replace(',', '')}"
    return f"write {last.text}.{written[1:]}" if written.count(",") == 1 else ""


def of_labels(keyword: str, tokens: Sequence[Token]) -> str:
    """Of labels without parentheses behind `by`, `on` and the like."""
    labels = [tokens[0].text] if tokens[0].kind == "name" else []
    for comma, name in pairwise(tokens[1:]):
        if comma.text == "," and name.kind == "name":
            labels.append(name.text)
        elif comma.kind != "name" or name.text != ",":
            break
    return f"write {keyword} ({', '.join(labels) or '...'})"


def of_brackets(metric: str, tokens: Sequence[Token]) -> str:
    """Of matchers in brackets, where a window stands."""
    inside = list(takewhile(lambda each: each.text not in ("]", ""), tokens))
    texts = [
        f'"{each.text}"' if before.text in _MATCHERS and each.kind != "string" else each.text
        for before, each in pairwise((tokens[-1], *inside))
    ]
    return f"labels stand in braces: {metric}{{{''.join(texts).replace(',', ', ')}}}"


def of_label_value(label: str, op: str, tokens: Sequence[Token]) -> str:
    """Of a label's value without quotes."""
    value, end = "", tokens[0].span[0]
    for token in tokens:
        if token.span[0] != end or token.text in (",", "}", ""):
            break
        value, end = value + token.text, token.span[1]
    return f'write {label}{op}"{value}"' if value else f'write {label}{op}"..."'


def of_function(name: str, args: Sequence[str], *, over_time: bool = False) -> str:
    """Of a function that does not exist; `args` as they are written, the first of which may be a range."""
    plain = name.removesuffix(_OVER_TIME)
    known = AGGREGATIONS.get(plain)
    if known == "quantile":
        args = _shared(plain, args)
    if known is not None:
        fitting = args if len(args) == (2 if known == "quantile" else 1) else ["..."]
        return f"write {known}{_OVER_TIME if name != plain or over_time else ''}({', '.join(fitting)})"
    if name in ("if", "iff", "iif"):
        return _IF
    each = [text if re.fullmatch(r"[\w:.]+(\{[^}]*\})?", text) else f"({text})" for text in (*args, "...", "...")]
    return f"write {_FUNCTIONS[name].format(', '.join(args), *each)}" if name in _FUNCTIONS else ""


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
