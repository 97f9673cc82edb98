"""Thresholds that no value can reach: a token goes to k different experts, a flag is 0 or 1, a share is at most 1."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from healthwatch.diagnostics import Severity
from healthwatch.promql import ast
from healthwatch.promql.plan import shape
from healthwatch.rulefile.lint.subject import UNKNOWN, Facts, Subject
from healthwatch.stream.catalogue import Metric

Range: TypeAlias = tuple[float, float]

ANY: Range = (-math.inf, math.inf)
POSITIVE: Range = (0.0, math.inf)

TOKENS, TOP_K = "tokens_per_expert", "router_topk"
_LEVELS = frozenset(
    ("avg_over_time", "min_over_time", "max_over_time", "last_over_time", "finite", "quantile_over_time")
)
_ADDITIVE = frozenset(("avg_over_time", "sum_over_time", "finite", "last_over_time"))
_SAME = frozenset(("max", "min", "avg", "topk", "bottomk", "limitk", "limit_ratio", "quantile"))


def check(subject: Subject) -> None:
    """Every comparison of the rule's expression that decides whether it breaches."""
    expression = subject.draft.expressions.get("expr")
    reach = _Reach(subject.metrics, subject.facts)
    always = _Reach(subject.metrics, UNKNOWN)
    for node in ast.walk(expression.tree) if expression is not None else ():
        if isinstance(node, ast.Binary) and not node.bool_modifier:
            bound = _bound(node, reach)
            if bound is not None:
                _report(subject, node, bound, _severity(subject, _bound(node, always)))


def _bound(node: ast.Binary, reach: _Reach) -> float | None:
    """The bound of the left side, where the comparison can never hold because of it."""
    (low, high), right = reach.of(node.left), reach.of(node.right)
    never: Mapping[str, Callable[[], bool]] = {
        ">": lambda: high <= right[0],
        ">=": lambda: high < right[0],
        "<": lambda: low >= right[1],
        "<=": lambda: low > right[1],
    }
    if node.op not in never or not never[node.op]():
        return None
    return high if node.op in (">", ">=") else low


def _severity(subject: Subject, always: float | None) -> Severity:
    """What holds for one model only is no mistake of the rule, and of a shipped rule no mistake of the user's."""
    if always is not None:
        return "error"
    return "info" if subject.draft.document.file.startswith("builtin:") else "warning"


def _report(subject: Subject, node: ast.Binary, bound: float, severity: Severity) -> None:
    word = "above" if node.op in (">", ">=") else "below"
    model = "" if severity == "error" else " in this model"
    message = f"this can never be{model}: the left side is never {word} {bound:.4g}"
    subject.report("HW036", message, "expr", node.op_span, _mend(node, subject.facts), severity)


def _mend(node: ast.Binary, facts: Facts) -> str:
    tokens = any(isinstance(each, ast.VectorSelector) and each.metric == TOKENS for each in ast.walk(node))
    if tokens and facts.top_k:
        return (
            f"a token goes to {facts.top_k} different experts, of which one gets at most 1/{facts.top_k} of the"
            " assignments: multiply the share by router_topk (top_k: router_topk), or lower the bound"
        )
    return "lower the bound, or turn the comparison round"


@dataclass(frozen=True, slots=True)
class _Reach:
    """The range of values that an expression can have at all."""

    metrics: Mapping[str, Metric]
    facts: Facts

    def of(self, node: ast.Expr) -> Range:
        match ast.unwrapped(node):
            case ast.Number(value=value):
                return value, value
            case ast.VectorSelector(metric=metric):
                return self._of_metric(metric or "")
            case ast.MatrixSelector(selector=selector):
                return self.of(selector)
            case ast.Unary(expr=inner):
                low, high = self.of(inner)
                return -high, -low
            case ast.Aggregate() as found:
                return self._of_aggregate(found)
            case ast.Call(function=function, args=args):
                return self._of_call(function, args)
            case ast.Binary() as found:
                return self._of_binary(found)
            case _:
                return ANY

    def _of_metric(self, name: str) -> Range:
        metric = self.metrics.get(name)
        if name == TOP_K:
            known = float(self.facts.top_k or 1)
            return known, known if self.facts.top_k else math.inf
        if metric is not None and metric.kind == "flag":
            return 0.0, 1.0
        return POSITIVE if metric is not None and name in (TOKENS, "step_time") else ANY

    def _of_aggregate(self, node: ast.Aggregate) -> Range:
        if node.op in ("count", "group"):
            return 1.0, 1.0 if node.op == "group" else math.inf
        low, high = self.of(node.expr)
        if node.op in _SAME:
            return low, high
        if node.op in ("sum", "stddev", "stdvar"):
            return (0.0 if low >= 0 or node.op != "sum" else -math.inf), math.inf
        return ANY

    def _of_call(self, function: str, args: tuple[ast.Expr, ...]) -> Range:
        if function in _LEVELS and args:
            return self.of(args[-1])
        if function in ("abs", "sqrt"):
            low, high = self.of(args[0])
            return 0.0, math.inf if function == "sqrt" else max(abs(low), abs(high))
        if function in ("sum_over_time", "spike_ratio", "ema_ratio") and args:
            return POSITIVE if self.of(args[0])[0] >= 0 else ANY
        return POSITIVE if function in ("count_over_time", "stddev_over_time", "stalled_seconds") else ANY

    def _of_binary(self, node: ast.Binary) -> Range:
        share = self._share(node)
        if share is not None:
            return share
        left, right = self.of(node.left), self.of(node.right)
        match node.op:
            case "+":
                return left[0] + right[0], left[1] + right[1]
            case "-":
                return left[0] - right[1], left[1] - right[0]
            case "*":
                return _products(left, right)
            case "/" if right[0] > 0:
                return _products(left, (1 / right[1], 1 / right[0]))
            case ">" | ">=" | "<" | "<=" | "==" | "!=" | "and" | "unless":
                return (0.0, 1.0) if node.bool_modifier else left
            case _:
                return ANY

    def _share(self, node: ast.Binary) -> Range | None:
        """Of the busiest expert in the whole, or over the mean; possibly times something, such as router_topk."""
        left, right = ast.unwrapped(node.left), ast.unwrapped(node.right)
        if node.op == "/" and isinstance(left, ast.Binary) and left.op == "*":  # f * a / b is (f * a) / b
            pairs = [(left.left, left.right, right), (left.right, left.left, right)]
        elif node.op == "*":
            quotients = [(left, right), (right, left)]
            pairs = [(f, q.left, q.right) for f, q in quotients if isinstance(q, ast.Binary) and q.op == "/"]
        else:
            return self._plain_share(left, right) if node.op == "/" else None
        for factor, part, whole in pairs:
            share = self._plain_share(ast.unwrapped(part), ast.unwrapped(whole))
            if share is not None:
                return self._scaled(ast.unwrapped(factor), share)
        return None

    def _scaled(self, factor: ast.Expr, share: Range) -> Range:
        """`router_topk` times the share of one expert is at most 1, whatever it is."""
        plain = isinstance(factor, (ast.VectorSelector, ast.Aggregate)) and _mentions(factor, TOP_K)
        return (0.0, 1.0) if plain and share[0] == 0 else _products(self.of(factor), share)

    def _plain_share(self, part: ast.Expr, whole: ast.Expr) -> Range | None:
        if not (isinstance(part, ast.Aggregate) and isinstance(whole, ast.Aggregate)):
            return None
        same = (part.labels, part.without, shape(part.expr)) == (whole.labels, whole.without, shape(whole.expr))
        over = whole.without and whole.labels == ("expert",)
        if part.op != "max" or not same or not over or not self._counts(whole.expr):
            return None
        top_k = self.facts.top_k or 1
        if whole.op == "sum":
            return 0.0, 1 / top_k
        return (1.0, self.facts.experts / top_k if self.facts.experts else math.inf) if whole.op == "avg" else None

    def _counts(self, node: ast.Expr) -> bool:
        """Whether it is the load of each expert: counts, or their sum or mean over a window."""
        node = ast.unwrapped(node)
        if isinstance(node, ast.Call):
            return node.function in _ADDITIVE and len(node.args) == 1 and self._counts(node.args[0])
        if isinstance(node, ast.MatrixSelector):
            return node.selector.metric == TOKENS
        return isinstance(node, ast.VectorSelector) and node.metric == TOKENS


def _mentions(node: ast.Expr, metric: str) -> bool:
    return any(isinstance(each, ast.VectorSelector) and each.metric == metric for each in ast.walk(node))


def _products(left: Range, right: Range) -> Range:
    found = [a * b if a and b else 0.0 for a in left for b in right]
    return min(found), max(found)
