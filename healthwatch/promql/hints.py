"""What people write who come from other languages, and what it is called in PromQL."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise, takewhile
from typing import TYPE_CHECKING

from healthwatch.promql.misnomers import NO_IF, of_method
from healthwatch.promql.signatures import FUNCTIONS

if TYPE_CHECKING:
    from healthwatch.promql.tokens import Token

_NOT = "there is no negation: turn the comparison round, or write ... unless ..."

_BAD: Mapping[str, str] = {
    "&": "write and",
    "|": "write or",
    "!": _NOT,
    "?": NO_IF,
    "$": "the name of a parameter begins with a letter or _",
}

_WORDS: Mapping[str, str] = {
    **dict.fromkeys(("if", "then", "else", "elif"), NO_IF),
    "div": "write /",
    "for": "for is a key of the rule, beside expr",
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

_BETWEEN = "write , between matchers"

_BAD_MATCHERS: Mapping[str | tuple[str, str], str] = {
    "~": "write =~",
    "~=": "write =~",
    "!": "write !=",
    "&&": _BETWEEN,
    ("!=", "~"): "write !~",
}

_MATCHERS_MEANT: Mapping[str | tuple[str, str], str] = {
    **dict.fromkeys(("==", ":", "is"), "write ="),
    **dict.fromkeys((">", ">=", "<", "<="), 'a label\'s value is a text: name those that fit, as in layer=~"4|5|6"'),
    ("<", ">"): "write !=",
    ("is", "not"): "write !=",
}

_OPENING, _CLOSING = ("(", "[", "{"), (")", "]", "}")
_LOOSE = frozenset(("==", "!=", "<", "<=", ">", ">=", "and", "or", "unless"))
_NEAR = 100  # tokens that are looked at for what may stand in a text many times
_MATCHERS = ("=", "!=", "=~", "!~")


def of_bad(text: str, before: Sequence[Token], rest: str, *, matchers: bool) -> str:
    """Of characters that are no token, with which `rest` begins; `matchers` within braces."""
    last = before[-1].text if before else ""
    if param := re.match(r"\$[{(]([A-Za-z_]\w*)[})]", rest):
        return f"write ${param[1]}"
    if call := re.match(r"\.(\w+)\(([^()]*)\)", rest):
        return _of_call(before, call[1], call[2], rest[call.end() :].lstrip())
    if (last, text) == ("=", "!"):
        return "write !="
    if matchers:
        return _BAD_MATCHERS.get((last, text)) or _BAD_MATCHERS.get(text) or "a label's value stands in quotes"
    return _BAD.get(text[0], "")


def _of_call(before: Sequence[Token], name: str, inside: str, rest: str) -> str:
    """Of a call with a dot before the function's `name`."""
    owner = before[-1].text if before and before[-1].kind == "name" else "..."
    beside = (before[-2].text if len(before) > 1 else "", rest[:1])
    alone = beside[0] in ("", "(", ",") and beside[1] in ("", ")", ",")
    place = "" if alone else "^" if "^" in beside or "[" in beside else "*"
    return of_method(owner, name, [each.strip() for each in inside.split(",") if each.strip()], place=place)


def of_matcher(word: str, following: str) -> str:
    """Of what stands between a label and its value."""
    return _MATCHERS_MEANT.get((word, following)) or _MATCHERS_MEANT.get(word, "")


def of_number(text: str) -> str:
    """Of what begins as a number does."""
    found = re.match(r"[0-9]+(?=(steps?|it|iters?|iterations?)$)", text)
    return f"write {found[0]}: one step is 1" if found else ""


def of_escape(literal: str, before: Sequence[Token]) -> str:
    """The string with the groups of another language's regular expressions as label_replace has them."""
    if _argument(before[-_NEAR:]) != ("label_replace", 2):
        return literal
    return re.sub(r"\\([0-9]+)(?=[A-Za-z_])|\\([0-9]+)|\\.", _group, literal)


def _group(found: re.Match[str]) -> str:
    return f"${{{found[1]}}}" if found[1] else f"${found[2]}" if found[2] else found[0]


def _of_percent(before: Sequence[Token]) -> str:
    """Of a number with `%`, behind which an operand is missing."""
    end = len(before) - (bool(before) and before[-1].word in ("and", "or", "unless"))
    number, sign = before[end - 2 : end] if end > 1 else (None, None)
    if number is None or sign is None or number.kind != "number" or sign.text != "%":
        return ""
    return f"write {number.number / 100:.15g}: % is the remainder"


def _of_named(before: Sequence[Token], after: Sequence[Token]) -> str:
    """Of an argument with its name, unless it may be a comparison."""
    name, position = _argument(before)
    if len(before) < 2 or before[-1].kind != "name" or before[-2].text not in ("(", ","):
        return ""
    value, depth = [], 0
    for token in after[1:]:
        if (depth == 0 and token.text in (",", ")")) or token.kind == "end":
            break
        depth += (token.text in _OPENING) - (token.text in _CLOSING)
        value.append(token)
    signature = FUNCTIONS.get(name)
    compared = signature.type_of(position) == "vector" if signature and signature.args else token.text != ","
    return "" if compared or not value else f"write {_text(value)}: arguments have no names"


def _argument(before: Sequence[Token]) -> tuple[str, int]:
    """Which function's parentheses are open here, and how many commas stand in them; `{` for matchers."""
    depth = commas = 0
    for position in range(len(before) - 1, -1, -1):
        text = before[position].text
        if depth == 0 and text in _OPENING:
            return (before[position - 1].word if position and text == "(" else text), commas
        depth += (text in _CLOSING) - (text in _OPENING)
        commas += depth == 0 and text == ","
    return "", 0


def of_unexpected(before: Sequence[Token], after: Sequence[Token]) -> str:
    """Of the first token of `after`, which can't stand behind `before`."""
    token = after[0]
    last = before[-1] if before else token
    following = after[1].text if len(after) > 1 else ""
    for pair in ((token.text, following), (last.text, token.text)):
        if pair in _WRONG_OPERATORS:
            return _WRONG_OPERATORS[pair]
    if percent := _of_percent(before):
        return percent
    if token.word == "group" and following in ("by", "without"):
        return f"write {_text([*takewhile(lambda each: each.text not in (')', ''), after[1:])])})"
    if token.text == "=":
        return _of_named(before, after) or "write == to compare"
    if token.word == "and" and _argument(before)[0] == "{":
        return _BETWEEN
    if token.text in ("=~", "!~"):
        return f'labels are compared within braces: loss{{split{token.text}"val.*"}}'
    if token.word in ("step", "steps") and last.kind == "number":
        return f"write {last.text}: one step is 1"
    if token.word in ("by", "without"):
        return f"only an aggregation groups: max {token.word} (...) (...)"
    return _of_word(before, after)


def _of_word(before: Sequence[Token], after: Sequence[Token]) -> str:
    """Of a word of another language, or of a number's comma."""
    last = before[-1] if before else after[0]
    words = [each.word for each in after[:2]]
    negated = "not" in words
    if (following := next((each for each in words if each != "not"), "")) in _AFTER:
        return _AFTER[following](before or after, after[1 + negated :], negated=negated)
    if words[0] == "," and last.kind == "number":
        return _of_comma(last, after)
    if last.word == "not":
        return _NOT
    return _WORDS.get(words[0]) or _WORDS.get(last.word, "")


def _of_in(before: Sequence[Token], after: Sequence[Token], *, negated: bool) -> str:
    """Of `in (...)`: numbers are values, strings are those of a label."""
    inside = [*takewhile(lambda each: each.text not in (")", ""), after[1:])]
    if any(each.kind == "string" for each in inside):
        name = before[-1].text if before[-1].kind == "name" else "..."
        choice = "|".join(each.string for each in inside if each.kind == "string")
        choice = choice if re.fullmatch(r"[\w|/ -]+", choice) else "...|..."
        return f'labels are compared within braces: loss{{{name}{"!~" if negated else "=~"}"{choice}"}}'
    if not any(each.kind == "number" for each in inside):
        return ""
    left, beside = _left(before)
    comparisons = [f"{left} {'!=' if negated else '=='} {each.strip()}" for each in _text(inside).split(",")]
    written = (" and " if negated else " or ").join(comparisons)
    return f"write {_apart(written, beside, after[2 + len(inside) :], tight=len(comparisons) == 1)}"


def _of_is(before: Sequence[Token], after: Sequence[Token], *, negated: bool) -> str:
    """Of `is NaN` and of `is` for `==`."""
    left, beside = _left(before)
    if after[0].word in ("none", "null", "nil"):
        window = f"{left}[50]" if re.fullmatch(r"[\w:]+(\{[^}]*\})?", left) else f"({left})[50:]"
        return (
            f"there is no None: absent({left}) is 1 where nothing came, present_over_time({window}) where something did"
        )
    if after[0].word in ("nan", "inf", "infinite", "infinity"):
        filtered = f"{left} unless nonfinite({left})"
        return f"write {_apart(filtered, beside, after[1:])}" if negated else f"write nonfinite({left})"
    return f"write {'!=' if negated else '=='}"


def _left(before: Sequence[Token]) -> tuple[str, str]:
    """The operand that ends here, and the comparison, `and`, `or`, `unless` or open bracket before it."""
    depth, start = 0, len(before)
    while start:
        token = before[start - 1]
        if depth == 0 and (token.text in (*_OPENING, ",") or token.word in _LOOSE):
            break
        depth += (token.text in _CLOSING) - (token.text in _OPENING)
        start -= 1
    operand = before[start:]
    joined = bool(operand) and operand[0].word in ("bool", "on", "ignoring")
    return (_text(operand) if operand and not joined else "..."), before[start - 1].word if start else ""


def _text(tokens: Sequence[Token]) -> str:
    """Tokens as they are written, with one blank where there are some or a comment."""
    gaps = [" " * (end.span[1] < start.span[0]) for end, start in pairwise(tokens)]
    return "".join(f"{gap}{each.text}" for gap, each in zip(("", *gaps), tokens, strict=True))


def _apart(written: str, beside: str, after: Sequence[Token], *, tight: bool = False) -> str:
    """In parentheses beside operators; what is `tight` needs none beside `and`, `or` and `unless`."""
    following = after[0].word if after else ""
    free = ("", "(", ")", ",", *(("and", "or", "unless") if tight else ()))
    return written if beside in free and following in free else f"({written})"


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
