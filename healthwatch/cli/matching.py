"""Labels that the matchers of a selector admit, as far as they can be told."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from healthwatch.promql import ast
from healthwatch.promql.regex import compile_regex
from healthwatch.rulefile.lint.selectors import admits
from healthwatch.stream.series import METRIC_NAME

_CLASSES = {"d": "0123456789", "w": "0a_", "s": " ", "D": "a", "W": "-", "S": "a0"}
_OTHERS = "0aA_-. /:~"  # one of them is left by most classes of others
_DEEPEST = 50  # brackets within brackets that are looked into
_MOST = 20  # times that a counted repetition is written out


def matched(labels: Mapping[str, str], number: int, selector: ast.VectorSelector) -> dict[str, str] | None:
    """The labels, changed where the selector would not take them; None where no text is found that it takes.

    `number` tells one series from another where the matchers leave room for it.
    """
    found = dict(labels)
    for name in dict.fromkeys(matcher.name for matcher in selector.matchers if matcher.name != METRIC_NAME):
        matchers = [matcher for matcher in selector.matchers if matcher.name == name]
        value = _value(matchers, found.get(name, ""), number)
        if value is None:
            return None
        found.pop(name, None)
        if value:
            found[name] = value
    return found


def matches(labels: Mapping[str, str], selector: ast.VectorSelector) -> bool:
    """Whether a series with these labels, of a metric that fits, passes."""
    matchers = (matcher for matcher in selector.matchers if matcher.name != METRIC_NAME)
    return all(admits(matcher, labels.get(matcher.name, "")) for matcher in matchers)


def _value(matchers: Sequence[ast.Matcher], usual: str, number: int) -> str | None:
    """What the label may be: what it usually is if that will do."""
    return next((text for text in _guesses(matchers, usual, number) if all(admits(m, text) for m in matchers)), None)


def _guesses(matchers: Sequence[ast.Matcher], usual: str, number: int) -> Iterator[str]:
    yield usual
    filler = usual or "0"
    for matcher in matchers:
        if matcher.op == "=":
            yield matcher.value
        elif matcher.op == "=~":
            yield Sampler(matcher.value, filler, number).text()
    yield from (filler, f"x{filler}", "")


def _full(pattern: str, text: str) -> bool:
    try:
        return compile_regex(pattern).fullmatch(text) is not None
    except ValueError:
        return False


class Sampler:
    """Writes a text for a regular expression. It knows the simple ones: whoever asks has to see whether it matches.

    `filler` stands where the expression takes anything, `number` chooses among alternatives.
    """

    def __init__(self, pattern: str, filler: str, number: int) -> None:
        self._pattern = pattern
        self._filler = filler
        self._number = number
        self._at = 0
        self._depth = 0

    def text(self) -> str:
        return self._alternatives()

    def _alternatives(self) -> str:
        branches = [self._branch()]
        while self._next() == "|":
            self._at += 1
            branches.append(self._branch())
        return branches[self._number % len(branches)]

    def _branch(self) -> str:
        pieces = []
        while self._next() not in ("", "|", ")"):
            pieces.append(self._piece())
        return "".join(pieces)

    def _next(self) -> str:
        return self._pattern[self._at : self._at + 1]

    def _take(self) -> str:
        self._at += 1
        return self._pattern[self._at - 1 : self._at]

    def _piece(self) -> str:
        """One atom, as often as it is asked for."""
        start = self._at
        once = self._atom()
        atom, many = self._pattern[start : self._at], self._next()
        if many and many in "*+":
            self._at += 1
            self._lazy()
            return self._filled(atom, once)
        if many == "?":
            self._at += 1
            self._lazy()
            return once
        if many == "{":
            return once * self._count()
        return once

    def _lazy(self) -> None:
        if self._next() == "?":
            self._at += 1

    def _filled(self, atom: str, once: str) -> str:
        """The filler if the atom takes all of it."""
        return self._filler if _full(f"(?:{atom})+", self._filler) else once

    def _count(self) -> int:
        least = self._pattern[self._at + 1 :].partition("}")[0]
        self._at += len(least) + 2
        number = least.partition(",")[0]
        return min(int(number), _MOST) if number.isdecimal() else 1

    def _atom(self) -> str:
        taken = self._take()
        if taken == "(":
            return self._group()
        if taken == "[":
            return self._one_of()
        if taken == "\\":
            escaped = self._take()
            return _CLASSES[escaped][0] if escaped in _CLASSES else escaped
        if taken in "^$":
            return ""
        return "0" if taken == "." else taken

    def _group(self) -> str:
        if self._next() == "?":  # (?:...), (?i), (?P<name>...)
            while self._next() not in ("", ":", ">", ")"):
                self._at += 1
            if self._take() == ")":
                return ""
        if self._depth > _DEEPEST:
            self._at = len(self._pattern)
            return ""
        self._depth += 1
        text = self._alternatives()
        self._depth -= 1
        self._at += 1
        return text

    def _one_of(self) -> str:
        """The first character of a class, or one that a class of others leaves."""
        start = self._at
        if self._next() == "^":
            self._at += 1
        first = self._taken_in_class()
        while self._next() not in ("", "]"):
            self._taken_in_class()
        self._at += 1
        if self._pattern[start : start + 1] != "^":
            return first
        others = self._pattern[start - 1 : self._at]
        return next((each for each in _OTHERS if _full(others, each)), "0")

    def _taken_in_class(self) -> str:
        taken = self._take()
        if taken == "[" and self._next() == ":":  # [:alpha:]
            self._at = self._pattern.find(":]", self._at) + 2
            return "a"
        if taken != "\\":
            return taken
        escaped = self._take()
        return _CLASSES.get(escaped, escaped)[:1]
