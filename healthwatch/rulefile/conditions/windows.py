"""Conditions on how a series moved over a window."""

from __future__ import annotations

from healthwatch.rulefile.conditions.baseline import sided
from healthwatch.rulefile.conditions.spec import (
    SERIES,
    Arguments,
    Condition,
    Expansion,
    Guard,
    Parameter,
    Test,
    direction,
    steps,
)

_SERIES = "those of the series, without the metric's name"


def half(window: int) -> int:
    """Half a window in whole steps, at least one."""
    return max(1, window // 2)


def _plateau(args: Arguments) -> Expansion:
    window = args["window"]
    best = "min_over_time" if args["direction"] == "down" else "max_over_time"
    before, after = f"{best}({args.finite(window)})", f"{best}({args.finite()})"
    gain = f"{before} - {after}" if args["direction"] == "down" else f"{after} - {before}"
    test = Test.of(gain, "<=", f"{args.text('min_change')} * abs({before})")
    return Expansion((test,), (Guard(f"{args.selector} offset {window + half(window)}"),))


PLATEAU = Condition(
    name="plateau",
    summary="A series that has stopped improving.",
    finds="A loss whose best value of the last window is hardly better than that of the window before.",
    formula=(
        "best(window before) - best(window) <= min_change * |best(window before)|; no verdict before 1.5 "
        "windows have passed"
    ),
    source=(
        "As the `patience` and `min_delta` of early stopping (Prechelt 1998), on two windows instead of one best value."
    ),
    example={"metric": "loss", "window": 500, "min_change": 0.01},
    not_for="The end of a schedule, where a flat loss is expected, and metrics that are noisy around a level.",
    labels=_SERIES,
    value="what was gained",
    parameters=(
        *SERIES,
        steps("window", "Length of each of the two windows.", 500),
        Parameter("min_change", "number", "Gains up to this fraction of the value are none.", 0.01, least=0),
        Parameter("direction", "choice", "Which way is better.", "down", choices=("down", "up")),
    ),
    expand=_plateau,
)


def _trend(args: Arguments) -> Expansion:
    change = f"deriv({args.finite()}) * {args['window']}"
    if args["relative"]:
        change = f"{change} / abs(avg_over_time({args.finite()}))"
    test = sided(change, args["direction"], args.text("above"))
    return Expansion((test,), (Guard(f"{args.selector} offset {half(args['window'])}"),))


TREND = Condition(
    name="trend",
    summary="A series that rises (or falls) steadily over a window.",
    finds="A slow drift through the noise: a loss that climbs, a throughput that sags by 10 % over 500 steps.",
    formula="least-squares slope * window / |mean| > above; no verdict before half a window has passed",
    source="Ordinary least squares over the window, as PromQL's `deriv`.",
    example={"metric": "loss", "window": 500, "above": 0.1},
    not_for="Jumps: one outlier tilts the line. Metrics with a mean near 0 need `relative: false`.",
    labels=_SERIES,
    value="change over the window, as a fraction of the mean where `relative`",
    parameters=(
        *SERIES,
        steps("window", "Over how many steps the line is fitted.", 500),
        Parameter("above", "number", "Breach beyond this change over the window.", 0.1, least=0),
        Parameter("relative", "flag", "Measure the change as a fraction of the window's mean.", True),
        direction("up", "Whether rising, falling or both breach."),
    ),
    expand=_trend,
)


def _constant(args: Arguments) -> Expansion:
    test = Test.of(f"max_over_time({args.window()})", "==", f"min_over_time({args.window()})")
    enough = Guard(f"count_over_time({args.finite()}) >= {args['min_samples']}")
    return Expansion((test,), (Guard(f"{args.selector} offset {half(args['window'])}"), enough))


CONSTANT = Condition(
    name="constant",
    summary="A series that does not move at all.",
    finds="A value that repeats exactly: a norm stuck at 0, a loss that is no longer computed, a counter that hangs.",
    formula="max(window) = min(window), from min_samples samples; no verdict before half a window has passed",
    source="A measured quantity of a training step differs from step to step in its last digits.",
    example={"metric": "grad_norm", "window": 50},
    not_for="Settings (learning rate, loss scale, batch size) and logs that print few digits.",
    labels=_SERIES,
    value="the value",
    parameters=(
        *SERIES,
        steps("window", "For how many steps nothing moved.", 50),
        Parameter(
            "min_samples", "count", "One sample in the window always equals itself: so many must agree.", 5, least=2
        ),
    ),
    expand=_constant,
)

CONDITIONS = (PLATEAU, TREND, CONSTANT)
