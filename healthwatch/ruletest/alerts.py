"""The series ALERTS that Prometheus writes beside the samples, for expressions that ask for it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from healthwatch.alerting.ledger import Ledger
from healthwatch.alerting.model import Phase
from healthwatch.promql import ast
from healthwatch.rulefile import Rule
from healthwatch.ruletest.model import ExprTest
from healthwatch.stream import STALE, History, tick_of
from healthwatch.stream.series import METRIC_NAME, LabelSet, label_set

METRIC = "ALERTS"


class AlertSeries:
    """One sample a step for every alert that is pending or firing; its end is marked."""

    def __init__(self, rules: Sequence[Rule], history: History) -> None:
        self._labels = {rule.name: rule.labels for rule in rules}
        self._history = history
        self._before: frozenset[LabelSet] = frozenset()

    def write(self, ledgers: Mapping[str, Ledger], step: int) -> None:
        now = frozenset(each for rule, ledger in ledgers.items() for each in self._living(rule, ledger))
        ended = sorted(self._before - now)
        if now or ended:
            labels = [*sorted(now), *ended]
            series = self._history.table.register(METRIC, [dict(each) for each in labels])
            values = np.array([1.0] * len(now) + [STALE] * len(ended))
            self._history.append(tick_of(step), series, values)
        self._before = now

    def _living(self, rule: str, ledger: Ledger) -> Iterable[LabelSet]:
        for row, labels in enumerate(ledger.labels):
            phase = ledger.alert(row).phase
            if phase is not Phase.INACTIVE:
                named = {name: value for name, value in labels if name != METRIC_NAME} | dict(self._labels[rule])
                yield label_set(named | {"alertname": rule, "alertstate": phase.value})


def asked_for(tests: Iterable[ExprTest]) -> bool:
    """Whether an expression reads the alerts."""
    return any(
        isinstance(node, ast.VectorSelector) and node.metric == METRIC
        for test in tests
        for node in ast.walk(test.expression.tree)
    )
