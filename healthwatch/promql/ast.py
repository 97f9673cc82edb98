"""The syntax tree of an expression. Every node carries its span: character offsets [start, end) into the text."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

Span: TypeAlias = tuple[int, int]
ValueType: TypeAlias = Literal["scalar", "string", "vector", "matrix"]


@dataclass(frozen=True, slots=True)
class Matcher:
    """One label matcher; `value` is the decoded string."""

    name: str
    op: Literal["=", "!=", "=~", "!~"]
    value: str
    span: Span


@dataclass(frozen=True, slots=True)
class At:
    """The `@` modifier: a fixed tick, or the start or end of the evaluated range."""

    tick: int | None
    bound: Literal["start", "end"] | None


@dataclass(frozen=True, slots=True)
class Number:
    value: float
    span: Span


@dataclass(frozen=True, slots=True)
class String:
    value: str
    span: Span


@dataclass(frozen=True, slots=True)
class VectorSelector:
    """`metric{matchers} offset N @ T`; `metric` is None where only matchers name it. `offset` is in ticks."""

    metric: str | None
    matchers: tuple[Matcher, ...]
    offset: int
    at: At | None
    span: Span


@dataclass(frozen=True, slots=True)
class MatrixSelector:
    """`selector[window]`; `window` is in ticks."""

    selector: VectorSelector
    window: int
    span: Span


@dataclass(frozen=True, slots=True)
class Subquery:
    """`expr[window:step]`, all in ticks; `step` is None where the text leaves it out."""

    expr: Expr
    window: int
    step: int | None
    offset: int
    at: At | None
    span: Span


@dataclass(frozen=True, slots=True)
class Call:
    function: str
    args: tuple[Expr, ...]
    span: Span
    name_span: Span


@dataclass(frozen=True, slots=True)
class Aggregate:
    """`op by (labels) (param, expr)`; `without` tells which kind of grouping `labels` is."""

    op: str
    expr: Expr
    param: Expr | None
    labels: tuple[str, ...]
    without: bool
    span: Span
    op_span: Span


@dataclass(frozen=True, slots=True)
class Matching:
    """How two sides join. `on` False means `ignoring (labels)`."""

    on: bool
    labels: tuple[str, ...]
    group: Literal["left", "right"] | None
    include: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Binary:
    op: str
    left: Expr
    right: Expr
    bool_modifier: bool
    matching: Matching | None
    span: Span
    op_span: Span


@dataclass(frozen=True, slots=True)
class Unary:
    """`-expr` (a unary plus is dropped by the parser)."""

    expr: Expr
    span: Span


@dataclass(frozen=True, slots=True)
class Paren:
    expr: Expr
    span: Span


Expr: TypeAlias = (
    Number | String | VectorSelector | MatrixSelector | Subquery | Call | Aggregate | Binary | Unary | Paren
)


@dataclass(frozen=True, slots=True)
class Problem:
    """What is wrong with an expression: a diagnostic whose span is still relative to the expression's text."""

    code: str
    message: str
    span: Span
    help: str = ""


def children(node: Expr) -> tuple[Expr, ...]:
    """The direct operands of a node, left to right."""
    match node:
        case Subquery(expr=inner) | Unary(expr=inner) | Paren(expr=inner):
            return (inner,)
        case MatrixSelector(selector=selector):
            return (selector,)
        case Call(args=args):
            return args
        case Aggregate(expr=inner, param=param):
            return (inner,) if param is None else (param, inner)
        case Binary(left=left, right=right):
            return (left, right)
        case _:
            return ()


def walk(node: Expr) -> list[Expr]:
    """The node and everything below it, parents first."""
    return [node, *(below for child in children(node) for below in walk(child))]


def unwrapped(node: Expr) -> Expr:
    """Without brackets around it."""
    while isinstance(node, Paren):
        node = node.expr
    return node
