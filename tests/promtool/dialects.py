"""Cases that mean the same to us and to promtool 2.42, and how each is written for the other.

There every duration has a unit, windows are closed on the left too (so they end between two samples here), series have
no gaps, look-back is 300 steps, and rules are evaluated at every step.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from healthwatch.promql.tokens import Token, tokenize

LOOKBACK = 300


@dataclass(frozen=True, slots=True)
class AlertRule:
    alert: str
    expr: str
    for_: int = 0
    keep_firing_for: int = 0


@dataclass(frozen=True, slots=True)
class Case:
    """`series` maps `metric{label="value"}` to one value a step, the first at step 1."""

    name: str
    series: dict[str, list[float]]
    rules: list[AlertRule] = field(default_factory=list)
    expressions: list[str] = field(default_factory=list)

    @property
    def steps(self) -> int:
        return len(next(iter(self.series.values())))


def with_units(expr: str) -> str:
    """The expression as promtool reads it: `[4.5]` becomes `[4500ms]`, `offset 3` `offset 3000ms`."""
    pieces: list[str] = []
    position = 0
    previous: list[Token] = []
    for token in tokenize(expr).tokens:
        pieces.append(expr[position : token.span[0]])
        pieces.append(f"{round(token.number * 1000)}ms" if _is_duration(token, previous) else token.text)
        position = token.span[1]
        previous.append(token)
    return "".join(pieces)


def _is_duration(token: Token, previous: list[Token]) -> bool:
    before = [earlier.text for earlier in previous[-2:]]
    return token.kind == "number" and (before[-1:] in (["["], ["offset"], [":"]) or before == ["offset", "-"])


def our_rules(case: Case) -> dict[str, Any]:
    """A rule file of ours."""
    rules = [
        {"alert": rule.alert, "expr": rule.expr, "for": rule.for_, "keep_firing_for": rule.keep_firing_for}
        for rule in case.rules
    ]
    metrics = sorted({series.partition("{")[0] for series in case.series})
    return {
        "metrics": {metric: {} for metric in metrics},
        "groups": [{"name": "cases", "lookback": LOOKBACK, "rules": rules}],
    }


def promtool_rules(case: Case) -> dict[str, Any]:
    rules = [
        {
            "alert": rule.alert,
            "expr": with_units(rule.expr),
            "for": f"{rule.for_}s",
            "keep_firing_for": f"{rule.keep_firing_for}s",
        }
        for rule in case.rules
    ]
    return {"groups": [{"name": "cases", "rules": rules}]}


def promtool_test(case: Case, queries: list[tuple[str, int]], rule_file: str) -> dict[str, Any]:
    """A test that expects nothing anywhere, so that promtool prints what it got."""
    series = [
        {"series": name, "values": " ".join(["_", *map(_number, values)])} for name, values in case.series.items()
    ]
    asked = [{"expr": expr, "eval_time": f"{step}s"} for expr, step in queries]
    test = {"interval": "1s", "input_series": series, "promql_expr_test": asked}
    return {"rule_files": [rule_file], "evaluation_interval": "1s", "tests": [test]}


def _number(value: float) -> str:
    return {"inf": "Inf", "-inf": "-Inf", "nan": "NaN"}.get(repr(value), repr(value))
