"""The grammar of selectors: matchers in braces, ranges in brackets, `offset` and `@`."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Literal, TypeVar

from healthwatch.promql import ast, hints
from healthwatch.promql.ast import Expr, Matcher
from healthwatch.promql.cursor import Cursor
from healthwatch.promql.regex import compile_regex
from healthwatch.promql.tokens import Token, ticks

_OPERATORS: dict[str, Literal["=", "!=", "=~", "!~"]] = {"=": "=", "!=": "!=", "=~": "=~", "!~": "!~"}
_MOST_TICKS = 2**62

Timed = TypeVar("Timed", ast.VectorSelector, ast.Subquery)


def valid_label(name: str) -> bool:
    """Prometheus takes any UTF-8 text but the empty one."""
    return bool(name) and not any("\ud800" <= char <= "\udfff" for char in name)


def read_selector(cursor: Cursor) -> ast.VectorSelector:
    """`metric`, `metric{matchers}` or `{matchers}`."""
    start = cursor.now
    name = cursor.take().text if start.kind == "name" else None
    matchers: tuple[Matcher, ...] = ()
    if cursor.accept("{"):
        found = cursor.listed(lambda: _matcher(cursor), "a label name", "}", trailing=True)
        names = [token for token in found if isinstance(token, Token)]
        matchers = tuple(matcher for matcher in found if isinstance(matcher, Matcher))
        name = _one_name(cursor, name, names, matchers)
    span = (start.span[0], cursor.end)
    if name is None and not any(map(_needs_something, matchers)):
        cursor.report("HW111", "a selector needs a metric or a matcher that an absent label fails", span)
    return ast.VectorSelector(name, matchers, 0, None, span)


def _matcher(cursor: Cursor) -> Matcher | Token:
    """One matcher, or the quoted name of the metric."""
    label = cursor.expect_kind('a label name or "}"', "name", "string")
    if label.kind == "string" and cursor.at(",", "}"):
        return label
    name = label.text if label.kind == "name" else label.string
    if not valid_label(name):
        cursor.report("HW113", f"invalid label name {label.text}", label.span)
    if not cursor.at(*_OPERATORS):
        cursor.unexpected("=, !=, =~ or !~", hints.of_matcher(cursor.now.word, cursor.next.word))
    op = _OPERATORS[cursor.take().text]
    mend = hints.of_label_value(name, op, cursor.tokens[cursor.position :])
    value = cursor.expect_kind("a string", "string", help=mend)
    if op in ("=~", "!~"):
        _check_regex(cursor, value)
    return Matcher(name, op, value.string, (label.span[0], value.span[1]))


def _check_regex(cursor: Cursor, value: Token) -> None:
    try:
        compile_regex(value.string)
    except ValueError as error:
        cursor.report("HW110", f"illegal regular expression: {error}", value.span, "the syntax is that of RE2")


def _one_name(cursor: Cursor, name: str | None, quoted: list[Token], matchers: tuple[Matcher, ...]) -> str | None:
    for token in quoted:
        if name is not None:
            cursor.report("HW112", f'the metric has a name already: "{name}"', token.span)
        name = token.string
        if not valid_label(name):
            cursor.report("HW113", f"invalid metric name {token.text}", token.span)
    for matcher in matchers if name is not None else ():
        if matcher.name == "__name__":
            cursor.report("HW112", f'the metric has a name already: "{name}"', matcher.span)
    return name


def _needs_something(matcher: Matcher) -> bool:
    """Whether a series without the label fails the matcher."""
    if matcher.op in ("=", "!="):
        return (matcher.value == "") != (matcher.op == "=")
    try:
        matches = compile_regex(matcher.value).fullmatch("") is not None
    except ValueError:
        return True
    return matches != (matcher.op == "=~")


def read_postfix(cursor: Cursor, expr: Expr) -> Expr:
    """What may follow an operand: ranges, subqueries, `offset`, `@`."""
    offset_seen = at_seen = False
    while True:
        if cursor.at("["):
            if isinstance(expr, ast.VectorSelector) and (offset_seen or at_seen):
                _refuse_order(cursor, "offset" if offset_seen else "@")
            expr = _range(cursor, expr)
            offset_seen = at_seen = False
        elif cursor.at("offset"):
            keyword = cursor.take()
            expr = _offset(cursor, keyword, expr, again=offset_seen)
            offset_seen = True
        elif cursor.at("@"):
            expr = _at(cursor, cursor.take(), expr, again=at_seen)
            at_seen = True
        else:
            return expr


def _range(cursor: Cursor, expr: Expr) -> Expr:
    bracket = cursor.take()
    window = _window(cursor)
    if cursor.accept(":"):
        step = None if cursor.at("]") else _window(cursor)
        cursor.expect("]")
        return ast.Subquery(expr, window, step, 0, None, (expr.span[0], cursor.end))
    cursor.expect("]", '":" or "]"')
    span = (expr.span[0], cursor.end)
    if not isinstance(expr, ast.VectorSelector):
        help_ = "a subquery has a colon: [50:]"
        cursor.fail("only a selector can have a range", (bracket.span[0], span[1]), help_, "HW118")
    return ast.MatrixSelector(expr, window, span)


def _window(cursor: Cursor) -> int:
    token = cursor.now
    if token.kind in ("name", "string") and cursor.next.text in _OPERATORS:
        metric = cursor.tokens[cursor.position - 2]
        mend = hints.of_brackets(metric.text if metric.kind == "name" else "", cursor.tokens[cursor.position :])
        cursor.unexpected("a number of steps", mend)
    if token.kind not in ("number", "duration") and (token.kind == "name" or cursor.at("(", "+", "*")):
        cursor.fail("arithmetic in a duration is experimental and not supported", token.span, code="HW109")
    value = _steps(cursor, "a number of steps")
    if cursor.at("+", "-", "*", "/", "%", "^"):
        cursor.fail("arithmetic in a duration is experimental and not supported", cursor.now.span, code="HW109")
    if value <= 0:
        cursor.report("HW114", "a duration must be greater than 0", token.span)
    return value


def _steps(cursor: Cursor, what: str) -> int:
    """A number of steps or a duration, in ticks."""
    token = cursor.expect_kind(what, "number", "duration")
    cursor.refuse_unit(token)
    if not math.isfinite(token.number) or abs(token.number) > _MOST_TICKS / 1e6:
        cursor.report("HW114", f"{token.text} is too large for a duration", token.span)
        return 1
    return ticks(token.number)


def _signed(cursor: Cursor, what: str) -> tuple[int, ast.Span]:
    """Steps with a sign, in ticks, and where they stand."""
    start = cursor.now.span[0]
    sign = cursor.accept("-", "+")
    value = _steps(cursor, what)
    return (-value if sign and sign.text == "-" else value), (start, cursor.end)


def _offset(cursor: Cursor, keyword: Token, expr: Expr, *, again: bool) -> Expr:
    if cursor.at("("):
        cursor.fail("arithmetic in a duration is experimental and not supported", cursor.now.span, code="HW109")
    value, span = _signed(cursor, "a number of steps")
    if cursor.rule and value < 0:
        cursor.report("HW108", "a negative offset looks ahead, which a rule can't do", span)
    if _is_placed(cursor, keyword, expr, again=again):
        return _modified(expr, cursor.end, offset=value)
    return expr


def _at(cursor: Cursor, keyword: Token, expr: Expr, *, again: bool) -> Expr:
    if bound := cursor.accept("start", "end"):
        cursor.expect("(")
        cursor.expect(")")
        at = ast.At(None, "start" if bound.word == "start" else "end")
    else:
        at = ast.At(_signed(cursor, "a step, start() or end()")[0], None)
    if cursor.rule:
        span = (keyword.span[0], cursor.end)
        cursor.report(
            "HW108",
            '"@" fixes a step, which a rule can\'t do: it must not look ahead',
            span,
            "a rule may look back: x offset 10",
        )
    elif _is_placed(cursor, keyword, expr, again=again):
        return _modified(expr, cursor.end, at=at)
    return expr


def _is_placed(cursor: Cursor, keyword: Token, expr: Expr, *, again: bool) -> bool:
    """Whether the modifier follows something that has a time of its own, for the first time."""
    if again:
        cursor.report("HW118", f'"{keyword.text}" stands here twice', keyword.span)
    elif not isinstance(expr, ast.VectorSelector | ast.MatrixSelector | ast.Subquery):
        cursor.report("HW118", f'"{keyword.text}" must follow a selector or a subquery', keyword.span)
    else:
        return True
    return False


def _refuse_order(cursor: Cursor, modifier: str) -> None:
    """`x offset 5 [50]` is refused, `x offset 5 [50:]` is a subquery."""
    closing = next((token for token in cursor.tokens[cursor.position :] if token.text in ("]", ":")), None)
    if closing is not None and closing.text == "]":
        cursor.report("HW118", f'the range comes before "{modifier}"', cursor.now.span, "write x[50] offset 10")


def _modified(expr: Expr, end: int, *, offset: int | None = None, at: ast.At | None = None) -> Expr:
    """The expression with its time shifted or fixed; a range hands both to its selector."""
    span = (expr.span[0], end)
    if isinstance(expr, ast.MatrixSelector):
        selector = expr.selector
        return replace(expr, selector=_placed(selector, selector.span, offset, at), span=span)
    if isinstance(expr, ast.VectorSelector):
        return _placed(expr, span, offset, at)
    return _placed(expr, span, offset, at) if isinstance(expr, ast.Subquery) else expr


def _placed(expr: Timed, span: ast.Span, offset: int | None, at: ast.At | None) -> Timed:
    if offset is None:
        return replace(expr, at=at, span=span)
    return replace(expr, offset=offset, span=span)
