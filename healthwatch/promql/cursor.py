"""A place in the tokens of an expression, what may be asked of it, and the problems found on the way."""

from __future__ import annotations

from collections.abc import Callable
from typing import NoReturn, TypeVar

from healthwatch.promql import hints
from healthwatch.promql.ast import Problem, Span
from healthwatch.promql.tokens import Kind, Token

Item = TypeVar("Item")

EXPERIMENTAL = frozenset(["anchored", "fill", "fill_left", "fill_right", "smoothed"])


class SyntaxProblem(Exception):  # noqa: N818 - it carries a problem, it is not one
    """Ends the reading of an expression at the first token that can't stand where it does."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem.message)
        self.problem = problem


class Cursor:
    """`problems` holds what is wrong without ending the reading; `rule` refuses what rule files must not hold."""

    def __init__(self, tokens: tuple[Token, ...], *, rule: bool) -> None:
        self.tokens = tokens
        self.rule = rule
        self.problems: list[Problem] = []
        self.position = 0

    @property
    def now(self) -> Token:
        return self.tokens[self.position]

    def done(self) -> bool:
        return self.now.kind == "end"

    @property
    def next(self) -> Token:
        return self.tokens[min(self.position + 1, len(self.tokens) - 1)]

    @property
    def end(self) -> int:
        """Where the last token that was taken ends."""
        return self.tokens[self.position - 1].span[1]

    def take(self) -> Token:
        token = self.now
        if not self.done():
            self.position += 1
        return token

    def at(self, *words: str) -> bool:
        return self.now.kind in ("punctuation", "name") and self.now.word in words

    def at_experimental(self) -> bool:
        return self.now.kind == "name" and self.now.word in EXPERIMENTAL

    def accept(self, *words: str) -> Token | None:
        return self.take() if self.at(*words) else None

    def expect(self, word: str, what: str = "", help: str = "") -> Token:  # noqa: A002
        return self.take() if self.at(word) else self.unexpected(what or f'"{word}"', help)

    def expect_kind(self, what: str, *kinds: Kind, help: str = "") -> Token:  # noqa: A002
        return self.take() if self.now.kind in kinds else self.unexpected(what, help)

    def listed(self, item: Callable[[], Item], what: str, close: str, *, trailing: bool = False) -> list[Item]:
        """What stands between the bracket just taken and `close`, separated by commas; perhaps nothing."""
        items: list[Item] = []
        while not self.at(close):
            items.append(item())
            if not self.accept(","):
                break
            if self.at(close) and not trailing:
                self.unexpected(what)
        self.expect(close, f'"," or "{close}"')
        return items

    def report(self, code: str, message: str, span: Span, help: str = "") -> None:  # noqa: A002
        self.problems.append(Problem(code, message, span, help))

    def fail(self, message: str, span: Span, help: str = "", code: str = "HW101") -> NoReturn:  # noqa: A002
        raise SyntaxProblem(Problem(code, message, span, help))

    def unexpected(self, wanted: str, help: str = "") -> NoReturn:  # noqa: A002
        """The current token can't stand here."""
        token = self.now
        if self.at_experimental():
            self.fail(f'"{token.text}" is experimental syntax and not supported', token.span, code="HW109")
        found = "the expression ends" if token.kind == "end" else f'"{token.text}" stands'
        mend = help or hints.of_unexpected(self.tokens[: self.position], self.tokens[self.position :])
        self.fail(f"{found} where {wanted} must follow", token.span, mend)

    def refuse_unit(self, token: Token) -> None:
        """Rule files count steps: a unit is refused in them."""
        if self.rule and token.kind == "duration":
            steps = f"{token.number:.15g}"
            help_ = f"write {steps} for {steps} steps"
            self.report("HW106", f"{token.text} has a unit, a rule counts steps", token.span, help_)
