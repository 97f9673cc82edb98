"""Which metrics rules and expressions read, and which one was meant by a name that none of them reads."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from healthwatch.diagnostics import likely_typo
from healthwatch.promql import ast
from healthwatch.promql.select import test_of
from healthwatch.rulefile.model import Rule
from healthwatch.stream.series import METRIC_NAME


class Reads:
    """What some expressions read."""

    def __init__(self, trees: Iterable[ast.Expr]) -> None:
        selectors = [node for tree in trees for node in ast.walk(tree) if isinstance(node, ast.VectorSelector)]
        self.names = {each.metric for each in selectors if each.metric is not None}
        self._tests = [_by_name(each.matchers) for each in selectors if each.metric is None]

    @classmethod
    def of(cls, rules: Sequence[Rule], more: Iterable[ast.Expr] = ()) -> Reads:
        """All that rules evaluate, and some expressions beside them."""
        parts = [each for rule in rules for each in (rule.expression, rule.until, rule.detail) if each is not None]
        return cls([*(each.tree for each in parts), *more])

    def __contains__(self, metric: str) -> bool:
        return metric in self.names or any(test(metric) for test in self._tests)

    def meant(self, metric: str) -> str | None:
        """The metric that is read and was surely meant by a name that is not."""
        return None if metric in self else likely_typo(metric, self.names)


def _by_name(matchers: Iterable[ast.Matcher]) -> Callable[[str], bool]:
    """Whether a selector without a metric may find series of one."""
    tests = [test_of(each) for each in matchers if each.name == METRIC_NAME]
    return lambda metric: all(test(metric) for test in tests)
