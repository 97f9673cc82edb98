"""Random series, rules and expressions, the same for the same seed."""

from __future__ import annotations

from random import Random

from dialects import AlertRule, Case

STEPS = 60
METRICS = ("x", "y")
RANKS = ("0", "1", "2")
LAYERS = ("a", "b")


def alert_case(seed: int) -> Case:
    """Six rules with random `for` and `keep_firing_for` over six random walks a metric."""
    random = Random(seed)
    rules = [
        AlertRule(f"R{i}", _condition(random), random.choice((0, 0, 1, 2, 3, 5)), random.choice((0, 0, 1, 3, 6)))
        for i in range(6)
    ]
    return Case(f"alerts-{seed}", _series(random, exotic=False), rules)


def expression_case(seed: int) -> Case:
    """Eight expressions over series that hold NaN and infinities too."""
    random = Random(1000 + seed)
    return Case(f"expressions-{seed}", _series(random, exotic=True), [], [_vector(random, 3) for _ in range(8)])


def _series(random: Random, *, exotic: bool) -> dict[str, list[float]]:
    return {
        f'{metric}{{layer="{layer}", rank="{rank}"}}': _walk(random, exotic=exotic)
        for metric in METRICS
        for layer in LAYERS
        for rank in RANKS
    }


def _walk(random: Random, *, exotic: bool) -> list[float]:
    """Mostly quiet around 2, with bursts to about 6; too finely rounded for ties, at which topk picks any."""
    values, level = [], 2.0
    for _ in range(STEPS):
        if random.random() < 0.15:
            level = random.choice((1.0, 2.0, 2.0, 5.0, 6.0))
        value = round(level + random.gauss(0, 0.5), 5)
        if exotic and random.random() < 0.03:
            value = random.choice((float("nan"), float("inf"), float("-inf"), 0.0))
        values.append(value)
    return values


def _window(random: Random) -> str:
    """Its end falls between two samples."""
    return f"{random.choice((2, 4, 7, 12))}.5"


def _selector(random: Random) -> str:
    matcher = random.choice(("", "", '{rank="1"}', '{rank!="0"}', '{layer=~"a|c"}', '{rank!~"[12]"}'))
    return f"{random.choice(METRICS)}{matcher}"


def _over_time(random: Random) -> str:
    functions = ("avg", "min", "max", "sum", "count", "stddev", "stdvar", "last", "present")
    shift = random.choice(("", "", " offset 3"))
    return f"{random.choice(functions)}_over_time({_selector(random)}[{_window(random)}]{shift})"


def _condition(random: Random) -> str:
    """A rule's expression. Names are gone from every result that mixes metrics: there the dialects part on purpose."""
    bound, windows = random.choice((2.5, 3.0, 4.5)), _window(random)
    return random.choice(
        (
            f"{_selector(random)} > {bound}",
            f"{random.choice(METRICS)} < 1.5",
            f"avg_over_time({_selector(random)}[{windows}]) > {bound}",
            f"max without (rank) (x) >= {bound} + 1",
            f"sum by (layer) (x) / count by (layer) (x) > {bound}",
            f"x > on (layer, rank) y + {bound - 2}",
            f"x / on (layer) group_left () avg by (layer) (y) > {bound / 2}",
            f"x > {bound} and y < 3",
            f"x > {bound} unless y > 3",
            f"x + 0 > {bound} or y * 2 > 9",
            f"abs(x - y) > {bound}",
            f"deriv(x[{windows}]) > 0.4",
            f"count by (layer) (x > {bound}) >= 2",
            f"topk by (layer) (1, x) > {bound}",
            f"quantile by (layer) (0.5, y) > {bound}",
            f"changes(x[{windows}]) >= 3 and max_over_time(x[{windows}]) > 5",
            f"max_over_time((x - y)[{windows}:1]) > {bound + 1}",
            f"x - x offset 2 > {bound}",
        )
    )


def _vector(random: Random, levels: int) -> str:
    if levels == 0 or random.random() < 0.2:
        return random.choice((_selector(random), _over_time(random)))
    inner, other = _vector(random, levels - 1), _vector(random, levels - 1)
    number = random.choice(("0", "1", "2.5", "-3", "1e-3"))
    joined = random.choice(("+", "-", "/", ">", "<= bool"))
    grouping = random.choice(("", "by (layer)", "by (rank)", "without (rank)", "by ()"))
    return random.choice(
        (
            f"({inner}) {random.choice('+-*/%^')} {number}",
            f"({inner}) {random.choice(('==', '!=', '>', '<', '>=', '<='))} {random.choice(('', 'bool '))}{number}",
            f"max by (layer, rank) ({inner}) {joined} min by (layer, rank) ({other})",
            f"({inner}) {random.choice(('and', 'or', 'unless'))} on (layer, rank) ({other})",
            f"{random.choice(('sum', 'avg', 'min', 'max', 'count', 'stddev', 'stdvar', 'group'))} {grouping} ({inner})",
            f"quantile {grouping} (0.7, {inner})",
            f"{random.choice(('abs', 'ceil', 'floor', 'exp', 'sgn', 'sqrt', 'ln', 'round', 'atan', '-'))}({inner})",
            f"clamp_max({inner}, 4)",
            f"max_over_time(({inner})[{_window(random)}:1])",
            f"vector(scalar(sum({inner})))",
        )
    )
