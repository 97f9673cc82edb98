"""Conditions on the newest sample alone."""

from __future__ import annotations

from collections.abc import Iterable

from healthwatch.rulefile.conditions.spec import (
    GROUPING,
    SERIES,
    Arguments,
    Condition,
    Expansion,
    Issue,
    Parameter,
    Test,
)

_OPERATORS = {"above": ">", "at_least": ">=", "below": "<", "at_most": "<="}


def _nonfinite(args: Arguments) -> Expansion:
    series = args.selector
    if args.group is None:
        return Expansion((Test(f"nonfinite({series})", f"{series} < Inf > -Inf", series),))
    clause = args.group.clause
    # A finite number times 0 is 0, NaN and infinities make NaN: the group's sum is 0 only if every series is finite.
    test = Test(
        f"count {clause} (nonfinite({series})) > 0", f"sum {clause} ({series} * 0) == 0", f"count {clause} ({series})"
    )
    return Expansion((test,), shape="group", detail=f"nonfinite({series})")


NONFINITE = Condition(
    name="nonfinite",
    summary="A value that is NaN or infinite.",
    finds="NaN, +Inf and -Inf in the newest sample of each series, in the first micro-step in which they appear.",
    formula="x is NaN or |x| = infinity; with `over` or `by`, at least one series of the group",
    source="IEEE 754: NaN and infinities spread through every sum, so the first one seen is the closest to its cause.",
    example={"metric": ["loss", "grad_norm"]},
    not_for=(
        "Gradient norms under a dynamic loss scale: an overflow is found, skipped and repaired by the scaler. "
        "Watch `overflow` for bursts instead."
    ),
    labels="those of the series; with `over` or `by` those of the group",
    value="NaN, +Inf or -Inf; for a group the number of series",
    parameters=(*SERIES, *GROUPING),
    expand=_nonfinite,
    keeps_name=lambda args: args.group is None,
)


def _threshold(args: Arguments) -> Expansion:
    tests = tuple(_bound(args, name) for name in _OPERATORS if args.given(name))
    detail = None
    if args.group is not None:
        detail = " or ".join(
            f"{args.selector} {op} {args.text(name)}" for name, op in _OPERATORS.items() if args.given(name)
        )
    return Expansion(tests, join="or", shape="group" if args.group else "series", detail=detail)


def _bound(args: Arguments, name: str) -> Test:
    value = args.selector
    if args.group is not None:
        value = f"{'max' if name in ('above', 'at_least') else 'min'} {args.group.clause} ({value})"
    return Test.of(value, _OPERATORS[name], args.text(name))


def _check_threshold(args: Arguments) -> Iterable[Issue]:
    if not any(map(args.given, _OPERATORS)):
        yield Issue(None, "threshold has no bound", f"give one of {', '.join(_OPERATORS)}", "missing key")
    for strict, loose in (("above", "at_least"), ("below", "at_most")):
        if args.given(strict) and args.given(loose):
            yield Issue(loose, f'"{strict}" and "{loose}" exclude each other', "keep one of them")
    low = max((args[name] for name in ("below", "at_most") if args.given(name)), default=float("-inf"))
    high = min((args[name] for name in ("above", "at_least") if args.given(name)), default=float("inf"))
    if low > high:
        upper = "above" if args.given("above") else "at_least"
        yield Issue(upper, "every value breaches one of the two bounds", "the lower bound must lie below the upper one")


THRESHOLD = Condition(
    name="threshold",
    summary="A value beyond a fixed bound.",
    finds="Samples above or below bounds that you know: a loss, a logit, a scale that is never right outside of them.",
    formula="x > above, x >= at_least, x < below, x <= at_most; with both sides given, either of them",
    source="Bounds are yours; take them from a healthy run (`healthwatch query`) or from the hardware's limits.",
    example={"metric": "max_attention_logit", "above": 100, "over": ["head"]},
    examples=({"metric": "loss_scale", "at_most": 1},),
    not_for=(
        "Levels that drift with the training, such as norms: `spike_ratio` and `zscore` compare with recent history."
    ),
    labels="those of the series; with `over` or `by` those of the group",
    value="the sample; for a group its largest (upper bounds) or smallest (lower bounds)",
    parameters=(
        *SERIES,
        Parameter("above", "number", "Breach where the value is greater.", example=100),
        Parameter("at_least", "number", "Breach where the value is greater or equal.", example=100),
        Parameter("below", "number", "Breach where the value is smaller.", example=0.1),
        Parameter("at_most", "number", "Breach where the value is smaller or equal.", example=0),
        *GROUPING,
    ),
    expand=_threshold,
    check=_check_threshold,
    keeps_name=lambda args: args.group is None and sum(map(args.given, _OPERATORS)) == 1,
)

CONDITIONS = (NONFINITE, THRESHOLD)
