"""The rules of the second opinion: the defaults of the shipped packs, as plain loops over recorded samples.

Every rule looks at its window sample by sample, at every tick.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from statistics import median

STEP = 1_000_000  # ticks
Labels = tuple[tuple[str, str], ...]
Verdicts = dict[Labels, tuple[bool, float]]  # breach or clear, and the value; a label set without an entry has no data


@dataclass
class Series:
    ticks: list[int] = field(default_factory=list)
    values: list[float] = field(default_factory=list)

    def at(self, tick: int) -> float | None:
        place = bisect_right(self.ticks, tick) - 1
        return self.values[place] if place >= 0 and self.ticks[place] == tick else None

    def window(self, tick: int, steps: int) -> list[tuple[int, float]]:
        """The samples in (tick - steps, tick]."""
        first, last = bisect_right(self.ticks, tick - steps * STEP), bisect_right(self.ticks, tick)
        return list(zip(self.ticks[first:last], self.values[first:last], strict=True))


class Samples:
    """The samples of a run by metric and label set. `add` must be called in the order of ticks."""

    def __init__(self) -> None:
        self.metrics: dict[str, dict[Labels, Series]] = {}
        self.rows: dict[str, list[int]] = {}

    def add(self, metric: str, labels: Mapping[str, str], tick: int, value: float) -> None:
        name = tuple(sorted(labels.items()))
        series = self.metrics.setdefault(metric, {}).setdefault(name, Series())
        series.ticks.append(tick)
        series.values.append(float(value))
        rows = self.rows.setdefault(metric, [])
        if not rows or rows[-1] < tick:
            rows.append(tick)

    def row(self, metric: str, tick: int) -> dict[Labels, float]:
        """The samples at the newest tick of the metric that is not later than `tick`."""
        rows = self.rows.get(metric, [])
        place = bisect_right(rows, tick) - 1
        if place < 0:
            return {}
        found = {labels: series.at(rows[place]) for labels, series in self.metrics[metric].items()}
        return {labels: value for labels, value in found.items() if value is not None}

    def window(self, metric: str, labels: Labels, tick: int, steps: int) -> list[tuple[int, float]]:
        return self.metrics[metric][labels].window(tick, steps)

    def finite(self, metric: str, labels: Labels, tick: int, steps: int) -> list[tuple[int, float]]:
        return [sample for sample in self.window(metric, labels, tick, steps) if math.isfinite(sample[1])]


def without(labels: Labels, name: str) -> Labels:
    return tuple(pair for pair in labels if pair[0] != name)


def by_layer(values: Mapping[Labels, float]) -> dict[Labels, dict[Labels, float]]:
    layers: dict[Labels, dict[Labels, float]] = {}
    for labels, value in values.items():
        layers.setdefault(without(labels, "expert"), {})[labels] = value
    return layers


# Functions of one series


def baseline(samples: Samples, metric: str, labels: Labels, tick: int, steps: int) -> list[float]:
    """The finite samples of the window before the one at its end."""
    return [value for at, value in samples.finite(metric, labels, tick, steps) if at < tick]


def spike_ratio(now: float, before: list[float], least: int) -> float | None:
    if len(before) < least or math.isnan(now) or median(before) <= 0:
        return None
    return now / median(before)


def robust_zscore(now: float, before: list[float], least: int = 16) -> float | None:
    if len(before) < least or math.isnan(now):
        return None
    middle = median(before)
    spread = max(1.4826 * median(abs(value - middle) for value in before), 1e-3 * abs(middle))
    return (now - middle) / spread if spread else None


def slope(window: list[tuple[int, float]]) -> float | None:
    """Least squares, per step."""
    if len(window) < 2:
        return None
    xs = [tick / STEP for tick, _ in window]
    x_mean = sum(xs) / len(xs)
    y_mean = sum(value for _, value in window) / len(window)
    covariance = sum((x - x_mean) * (value - y_mean) for x, (_, value) in zip(xs, window, strict=True))
    return covariance / sum((x - x_mean) ** 2 for x in xs)


# Rules: the verdict on every label set at one tick


def all_of(*conditions: bool | None) -> bool | None:
    """Clear if any is clear, no data if one is unknown, else breach."""
    if any(condition is False for condition in conditions):
        return False
    return None if any(condition is None for condition in conditions) else True


def compare(value: float | None, bound: Callable[[float], bool]) -> bool | None:
    return None if value is None or math.isnan(value) else bound(value)


def keep_known(verdicts: Mapping[Labels, tuple[bool | None, float | None]]) -> Verdicts:
    return {
        labels: (breach, math.nan if value is None else value)
        for labels, (breach, value) in verdicts.items()
        if breach is not None
    }


def named(metric: str, labels: Labels) -> Labels:
    """As the samples of a selector are called; a function drops the name."""
    return tuple(sorted((*labels, ("__name__", metric))))


def nonfinite(metric: str) -> Callable[[Samples, int], Verdicts]:
    def evaluate(samples: Samples, tick: int) -> Verdicts:
        row = samples.row(metric, tick)
        return {named(metric, labels): (not math.isfinite(value), value) for labels, value in row.items()}

    return evaluate


def above(metric: str, bound: float) -> Callable[[Samples, int], Verdicts]:
    def evaluate(samples: Samples, tick: int) -> Verdicts:
        row = samples.row(metric, tick)
        known = {labels: value for labels, value in row.items() if not math.isnan(value)}
        return {named(metric, labels): (value > bound, value) for labels, value in known.items()}

    return evaluate


def spike(metric: str, steps: int, ratio: Callable[[float], bool]) -> Callable[[Samples, int], Verdicts]:
    """Far out of the window's spread, and far from its median."""

    def evaluate(samples: Samples, tick: int) -> Verdicts:
        verdicts = {}
        for labels, now in samples.row(metric, tick).items():
            before = baseline(samples, metric, labels, tick, steps)
            times = spike_ratio(now, before, 3)
            far = compare(robust_zscore(now, before), lambda z: z > 6)
            verdicts[labels] = (all_of(far, compare(times, ratio)), times)
        return keep_known(verdicts)

    return evaluate


def quantile(values: list[float], q: float) -> float:
    """Between the two samples that it lies between."""
    ordered = sorted(values)
    place = q * (len(ordered) - 1)
    low, part = math.floor(place), place - math.floor(place)
    return ordered[low] * (1 - part) + ordered[min(low + 1, len(ordered) - 1)] * part


def stays(metric: str, factor: float) -> Callable[[Samples, Labels, int], bool]:
    """The median of 20 steps is above so many times the lowest tenth of 2,000: a new level is no recovery."""

    def held(samples: Samples, labels: Labels, tick: int) -> bool:
        recent, long = ([value for _, value in samples.finite(metric, labels, tick, steps)] for steps in (20, 2000))
        return bool(recent) and quantile(recent, 0.5) > factor * quantile(long, 0.1)

    return held


def parameter_spike(samples: Samples, tick: int) -> Verdicts:
    """8 times its own median, and a twentieth of what the micro-batch's whole gradient measures."""
    row = samples.row("micro_norm", tick)
    total = math.sqrt(sum(value * value for value in row.values()))
    verdicts = {}
    for labels, now in row.items():
        times = spike_ratio(now, baseline(samples, "micro_norm", labels, tick, 50), 3)
        floor = compare(now, lambda norm: norm >= 0.05 * total)
        verdicts[labels] = (all_of(compare(times, lambda r: r >= 8), floor), times)
    return keep_known(verdicts)


def logit_growth(samples: Samples, tick: int) -> Verdicts:
    verdicts = {}
    for labels, now in samples.row("max_attention_logit", tick).items():
        window = samples.finite("max_attention_logit", labels, tick, 500)
        old = window and tick - window[0][0] > 250 * STEP and len(window) > 16 and window[0][1] > 0
        times = now / window[0][1] if old and not math.isnan(now) else None
        conditions = (
            compare(times, lambda ratio: ratio >= 2),
            compare(slope(window), lambda rise: rise > 0),
            compare(now, lambda logit: logit > 30),
        )
        verdicts[labels] = (all_of(*conditions), times)
    return keep_known(verdicts)


def saturation(samples: Samples, tick: int) -> Verdicts:
    """The most loaded expert's share of the tokens: a token goes to k experts."""
    counts = {
        labels: sum(value for _, value in samples.window("tokens_per_expert", labels, tick, 1))
        for labels in samples.row("tokens_per_expert", tick)
    }
    topk = samples.row("router_topk", tick)
    verdicts = {}
    for layer, experts in by_layer(counts).items():
        if layer in topk and sum(experts.values()) > 0:
            share = topk[layer] * max(experts.values()) / sum(experts.values())
            verdicts[layer] = (share >= 0.85, share)
    return verdicts


def imbalance(part: float, least: float) -> Callable[[Samples, int], Verdicts]:
    """Excess over an even load of the 20-step means, against the largest excess that k of E experts allow."""

    def evaluate(samples: Samples, tick: int) -> Verdicts:
        means = {}
        for labels in samples.row("tokens_per_expert", tick):
            window = [value for _, value in samples.finite("tokens_per_expert", labels, tick, 20)]
            if window:
                means[labels] = sum(window) / len(window)
        topk = samples.row("router_topk", tick)
        verdicts = {}
        for layer, experts in by_layer(means).items():
            even = sum(experts.values()) / len(experts)
            if layer in topk and even > 0:
                excess = max(experts.values()) / even - 1
                possible = len(experts) / topk[layer] - 1
                verdicts[layer] = (excess > least and excess > part * possible, excess)
        return verdicts

    return evaluate


def dead_expert(samples: Samples, tick: int) -> Verdicts:
    """No token in 50 steps, of which it was there for half, while its layer ran."""
    earlier = samples.row("tokens_per_expert", tick - 25 * STEP)
    windows = {
        labels: [value for _, value in samples.window("tokens_per_expert", labels, tick, 50)]
        for labels in samples.row("tokens_per_expert", tick)
    }
    loads = by_layer({labels: sum(window) for labels, window in windows.items()})
    verdicts: Verdicts = {}
    for labels, window in windows.items():
        silent = max(window) == 0 and min(window) == 0
        layer_ran = sum(loads[without(labels, "expert")].values()) > 0
        if not silent or not layer_ran:
            verdicts[labels] = (False, 0.0)
        elif labels in earlier:
            verdicts[labels] = (True, 0.0)
    return verdicts
