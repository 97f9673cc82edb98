"""Expressions: text in, a tree with spans or every problem out."""

from __future__ import annotations

from bisect import bisect
from dataclasses import dataclass, replace

from healthwatch.promql import ast
from healthwatch.promql.ast import Expr, Problem, Span
from healthwatch.promql.check import check
from healthwatch.promql.cursor import Cursor, SyntaxProblem
from healthwatch.promql.second_opinion import refusal
from healthwatch.promql.syntax import MAX_DEPTH, TOO_DEEP, read_expression
from healthwatch.promql.tokens import UNDEFINED, Params, Token, parse_steps, tokenize

CODES = {
    "HW101": "syntax error",
    "HW102": "not a token",
    "HW103": "unknown function",
    "HW104": "wrong number of arguments",
    "HW105": "wrong type",
    "HW106": "duration with a unit in a rule",
    "HW107": "undefined parameter",
    "HW108": "looks ahead in a rule",
    "HW109": "not supported",
    "HW110": "illegal regular expression",
    "HW111": "selector that selects everything",
    "HW112": "metric named twice",
    "HW113": "invalid name",
    "HW114": "impossible duration",
    "HW115": "modifier that the operator does not take",
    "HW116": "nested too deeply",
    "HW117": "refused by promql-parser",
    "HW118": "modifier in the wrong place",
}
"""Every code of an expression's problem, and its title."""


@dataclass(frozen=True, slots=True)
class Expression:
    """A text that holds one expression, and its tree."""

    text: str
    tree: Expr

    @property
    def string(self) -> str | None:
        """The value of an expression that is a string."""
        node = ast.unwrapped(self.tree)
        return node.value if isinstance(node, ast.String) else None


@dataclass(frozen=True, slots=True)
class Parsed:
    """Either an expression or problems, in source order."""

    expression: Expression | None
    problems: tuple[Problem, ...]
    tree: Expr | None = None  # what could be read although a parameter is not defined


def parse(text: str, params: Params | None = None, *, rule: bool = True) -> Parsed:
    """Read an expression; never raises. `$name` outside strings stands for `params[name]`.

    A duration without a unit counts steps; one with a unit is Prometheus' (1 s = 1 step). `rule` refuses units and
    whatever looks ahead: `@`, negative offsets, start(), end(), range(), step().
    """
    lexed = tokenize(text, params)
    if any(problem.code != UNDEFINED for problem in lexed.problems):
        return Parsed(None, lexed.problems)
    tree, problems = _read(text, lexed.tokens, rule=rule)
    if lexed.problems:
        undefined = {problem.span for problem in lexed.problems}
        problems = [*lexed.problems, *(problem for problem in problems if problem.span not in undefined)]
    if tree is None or problems:
        return Parsed(None, tuple(sorted(problems, key=lambda problem: problem.span)), tree)
    return Parsed(Expression(text, tree), ())


def _read(text: str, tokens: tuple[Token, ...], *, rule: bool) -> tuple[Expr | None, list[Problem]]:
    cursor = Cursor(tokens, rule=rule)
    try:
        tree = read_expression(cursor)
    except SyntaxProblem as stop:
        return None, [*cursor.problems, stop.problem]
    if _height(tree) > MAX_DEPTH:
        return None, [Problem("HW116", TOO_DEEP, tree.span)]
    return tree, _told_once(text, cursor.problems, check(tree, text, rule=rule)) or refusal(tokens)


def _told_once(text: str, problems: list[Problem], checked: list[Problem]) -> list[Problem]:
    """A unit in a range that help has in another place is told there alone: it counts steps."""
    units = sorted(each.span for each in problems if each.code == "HW106")
    told: set[Span] = set()
    for position, each in enumerate(checked if units else ()):
        start, end = each.span
        inside = units[bisect(units, (start, start)) : bisect(units, (end, end))]
        if each.code == "HW105" and inside and text[start:end] in each.help:
            counted = text[start:end]
            for low, high in reversed(inside):
                counted = f"{counted[: low - start]}{parse_steps(text[low:high]):.15g}{counted[high - start :]}"
            checked[position] = replace(each, help=each.help.replace(text[start:end], counted))
            told.update(inside)
    return [*(each for each in problems if each.code != "HW106" or each.span not in told), *checked]


def _height(tree: Expr) -> int:
    """Levels of the tree, without recursion."""
    level, height = [tree], 0
    while level:
        level = [child for node in level for child in ast.children(node)]
        height += 1
    return height
