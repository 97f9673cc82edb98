"""Which metrics rules and expressions read, and which one was meant by a name that none of them reads."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from healthwatch.diagnostics import likely_typo
from healthwatch.promql import ast
from healthwatch.rulefile.lint.selectors import admits
from healthwatch.rulefile.lint.subject import selectors
from healthwatch.rulefile.model import Rule
from healthwatch.stream.series import METRIC_NAME


def selectors_of(rule: Rule) -> list[ast.VectorSelector]:
    """Those of all that a rule evaluates."""
    expressions = (rule.expression, rule.until, rule.detail)
    return [node for each in expressions if each is not None for node in selectors(each.tree)]


def may_read(selector: ast.VectorSelector, metric: str) -> bool:
    """Whether a selector may find series of a metric."""
    if selector.metric is not None:
        return selector.metric == metric
    return all(admits(matcher, metric) for matcher in selector.matchers if matcher.name == METRIC_NAME)


class Reads:
    """What some expressions read."""

    def __init__(self, found: Iterable[ast.VectorSelector]) -> None:
        self._selectors = list(found)
        self.names = {each.metric for each in self._selectors if each.metric is not None}

    @classmethod
    def of(cls, rules: Sequence[Rule], more: Iterable[ast.Expr] = ()) -> Reads:
        """All that rules evaluate, and some expressions beside them."""
        found = [each for rule in rules for each in selectors_of(rule)]
        return cls([*found, *(each for tree in more for each in selectors(tree))])

    def __contains__(self, metric: str) -> bool:
        return any(may_read(each, metric) for each in self._selectors)

    def meant(self, metric: str) -> str | None:
        """The metric that is read and was surely meant by a name that is not."""
        return None if metric in self else likely_typo(metric, self.names)
