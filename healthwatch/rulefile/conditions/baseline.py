"""Conditions that compare the newest sample with the series' own recent history."""

from __future__ import annotations

from healthwatch.rulefile.conditions.spec import (
    SERIES,
    Arguments,
    Condition,
    Expansion,
    Parameter,
    Test,
    direction,
    min_samples,
    steps,
)

_WINDOW = "How many steps of history make the baseline; at least 16 rows of the metric, however sparse it is."
_BASELINE = "The newest sample itself and NaN or infinite ones are not part of the baseline."
_SERIES = "those of the series, without the metric's name"


def sided(value: str, direction_: str, bound: str) -> Test:
    """A value that is too high, too low, or either."""
    if direction_ == "down":
        return Test.of(value, "<", bound if bound == "0" else _negative(bound))
    return Test.of(f"abs({value})" if direction_ == "both" else value, ">", bound)


def _negative(bound: str) -> str:
    return bound.removeprefix("-") if bound.startswith("-") else f"-{bound}"


def _ratio(args: Arguments) -> str:
    return f"spike_ratio({args.window()}, {args.text('min_samples')})"


def _spike_ratio(args: Arguments) -> Expansion:
    return Expansion((Test.of(_ratio(args), ">", args.text("above")),))


SPIKE_RATIO = Condition(
    name="spike_ratio",
    summary="A value many times its own recent median.",
    finds=(
        "A sudden jump of a positive quantity: a gradient norm, a loss, a step time. One outlier leaves the "
        "median alone."
    ),
    formula=f"x / median(x over the window) > above. {_BASELINE}",
    source=(
        "Median as a baseline that one spike can't move; factors of 5 to 10 are far outside the usual noise of norms."
    ),
    example={"metric": "micro_norm", "select": {"param": "=~.*attention.*"}, "window": 50, "above": 8},
    not_for=(
        "Metrics that may be negative (-10 beside a median of -1 looks like a spike of 10) and metrics that "
        "are mostly 0, "
        "whose median is 0 and gives no result."
    ),
    labels=_SERIES,
    value="how many times the median",
    parameters=(
        *SERIES,
        steps("window", _WINDOW, 50),
        Parameter("above", "number", "Breach above this multiple of the median.", 8, least=0, open_bounds=True),
        min_samples(3),
    ),
    expand=_spike_ratio,
)


def _drop(args: Arguments) -> Expansion:
    return Expansion((Test.of(_ratio(args), "<", args.text("below")),))


DROP = Condition(
    name="drop",
    summary="A value well below its own recent median.",
    finds="A sudden fall of a positive quantity: throughput that loses 10 %, a loss that collapses to nothing.",
    formula=f"x / median(x over the window) < below. {_BASELINE}",
    source="The counterpart of `spike_ratio`.",
    example={"metric": "tokens_per_second", "window": 50, "below": 0.9},
    not_for=(
        "Metrics that may be negative, or that are 0 most of the time. A slow decline moves the median along:"
        " use `trend`."
    ),
    labels=_SERIES,
    value="which fraction of the median",
    parameters=(
        *SERIES,
        steps("window", _WINDOW, 50),
        Parameter("below", "number", "Breach below this fraction of the median.", 0.9, least=0, open_bounds=True),
        min_samples(3),
    ),
    expand=_drop,
)


def _zscore(args: Arguments) -> Expansion:
    function = "robust_zscore" if args["robust"] else "zscore"
    value = f"{function}({args.window()}, {args.text('min_samples')})"
    return Expansion((sided(value, args["direction"], args.text("above")),))


ZSCORE = Condition(
    name="zscore",
    summary="A value many deviations away from its own recent level.",
    finds="Values that are unusual for this series, whatever its scale and sign, from how much it usually varies.",
    formula=(
        "robust: (x - median) / max(1.4826 MAD, 0.001 |median|); else (x - mean) / max(standard deviation, "
        "0.001 |mean|). "
        f"{_BASELINE}"
    ),
    source=(
        "1.4826 makes the median absolute deviation the standard deviation of a Gaussian (Hampel 1974). 16 samples at "
        "least: with 3, a Gaussian exceeds z = 6 in 9 % of the evaluations, with 16 in 0.02 %."
    ),
    example={"metric": "loss", "window": 128, "above": 6},
    not_for=(
        "Heavy-tailed series such as gradient norms on their own: even 127 samples alarm at 0.4 % of the "
        "steps. Join it "
        "with a `spike_ratio` under `all:` and give the rule `for_records`."
    ),
    labels=_SERIES,
    value="deviations from the baseline",
    parameters=(
        *SERIES,
        steps("window", _WINDOW, 128),
        Parameter("above", "number", "Breach beyond this many deviations.", 6, least=0, open_bounds=True),
        Parameter("robust", "flag", "Median and MAD instead of mean and standard deviation.", True),
        direction("up", "Whether high, low or both kinds of values are unusual."),
        min_samples(16),
    ),
    expand=_zscore,
)


def _growth(args: Arguments) -> Expansion:
    ratio = f"growth({args.window()}, {args.text('min_samples')})"
    tests = [Test.of(ratio, ">=", args.text("at_least")), Test.of(f"deriv({args.finite()})", ">", "0")]
    if args.given("floor"):
        tests.append(Test.of(args.selector, ">", args.text("floor")))
    return Expansion(tuple(tests))


GROWTH = Condition(
    name="growth",
    summary="A value that creeps up to a multiple of what it was a window ago.",
    finds="Slow, steady growth that no spike condition sees: attention logits or norms that double over 500 steps.",
    formula=(
        "x / (oldest finite x of the window) >= at_least, and the least-squares slope over the window is positive; no "
        "verdict while the oldest sample is younger than half the window"
    ),
    source=(
        "Logit growth before divergence in attention: Dehghani et al. 2023, arXiv:2302.05442; Wortsman et al."
        " 2023, arXiv:2309.14322."
    ),
    example={"metric": "max_attention_logit", "window": 500, "at_least": 2, "floor": 30},
    not_for="Quantities that grow from nearly 0 in a healthy training; `floor` keeps small values out.",
    labels=_SERIES,
    value="how many times the oldest value",
    parameters=(
        *SERIES,
        steps("window", "Over how many steps the growth is measured.", 500),
        Parameter("at_least", "number", "Breach from this multiple on.", 2, least=1),
        Parameter("floor", "number", "Only where the value is above this.", example=30),
        min_samples(16),
    ),
    expand=_growth,
)

CONDITIONS = (SPIKE_RATIO, DROP, ZSCORE, GROWTH)
