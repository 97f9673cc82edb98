"""The grammar of expressions: tokens in, a tree with spans out. Precedence climbing, one token of look-ahead."""

from __future__ import annotations

from typing import Literal, NoReturn

from healthwatch.promql import ast, hints, misnomers
from healthwatch.promql.ast import Expr
from healthwatch.promql.cursor import Cursor
from healthwatch.promql.selectors import read_postfix, read_selector, valid_label
from healthwatch.promql.tokens import Token

MAX_DEPTH = 100
"""How deep an expression may nest: whatever walks the tree recurses."""

TOO_DEEP = f"this is more than {MAX_DEPTH} levels deep: a bracket is one, and so is each operator of a chain"

PARAMETRIC = frozenset(("bottomk", "count_values", "limit_ratio", "limitk", "quantile", "topk"))
AGGREGATIONS = PARAMETRIC | {"avg", "count", "group", "max", "min", "stddev", "stdvar", "sum"}
COMPARISONS = frozenset(("==", "!=", "<", "<=", ">", ">="))
SET_OPERATORS = frozenset(("and", "or", "unless"))

_PRECEDENCE = {
    "or": 1,
    **dict.fromkeys(("and", "unless"), 2),
    **dict.fromkeys(COMPARISONS, 3),
    **dict.fromkeys("+-", 4),
    **dict.fromkeys(("*", "/", "%", "atan2"), 5),
    "^": 6,
}
_POWER = _PRECEDENCE["^"]
_RESERVED = frozenset(("atan2", "bool", "group_left", "group_right", "ignoring", "on"))


def read_expression(cursor: Cursor) -> Expr:
    """The whole text as one expression; raises `SyntaxProblem`."""
    if cursor.done():
        cursor.fail("there is no expression", cursor.now.span)
    expr = _binary(cursor, 1, 0)
    if not cursor.done():
        cursor.unexpected("an operator or the end of the expression")
    return expr


def _binary(cursor: Cursor, floor: int, depth: int) -> Expr:
    """Operands joined by operators that bind at least as tightly as `floor`."""
    if depth > MAX_DEPTH:
        cursor.fail(TOO_DEEP, cursor.now.span, code="HW116")
    left = _unary(cursor, depth)
    while (precedence := _precedence(cursor)) >= floor:
        left = _join(cursor, left, precedence, depth)
    return left


def _precedence(cursor: Cursor) -> int:
    return _PRECEDENCE.get(cursor.now.word, 0) if cursor.now.kind in ("punctuation", "name") else 0


def _join(cursor: Cursor, left: Expr, precedence: int, depth: int) -> Expr:
    operator = cursor.take()
    bool_token = cursor.accept("bool")
    if bool_token and operator.text not in COMPARISONS:
        cursor.report("HW115", f'"bool" belongs to comparisons, not to "{operator.text}"', bool_token.span)
    matching = _matching(cursor, operator)
    # A power binds to the right, everything else to the left.
    right = _binary(cursor, precedence if precedence == _POWER else precedence + 1, depth + 1)
    span = (left.span[0], right.span[1])
    return ast.Binary(operator.word, left, right, bool(bool_token), matching, span, operator.span)


def _matching(cursor: Cursor, operator: Token) -> ast.Matching | None:
    _refuse_experimental(cursor)
    kind = cursor.accept("on", "ignoring")
    if kind is None:
        return None
    labels = _labels(cursor, kind.word)
    side = cursor.accept("group_left", "group_right")
    group: Literal["left", "right"] | None = None
    include: tuple[Token, ...] = ()
    if side:
        group = "left" if side.word == "group_left" else "right"
        include = _labels(cursor, side.word) if cursor.at("(") else ()
        if operator.word in SET_OPERATORS:
            cursor.report("HW115", f'"{operator.word}" joins many to many, without "{side.word}"', side.span)
    names = tuple(map(_label, labels))
    for token in include if kind.word == "on" else ():
        if _label(token) in names:
            cursor.report("HW115", f'label "{_label(token)}" stands in "on" already', token.span)
    _refuse_experimental(cursor)
    return ast.Matching(kind.word == "on", names, group, tuple(map(_label, include)))


def _refuse_experimental(cursor: Cursor) -> None:
    if cursor.at_experimental() and cursor.next.text == "(":
        cursor.unexpected("an operand")


def _unary(cursor: Cursor, depth: int) -> Expr:
    sign = cursor.accept("-", "+")
    if sign is None:
        return read_postfix(cursor, _primary(cursor, depth))
    # A sign binds like a product: looser than a power.
    operand = _binary(cursor, _POWER, depth + 1)
    span = (sign.span[0], operand.span[1])
    if isinstance(operand, ast.Number):
        return ast.Number(-operand.value if sign.text == "-" else operand.value, span)
    return ast.Unary(operand, span) if sign.text == "-" else operand


def _primary(cursor: Cursor, depth: int) -> Expr:
    token = cursor.now
    if token.kind in ("number", "duration"):
        cursor.refuse_unit(cursor.take())
        return ast.Number(token.number, token.span)
    if token.kind == "string":
        return ast.String(cursor.take().string, token.span)
    if cursor.accept("("):
        inner = _binary(cursor, 1, depth + 1)
        cursor.expect(")", f'an operator or ")" for the "(" at column {token.span[0] + 1}')
        return ast.Paren(inner, (token.span[0], cursor.end))
    if cursor.at("{") or (token.kind == "name" and token.word not in _RESERVED):
        return _named(cursor, depth)
    return cursor.unexpected("an operand")


def _named(cursor: Cursor, depth: int) -> Expr:
    """What starts with a name or a brace: an aggregation, a call or a selector."""
    token, following = cursor.now, cursor.next
    if token.word in AGGREGATIONS and following.word in ("(", "by", "without"):
        return _aggregate(cursor, depth)
    if token.word in misnomers.AGGREGATIONS and following.word in ("by", "without"):
        _refuse_aggregation(cursor, token, following.word)
    if token.kind == "name" and following.text == "(":
        _refuse_experimental(cursor)
        name = cursor.take()
        call = ast.Call(name.text, _args(cursor, depth), (name.span[0], cursor.end), name.span)
        if token.word in misnomers.AGGREGATIONS and cursor.at("by", "without"):
            _refuse_aggregation(cursor, token, cursor.now.word)
        return call
    return read_selector(cursor)


def _aggregate(cursor: Cursor, depth: int) -> Expr:
    operator = cursor.take()
    grouping = cursor.accept("by", "without")
    labels = _labels(cursor, grouping.word) if grouping else ()
    args = _args(cursor, depth)
    if not grouping and (grouping := cursor.accept("by", "without")):
        labels = _labels(cursor, grouping.word)
    span = (operator.span[0], cursor.end)
    if len(args) != (2 if operator.word in PARAMETRIC else 1):
        return ast.Call(operator.word, tuple(args), span, operator.span)  # which the checker refuses
    without = grouping is not None and grouping.word == "without"
    param = args[0] if len(args) > 1 else None
    return ast.Aggregate(operator.word, args[-1], param, tuple(map(_label, labels)), without, span, operator.span)


def _refuse_aggregation(cursor: Cursor, token: Token, grouping: str) -> NoReturn:
    mend = misnomers.of_function(token.word, ["..."]).replace("(", f" {grouping} (...) (", 1)
    cursor.fail(f'no aggregation is called "{token.text}"', token.span, mend, "HW103")


def _args(cursor: Cursor, depth: int) -> tuple[Expr, ...]:
    cursor.expect("(")
    return tuple(cursor.listed(lambda: _binary(cursor, 1, depth + 1), "an argument", ")"))


def _labels(cursor: Cursor, keyword: str) -> tuple[Token, ...]:
    cursor.expect("(", help=hints.of_labels(keyword, cursor.tokens[cursor.position :]))
    labels = cursor.listed(lambda: cursor.expect_kind("a label name", "name", "string"), "", ")", trailing=True)
    for token in labels:
        colon = token.kind == "name" and ":" in token.text
        if colon or not valid_label(_label(token)):
            cursor.report("HW113", f"invalid label name {token.text}", token.span)
    return tuple(labels)


def _label(token: Token) -> str:
    return token.string if token.kind == "string" else token.text
