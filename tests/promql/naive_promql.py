"""A naive evaluator: one series at a time, plain Python, written to be read. Knows nothing of healthwatch but its tree.

A vector is a list of elements; one that is kept is in Prometheus' result, one that is known but not kept is clear.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction

from healthwatch.promql import ast

STEP = 1_000_000
STALE = "stale"
NAN = math.nan

Labels = frozenset[tuple[str, str]]
Samples = Mapping[Labels, Mapping[int, "float | str"]]


@dataclass(frozen=True)
class Element:
    labels: Labels
    value: float
    kept: bool
    known: bool
    drops_name: bool = False

    @property
    def clear(self) -> bool:
        return self.known and not self.kept


@dataclass(frozen=True)
class Range:
    """One series of a range: its samples in (start, end], whether it was known, and what came before the window."""

    labels: Labels
    samples: list[tuple[int, float]]
    start: int
    end: int
    known: bool
    drops_name: bool = False


class Failure(Exception):  # noqa: N818
    """Prometheus has no result either."""


@dataclass(frozen=True)
class Naive:
    samples: Samples
    lookback: int | None = None
    subquery_step: int = STEP

    def result(self, tree: ast.Expr, tick: int) -> tuple[dict[Labels, float], set[Labels]]:
        """What is kept, with its values, and what is clear."""
        kept: dict[Labels, float] = {}
        clear: set[Labels] = set()
        for element in self.vector(tree, tick):
            labels = without(element.labels, {"__name__"}) if element.drops_name else element.labels
            if element.kept:
                if labels in kept:
                    raise Failure("same labelset")
                kept[labels] = element.value
            elif element.known:
                clear.add(labels)
        return kept, clear - kept.keys()

    # Selectors

    def matching(self, node: ast.VectorSelector) -> list[Labels]:
        return [labels for labels in self.samples if selects(node, dict(labels))]

    def rows(self, node: ast.VectorSelector, upto: int) -> list[int]:
        """The ticks at which any matching series has a sample, ascending."""
        return sorted({t for labels in self.matching(node) for t in self.samples[labels] if t <= upto})

    def selector(self, node: ast.VectorSelector, tick: int) -> list[Element]:
        tick -= node.offset
        found = []
        rows = self.rows(node, tick)
        for labels in self.matching(node):
            if self.lookback is None:
                value = self.samples[labels].get(rows[-1]) if rows else None
            else:
                within = [t for t in self.samples[labels] if tick - self.lookback < t <= tick]
                value = self.samples[labels][max(within)] if within else None
            there = value is not None and not isinstance(value, str)
            found.append(Element(labels, float(value) if there else 0.0, kept=there, known=there))
        return found

    def range(self, node: ast.Expr, tick: int) -> list[Range]:
        match node:
            case ast.Paren(expr=inner):
                return self.range(inner, tick)
            case ast.MatrixSelector(selector=selector, window=window):
                end = tick - selector.offset
                return [self._range(labels, end - window, end) for labels in self.matching(selector)]
            case ast.Call(function="finite", args=(inner,)):
                return [
                    replace(each, samples=[(t, v) for t, v in each.samples if math.isfinite(v)])
                    for each in self.range(inner, tick)
                ]
            case ast.Subquery():
                return self.subquery(node, tick)
        raise TypeError(node)

    def _range(self, labels: Labels, start: int, end: int) -> Range:
        there = sorted(self.samples[labels].items())
        inside = [(t, v) for t, v in there if start < t <= end and not isinstance(v, str)]
        return Range(labels, inside, start, end, known=False)

    def subquery(self, node: ast.Subquery, tick: int) -> list[Range]:
        end, step = tick - node.offset, node.step or self.subquery_step
        start = end - node.window
        found: dict[tuple[Labels, bool], Range] = {}
        for at in range((start // step + 1) * step, end + 1, step):
            seen = set()
            for element in self.vector(node.expr, at):
                key = element.labels, element.drops_name
                if element.kept and key in seen:
                    raise Failure("same labelset")
                seen |= {key} if element.kept else set()
                before = found.get(key, Range(key[0], [], start, end, known=False, drops_name=key[1]))
                samples = [*before.samples, (at, element.value)] if element.kept else before.samples
                found[key] = replace(before, samples=samples, known=before.known or element.known)
        return list(found.values())

    # Everything else

    def vector(self, node: ast.Expr, tick: int) -> list[Element]:
        match node:
            case ast.Paren(expr=inner):
                return self.vector(inner, tick)
            case ast.Number(value=value):
                return [Element(frozenset(), value, kept=True, known=True)]
            case ast.VectorSelector():
                return self.selector(node, tick)
            case ast.Unary(expr=inner):
                return [replace(each, value=-each.value, drops_name=True) for each in self.vector(inner, tick)]
            case ast.Call():
                return self.call(node, tick)
            case ast.Aggregate():
                return self.aggregate(node, tick)
            case ast.Binary(op="and" | "or" | "unless"):
                return self.set_operator(node, tick)
            case ast.Binary():
                return self.binary(node, tick)
        raise TypeError(node)

    def scalar(self, node: ast.Expr, tick: int) -> float:
        return self.vector(node, tick)[0].value

    def call(self, node: ast.Call, tick: int) -> list[Element]:
        name, args = node.function, node.args
        if name == "time":
            return [Element(frozenset(), tick / STEP, kept=True, known=True)]
        if name == "scalar":
            kept = [each for each in self.vector(args[0], tick) if each.kept]
            return [Element(frozenset(), kept[0].value if len(kept) == 1 else NAN, kept=True, known=True)]
        if name == "vector":
            return self.vector(args[0], tick)
        if name == "absent":
            nothing = not any(each.kept for each in self.vector(args[0], tick))
            return [Element(sure_labels(args[0]), 1.0, kept=nothing, known=True)]
        if name == "nonfinite":
            return [replace(e, kept=e.kept and not math.isfinite(e.value)) for e in self.vector(args[0], tick)]
        if name in ELEMENTWISE:
            numbers = [self.scalar(each, tick) for each in args[1:]]
            return [
                replace(each, value=ELEMENTWISE[name](each.value, *numbers), drops_name=True)
                for each in self.vector(args[0], tick)
            ]
        if name in OURS:
            return self.ours(node, tick)
        return self.over_time(node, tick)

    def over_time(self, node: ast.Call, tick: int) -> list[Element]:
        place = 1 if node.function == "quantile_over_time" else 0
        last = node.args[place]
        numbers = [self.scalar(each, tick) for i, each in enumerate(node.args) if i != place]
        keeps_name = node.function in ("last_over_time", "first_over_time")
        found = []
        for each in self.range(last, tick):
            value = OVER_TIME[node.function](each, tick, *numbers) if each.samples else None
            known = value is not None or (each.known and not each.samples)
            drops = each.drops_name or not keeps_name
            found.append(Element(each.labels, 0.0 if value is None else value, value is not None, known, drops))
        return found

    def ours(self, node: ast.Call, tick: int) -> list[Element]:
        function, default = OURS[node.function]
        minimum = max(self.scalar(node.args[1], tick) if len(node.args) > 1 else default, 1)
        window = node.args[0]
        while isinstance(window, ast.Paren):
            window = window.expr
        found = []
        for labels, row, now, before in self.baselines(window, tick):
            finite = [(t, v) for t, v in before if math.isfinite(v)]
            value = None
            if now is not None and not math.isnan(now) and len(finite) >= minimum:
                value = function(now, finite, row, ticks_of(window))
            there = value is not None
            found.append(Element(labels, value if value is not None else 0.0, there, there, drops_name=True))
        return found

    def baselines(
        self, window: ast.Expr, tick: int
    ) -> Iterable[tuple[Labels, int, float | None, list[tuple[int, float]]]]:
        if isinstance(window, ast.MatrixSelector):
            at = tick - window.selector.offset
            rows = self.rows(window.selector, at)
            if not rows:
                return
            row, earlier = rows[-1], rows[:-1]
            after = at - window.window
            after = min(after, -1 if len(earlier) < 16 else earlier[-16] - 1)
            for labels in self.matching(window.selector):
                now = self.samples[labels].get(row)
                before = self._range(labels, after, row - 1).samples
                yield labels, row, None if isinstance(now, str) else now, before
            return
        ranges = self.range(window, tick)
        row = max((t for each in ranges for t, _ in each.samples), default=None)
        if row is not None:
            for each in ranges:
                here = dict(each.samples)
                yield each.labels, row, here.get(row), [s for s in each.samples if s[0] < row]

    def aggregate(self, node: ast.Aggregate, tick: int) -> list[Element]:
        groups: dict[Labels, list[Element]] = {}
        for element in self.vector(node.expr, tick):
            wanted = set(node.labels)
            key = without(element.labels, wanted | {"__name__"}) if node.without else only(element.labels, wanted)
            groups.setdefault(key, []).append(element)
        parameter = None if node.param is None else self.scalar(node.param, tick)
        if node.op in ("topk", "bottomk"):
            return [each for members in groups.values() for each in extreme(node.op, members, int(parameter or 0))]
        found = []
        for labels, members in groups.items():
            values = [each.value for each in members if each.kept]
            value = AGGREGATIONS[node.op](values, parameter) if values else 0.0
            known = any(each.known for each in members)
            found.append(Element(labels, value, bool(values), known, any(each.drops_name for each in members)))
        return found

    def binary(self, node: ast.Binary, tick: int) -> list[Element]:
        left, right = self.vector(node.left, tick), self.vector(node.right, tick)
        if is_scalar(node.left) or is_scalar(node.right):
            return [joined(node, (b if is_scalar(node.left) else a), a, b, drops=True) for a in left for b in right]
        matching = node.matching or ast.Matching(on=False, labels=(), group=None, include=())
        return list(pairs(node, matching, left, right))

    def set_operator(self, node: ast.Binary, tick: int) -> list[Element]:
        left, right = self.vector(node.left, tick), self.vector(node.right, tick)
        matching = node.matching or ast.Matching(on=False, labels=(), group=None, include=())

        def partners(element: Element, others: list[Element]) -> list[Element]:
            return [each for each in others if signature(each, matching) == signature(element, matching)]

        found = []
        if node.op == "and":
            for a in left:
                there = partners(a, right)
                kept = a.kept and any(b.kept for b in there)
                right_clear = any(b.known for b in there) and not any(b.kept for b in there)
                found.append(replace(a, kept=kept, known=kept or a.clear or right_clear))
        elif node.op == "unless":
            for a in left:
                breach = any(b.kept for b in partners(a, right))
                found.append(replace(a, kept=a.kept and not breach, known=a.known or breach))
        else:
            found = union(left, right, partners)
        return found


def union(
    left: list[Element], right: list[Element], partners: Callable[[Element, list[Element]], list[Element]]
) -> list[Element]:
    chosen = list(left)
    chosen += [replace(b, kept=b.kept and not any(a.kept for a in partners(b, left))) for b in right]
    suppressed = {id(c) for c, b in zip(chosen[len(left) :], right, strict=True) if b.kept and not c.kept}
    shown: dict[Labels, list[Element]] = {}
    for each in chosen:
        shown.setdefault(without(each.labels, {"__name__"}) if each.drops_name else each.labels, []).append(each)
    found = []
    for same in shown.values():
        clear = all(each.clear and id(each) not in suppressed for each in same)
        for key in dict.fromkeys((each.labels, each.drops_name) for each in same):
            alike = [each for each in same if (each.labels, each.drops_name) == key]
            kept = next((each for each in alike if each.kept), None)
            found.append(kept if kept is not None else replace(alike[0], kept=False, known=clear))
    return found


# What an element is matched by


def without(labels: Labels, names: set[str]) -> Labels:
    return frozenset(pair for pair in labels if pair[0] not in names)


def only(labels: Labels, names: set[str]) -> Labels:
    return frozenset(pair for pair in labels if pair[0] in names)


def selects(node: ast.VectorSelector, labels: dict[str, str]) -> bool:
    import re

    if node.metric is not None and labels.get("__name__") != node.metric:
        return False
    for matcher in node.matchers:
        value = labels.get(matcher.name, "")
        fits = re.fullmatch(matcher.value, value) is not None if "~" in matcher.op else value == matcher.value
        if fits == matcher.op.startswith("!"):
            return False
    return True


def sure_labels(node: ast.Expr) -> Labels:
    while isinstance(node, ast.Paren):
        node = node.expr
    if not isinstance(node, ast.VectorSelector):
        return frozenset()
    names = [matcher.name for matcher in node.matchers]
    return frozenset((m.name, m.value) for m in node.matchers if m.op == "=" and names.count(m.name) == 1)


def signature(element: Element, matching: ast.Matching) -> Labels:
    names = set(matching.labels)
    return only(element.labels, names) if matching.on else without(element.labels, names | {"__name__"})


def is_scalar(node: ast.Expr) -> bool:
    match node:
        case ast.Paren(expr=inner) | ast.Unary(expr=inner):
            return is_scalar(inner)
        case ast.Binary(left=left, right=right):
            return is_scalar(left) and is_scalar(right)
        case ast.Call(function=name):
            return name in ("scalar", "time")
    return isinstance(node, ast.Number)


def ticks_of(node: ast.Expr) -> int:
    match node:
        case ast.MatrixSelector(window=window) | ast.Subquery(window=window):
            return window
        case ast.Call(args=(inner,)) | ast.Paren(expr=inner):
            return ticks_of(inner)
    raise TypeError(node)


# Binary operators


def divide(a: float, b: float) -> float:
    if b == 0 and not math.isnan(a):
        sign = math.copysign(1, a) * math.copysign(1, b)
        return NAN if a == 0 else sign * math.inf
    return a / b


def remainder(a: float, b: float) -> float:
    return NAN if b == 0 or math.isinf(a) or math.isnan(a) or math.isnan(b) else math.fmod(a, b)


ARITHMETIC: dict[str, Callable[[float, float], float]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "/": divide,
    "%": remainder,
}
COMPARISON: dict[str, Callable[[float, float], bool]] = {
    "==": lambda a, b: a == b,
    "!=": lambda a, b: a != b,
    ">": lambda a, b: a > b,
    "<": lambda a, b: a < b,
    ">=": lambda a, b: a >= b,
    "<=": lambda a, b: a <= b,
}


def joined(node: ast.Binary, like: Element, a: Element, b: Element, *, drops: bool) -> Element:
    kept, known = a.kept and b.kept, a.known and b.known
    if node.op in ARITHMETIC:
        value = ARITHMETIC[node.op](a.value, b.value) if kept else 0.0
        return replace(like, value=value, kept=kept, known=known, drops_name=like.drops_name or drops)
    holds = COMPARISON[node.op](a.value, b.value)
    if node.bool_modifier:
        return replace(like, value=float(holds), kept=kept, known=known, drops_name=True)
    nan = kept and (math.isnan(a.value) or math.isnan(b.value))
    return replace(like, kept=kept and holds, known=(known and not nan) or (kept and holds))


def pairs(node: ast.Binary, matching: ast.Matching, left: list[Element], right: list[Element]) -> Iterable[Element]:
    one = left if matching.group == "right" else right
    kept_keys = [signature(each, matching) for each in one if each.kept]
    if len(set(kept_keys)) < len(kept_keys):
        raise Failure("many-to-many")
    seen: list[Labels] = []
    for a in left:
        for b in right:
            if signature(a, matching) != signature(b, matching):
                continue
            many, other = (b, a) if matching.group == "right" else (a, b)
            element = joined(node, many, a, b, drops=False)
            element = replace(element, labels=result_labels(node, matching, many, other))
            if element.kept:
                key = signature(a, matching) if matching.group is None else element.labels
                if key in seen:
                    raise Failure("multiple matches")
                seen.append(key)
            yield element


def result_labels(node: ast.Binary, matching: ast.Matching, many: Element, other: Element) -> Labels:
    labels = without(many.labels, {"__name__"}) if node.op in ARITHMETIC else many.labels
    if matching.group is None:
        names = set(matching.labels)
        return only(labels, names) if matching.on else without(labels, names)
    return without(labels, set(matching.include)) | only(other.labels, set(matching.include))


# Aggregations


def quantile(values: list[float], q: float) -> float:
    if math.isnan(q):
        return NAN
    if q < 0 or q > 1:
        return math.copysign(math.inf, q - 0.5)
    ordered = sorted(values, key=lambda v: (not math.isnan(v), 0 if math.isnan(v) else v))
    rank = q * (len(ordered) - 1)
    low = math.floor(rank)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] * (1 - (rank - low)) + ordered[high] * (rank - low)


def exact_sum(values: list[float]) -> float:
    if not all(map(math.isfinite, values)):
        return sum(values)
    return float(sum(map(Fraction, values)))


def mean(values: list[float]) -> float:
    return exact_sum(values) / len(values)


def variance(values: list[float]) -> float:
    if not all(map(math.isfinite, values)):
        return NAN
    centre = sum(map(Fraction, values)) / len(values)
    return float(sum((Fraction(v) - centre) ** 2 for v in values) / len(values))


def largest(values: list[float]) -> float:
    return max((v for v in values if not math.isnan(v)), default=NAN)


def smallest(values: list[float]) -> float:
    return min((v for v in values if not math.isnan(v)), default=NAN)


AGGREGATIONS: dict[str, Callable[[list[float], float | None], float]] = {
    "sum": lambda values, _: exact_sum(values),
    "avg": lambda values, _: mean(values),
    "min": lambda values, _: smallest(values),
    "max": lambda values, _: largest(values),
    "count": lambda values, _: float(len(values)),
    "group": lambda _, __: 1.0,
    "stdvar": lambda values, _: variance(values),
    "stddev": lambda values, _: math.sqrt(variance(values)),
    "quantile": lambda values, q: quantile(values, NAN if q is None else q),
}


def extreme(op: str, members: list[Element], limit: int) -> list[Element]:
    sign = -1 if op == "topk" else 1
    order = sorted((each for each in members if each.kept), key=lambda e: (math.isnan(e.value), sign * e.value))
    chosen = {id(each) for each in order[: max(limit, 0)]}
    return [replace(each, kept=id(each) in chosen) for each in members]


# Functions of one value


def sgn(value: float) -> float:
    return value if math.isnan(value) else float((value > 0) - (value < 0))


ELEMENTWISE: dict[str, Callable[..., float]] = {
    "abs": abs,
    "ceil": lambda v: float(math.ceil(v)) if math.isfinite(v) else v,
    "floor": lambda v: float(math.floor(v)) if math.isfinite(v) else v,
    "sgn": sgn,
    "clamp_min": lambda v, low: NAN if math.isnan(v) or math.isnan(low) else max(v, low),
}


# Functions of a range


def values(window: Range) -> list[float]:
    return [v for _, v in window.samples]


def changes(window: Range) -> float:
    return float(
        sum(
            a != b and not (math.isnan(a) and math.isnan(b))
            for a, b in zip(values(window), values(window)[1:], strict=False)
        )
    )


def resets(window: Range) -> float:
    return float(sum(b < a for a, b in zip(values(window), values(window)[1:], strict=False)))


def line(window: Range, origin: int) -> tuple[float, float] | None:
    if len(window.samples) < 2:
        return None
    first = window.samples[0][1]
    if all(v == first for v in values(window)):
        return (NAN, NAN) if math.isinf(first) else (0.0, first)
    if not all(map(math.isfinite, values(window))):
        return NAN, NAN
    xs = [Fraction(t - origin, STEP) for t, _ in window.samples]
    ys = [Fraction(v) for v in values(window)]
    n = len(xs)
    covariance = sum(x * y for x, y in zip(xs, ys, strict=True)) - sum(xs) * sum(ys) / n
    slope = covariance / (sum(x * x for x in xs) - sum(xs) ** 2 / n)
    return float(slope), float(sum(ys) / n - slope * sum(xs) / n)


def deriv(window: Range, _: int) -> float | None:
    found = line(window, window.samples[0][0])
    return None if found is None else found[0]


def predict_linear(window: Range, tick: int, ahead: float) -> float | None:
    found = line(window, tick)
    return None if found is None else found[0] * ahead + found[1]


def extrapolated(window: Range, *, counter: bool, rate: bool) -> float | None:
    if len(window.samples) < 2:
        return None
    (begun, first), (ended, last) = window.samples[0], window.samples[-1]
    result = last - first
    if counter:
        both = zip(values(window), values(window)[1:], strict=False)
        result += sum(a for a, b in both if b < a)
    to_start, to_end = (begun - window.start) / STEP, (window.end - ended) / STEP
    between = (ended - begun) / STEP
    average = between / (len(window.samples) - 1)
    if to_start >= average * 1.1:
        to_start = average / 2
    if counter and result > 0 and first >= 0:
        to_start = min(to_start, between * (first / result))
    if to_end >= average * 1.1:
        to_end = average / 2
    factor = (between + to_start + to_end) / between
    return result * (factor / ((window.end - window.start) / STEP) if rate else factor)


def instant(window: Range, *, rate: bool) -> float | None:
    if len(window.samples) < 2:
        return None
    (begun, before), (ended, last) = window.samples[-2:]
    if not rate:
        return last - before
    return (last if last < before else last - before) / ((ended - begun) / STEP)


def mad(window: Range) -> float:
    if any(map(math.isnan, values(window))):
        return NAN
    centre = quantile(values(window), 0.5)
    return quantile([abs(v - centre) for v in values(window)], 0.5)


def holt(window: Range, _: int, level_factor: float, trend_factor: float) -> float | None:
    seen = values(window)
    if len(seen) < 2:
        return None
    level, trend = seen[0], seen[1] - seen[0]
    before = level
    for index, value in enumerate(seen[1:]):
        if index:
            trend = trend_factor * (level - before) + (1 - trend_factor) * trend
        before, level = level, level_factor * value + (1 - level_factor) * (level + trend)
    return level


def time_of_last(window: Range, wanted: float) -> float:
    there = [t for t, v in window.samples if v == wanted or math.isnan(wanted)]
    return there[-1] / STEP


OVER_TIME: dict[str, Callable[..., float | None]] = {
    "sum_over_time": lambda w, _: exact_sum(values(w)),
    "avg_over_time": lambda w, _: mean(values(w)),
    "min_over_time": lambda w, _: smallest(values(w)),
    "max_over_time": lambda w, _: largest(values(w)),
    "count_over_time": lambda w, _: float(len(w.samples)),
    "present_over_time": lambda _, __: 1.0,
    "last_over_time": lambda w, _: values(w)[-1],
    "first_over_time": lambda w, _: values(w)[0],
    "stdvar_over_time": lambda w, _: variance(values(w)),
    "stddev_over_time": lambda w, _: math.sqrt(variance(values(w))),
    "mad_over_time": lambda w, _: mad(w),
    "quantile_over_time": lambda w, _, q: quantile(values(w), q),
    "ts_of_first_over_time": lambda w, _: w.samples[0][0] / STEP,
    "ts_of_last_over_time": lambda w, _: w.samples[-1][0] / STEP,
    "ts_of_max_over_time": lambda w, _: time_of_last(w, largest(values(w))),
    "ts_of_min_over_time": lambda w, _: time_of_last(w, smallest(values(w))),
    "changes": lambda w, _: changes(w),
    "resets": lambda w, _: resets(w),
    "deriv": deriv,
    "predict_linear": predict_linear,
    "rate": lambda w, _: extrapolated(w, counter=True, rate=True),
    "increase": lambda w, _: extrapolated(w, counter=True, rate=False),
    "delta": lambda w, _: extrapolated(w, counter=False, rate=False),
    "irate": lambda w, _: instant(w, rate=True),
    "idelta": lambda w, _: instant(w, rate=False),
    "double_exponential_smoothing": holt,
}


# Functions of our own: now, the finite samples before it, the tick of now, the window


def median(seen: list[float]) -> float:
    ordered = sorted(seen)
    return (ordered[(len(ordered) - 1) // 2] + ordered[len(ordered) // 2]) / 2


Before = list[tuple[int, float]]


def spike_ratio(now: float, before: Before, _: int, __: int) -> float | None:
    centre = median([v for _, v in before])
    return now / centre if centre > 0 else None


def standardised(now: float, centre: float, spread: float) -> float | None:
    divisor = max(spread, 1e-3 * abs(centre))
    return (now - centre) / divisor if divisor > 0 else None


def robust_zscore(now: float, before: Before, _: int, __: int) -> float | None:
    seen = [v for _, v in before]
    centre = median(seen)
    return standardised(now, centre, 1.4826 * median([abs(v - centre) for v in seen]))


def zscore(now: float, before: Before, _: int, __: int) -> float | None:
    seen = [v for _, v in before]
    return standardised(now, mean(seen), math.sqrt(variance(seen)))


def ema(_: float, before: Before, row: int, window: int) -> float | None:
    a = min(2 / (window / STEP + 1), 1)
    weights = [a * (1 - a) ** ((row - t) / STEP) for t, _ in before]
    total = sum(w * v for w, (_, v) in zip(weights, before, strict=True))
    return total / sum(weights) if sum(weights) > 0 else None


def ema_ratio(now: float, before: Before, row: int, window: int) -> float | None:
    average = ema(now, before, row, window)
    return now / average if average is not None and average > 0 else None


def growth(now: float, before: Before, row: int, window: int) -> float | None:
    tick, oldest = before[0]
    return now / oldest if oldest > 0 and row - tick > window / 2 else None


OURS: dict[str, tuple[Callable[[float, Before, int, int], float | None], int]] = {
    "spike_ratio": (spike_ratio, 3),
    "robust_zscore": (robust_zscore, 16),
    "zscore": (zscore, 16),
    "ema": (ema, 3),
    "ema_ratio": (ema_ratio, 3),
    "growth": (growth, 16),
}
