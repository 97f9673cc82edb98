"""Any text: no exception, spans inside it. Any expression of the grammar: the same tree as promql-parser's."""

from __future__ import annotations

import promql_parser
from hypothesis import given
from hypothesis import strategies as st

from healthwatch.promql import ast
from healthwatch.promql.parse import parse
from healthwatch.promql.second_opinion import reference_tree
from healthwatch.promql.tokens import tokenize

PIECES = st.sampled_from(
    """+ - * / % ^ < > ( ) { } [ ] , @ : # $ == != = =~ and or unless bool on ignoring group_left by without sum topk
    rate abs finite time loss a:b offset start end inf $k $s 0 5 -5 5m 1e3 0x1 1e999 "s" '(' "\\xc5" `r` {a='b'} [5]
    [5:1] fill info \\n""".split()  # noqa: SIM905 - a list literal takes a screen
)
TEXTS = st.text(max_size=40) | st.lists(PIECES, max_size=25).map(" ".join) | st.lists(PIECES, max_size=25).map("".join)


@given(TEXTS, st.booleans())
def test_no_text_raises_and_every_span_lies_inside(text: str, rule: bool) -> None:
    parsed = parse(text, {"k": 3, "s": "b"}, rule=rule)
    assert (parsed.expression is None) == bool(parsed.problems)
    for problem in parsed.problems:
        assert 0 <= problem.span[0] <= problem.span[1] <= len(text)
    for node in ast.walk(parsed.expression.tree) if parsed.expression else ():
        assert 0 <= node.span[0] < node.span[1] <= len(text)
        for child in ast.children(node):
            assert node.span[0] <= child.span[0] <= child.span[1] <= node.span[1]


NAMES = st.sampled_from(["loss", "grad_norm", "sum", "by", "a:b", "offset"])
LABELS = st.lists(st.sampled_from(["layer", "rank", "on", "bool"]), max_size=2, unique=True).map(
    lambda labels: f"({', '.join(labels)})"
)
MATCHERS = st.sampled_from(["", "{a='b'}", "{a=~'b', c!='d',}", "{}"])
MODIFIERS = st.sampled_from(["", " offset 5", " offset -5m", " @ 7", " @ start()", " offset 1 @ end()"])
SELECTORS = st.builds("{}{}{}".format, NAMES, MATCHERS, MODIFIERS)
RANGES = st.builds("{}{}[50]{}".format, NAMES, MATCHERS, MODIFIERS)
OPERATORS = st.sampled_from(["+", "-", "*", "/", "%", "^", "atan2", "==", "!=", ">", ">= bool", "and", "or", "unless"])
JOINS = st.just("") | st.builds("{} {}".format, st.sampled_from(["on", "ignoring"]), LABELS)


GROUPINGS = st.just("") | st.builds("{} {}".format, st.sampled_from(["by", "without"]), LABELS)
LEAVES = st.one_of(
    SELECTORS,
    st.sampled_from(["1", "0x1f", "NaN", "1e3", "time()", "5m", "'s'"]),
    st.builds("{}({})".format, st.sampled_from(["rate", "finite", "growth"]), RANGES),
)
TEMPLATES = st.sampled_from(
    [
        "{a} {op} {join} {b}",
        "({a})",
        "-{a}",
        "+{a}",
        "sum {group} ({a})",
        "STDDEV {group} ({a})",
        "topk(2, {a}) {group}",
        "quantile {group} ({b}, {a})",
        "abs({a})",
        "nonfinite({a})",
        "scalar({a})",
        "vector({a})",
        "max_over_time(({a})[10:2]{modifier})",
    ]
)


@st.composite
def expressions(draw: st.DrawFn, levels: int = 4) -> str:
    if levels == 0 or draw(st.booleans()):
        return draw(LEAVES)
    below = expressions(levels - 1)
    return draw(TEMPLATES).format(
        a=draw(below),
        b=draw(below),
        op=draw(OPERATORS),
        join=draw(JOINS),
        group=draw(GROUPINGS),
        modifier=draw(MODIFIERS),
    )


@given(expressions())
def test_the_tree_is_that_of_promql_parser(text: str) -> None:
    tokens = tokenize(text).tokens
    try:
        reference = reference_tree(tokens)
    except ValueError:
        assert parse(text, rule=False).problems
        return
    parsed = parse(text, rule=False)
    assert parsed.expression is not None, parsed.problems
    assert ours(parsed.expression.tree) == theirs(reference)


def ours(node: ast.Expr) -> object:
    """Structure alone, in the terms of the reference; its text holds 1 and "s" for every literal."""
    match node:
        case ast.Number() | ast.String():
            return type(node).__name__
        case ast.VectorSelector(metric=metric, matchers=matchers):
            return metric, [(m.name, m.op) for m in matchers], bool(node.offset), node.at is not None
        case ast.MatrixSelector(selector=selector):
            return "range", ours(selector)
        case ast.Subquery(expr=inner):
            return "subquery", ours(inner), bool(node.offset), node.at is not None
        case ast.Call(function=function, args=args):
            return function, [ours(arg) for arg in args]
        case ast.Aggregate(op=op, expr=inner, param=param, labels=labels, without=without):
            # The reference does not tell `by ()` from no grouping.
            return op, ours(inner), param and ours(param), labels, without
        case ast.Binary(op=op, left=left, right=right):
            matching = node.matching
            on = (matching.on, matching.labels) if matching else None
            return op, ours(left), ours(right), node.bool_modifier, on
        case ast.Unary(expr=inner):
            return "-", ours(inner)
        case ast.Paren(expr=inner):
            return "()", ours(inner)


def theirs(node: object) -> object:
    match node:
        case promql_parser.NumberLiteral():
            return "Number"
        case promql_parser.StringLiteral():
            return "String"
        case promql_parser.VectorSelector():
            matchers = [(m.name, _OPS[str(m.op)]) for m in node.matchers.matchers]
            return node.name, matchers, node.offset is not None, node.at is not None
        case promql_parser.MatrixSelector():
            return "range", theirs(node.vector_selector)
        case promql_parser.SubqueryExpr():
            return "subquery", theirs(node.expr), node.offset is not None, node.at is not None
        case promql_parser.Call():
            return node.func.name, [theirs(arg) for arg in node.args]
        case promql_parser.UnaryExpr():
            return "-", theirs(node.expr)
        case promql_parser.ParenExpr():
            return "()", theirs(node.expr)
    return _binary(node) if isinstance(node, promql_parser.BinaryExpr) else _aggregate(node)


def _aggregate(node: promql_parser.AggregateExpr) -> object:
    labels = tuple(node.modifier.labels) if node.modifier else ()
    without = bool(node.modifier) and node.modifier.type == promql_parser.AggModifierType.Without
    return str(node.op), theirs(node.expr), node.param and theirs(node.param), labels, without


def _binary(node: promql_parser.BinaryExpr) -> object:
    modifier = node.modifier
    matching = modifier.matching if modifier else None
    on = (matching.type == promql_parser.LabelModifierType.Include, tuple(matching.labels)) if matching else None
    return str(node.op), theirs(node.lhs), theirs(node.rhs), bool(modifier and modifier.return_bool), on


_OPS = {"MatchOp.Equal": "=", "MatchOp.NotEqual": "!=", "MatchOp.Re": "=~", "MatchOp.NotRe": "!~"}
