"""Conditions on how a router spreads tokens over experts."""

from __future__ import annotations

from collections.abc import Iterable

from healthwatch.rulefile.conditions.spec import (
    GROUPING,
    SERIES,
    Arguments,
    Condition,
    Expansion,
    Group,
    Guard,
    Issue,
    Parameter,
    Test,
    number,
    steps,
)
from healthwatch.rulefile.conditions.windows import half

_GROUP = "those of the group (of `tokens_per_expert` over `expert`: block, layer, mtp_idx)"
_SHARE_WINDOW = "Average each series over this many steps first; without it the newest sample counts."
_TOP_K = (
    "To how many experts a token goes: a number, or a metric that says so, such as router_topk. A token goes to k "
    "different experts, so that no share exceeds 1/k."
)
_LISTED = 3  # experts shown where top_k is a metric


def needs_group(args: Arguments) -> Iterable[Issue]:
    if args.group is None:
        yield Issue(None, "which series belong together?", "add over: [expert], or by: [...]", "missing key")


def _group(args: Arguments) -> Group:
    if args.group is None:
        raise ValueError("a condition on a group was expanded without one")
    return args.group


def _top_k(args: Arguments) -> str:
    """The number of experts a token goes to; a metric is brought to the labels of the group."""
    top_k = args["top_k"]
    return f"max {_group(args).clause} ({top_k})" if isinstance(top_k, str) else number(top_k)


def _largest(args: Arguments, of: str) -> str:
    """The series that stand out of their group, as a multiple of its sum or mean."""
    group, level = _group(args), args.level()
    count = args["top_k"] if isinstance(args["top_k"], int) else _LISTED
    share = f"{level} / {group.matching} group_left () {of} {group.clause} ({level})"
    return f"topk {group.clause} ({count}, {share})"


def _saturation(args: Arguments) -> Expansion:
    clause, level, top_k = _group(args).clause, args.level(), _top_k(args)
    share = f"max {clause} ({level}) / sum {clause} ({level})"
    value = share if top_k == "1" else f"{top_k} * {share}"
    test = Test.of(value, ">=", args.text("at_least"))
    return Expansion((test,), shape="group", detail=_largest(args, "sum"))


SATURATION = Condition(
    name="saturation",
    summary="One expert takes nearly every token of its layer.",
    finds="A collapsed router: the busiest expert gets almost as many tokens as there are.",
    formula="top_k * max(x) / sum(x) >= at_least, over the series of a group",
    source="Router collapse: Shazeer et al. 2017, arXiv:1701.06538, section 4; Fedus et al. 2021, arXiv:2101.03961.",
    example={"metric": "tokens_per_expert", "over": ["expert"], "top_k": "router_topk", "at_least": 0.85},
    not_for="Mild imbalance (`imbalance`), experts that get nothing (`dead`), and values that may be negative.",
    labels=_GROUP,
    value="share of the tokens that reach the busiest expert",
    parameters=(
        *SERIES,
        *GROUPING,
        Parameter("top_k", "count or metric", _TOP_K, 1, example="router_topk"),
        Parameter("at_least", "number", "Breach from this share on.", 0.85, least=0, most=1),
        steps("window", _SHARE_WINDOW),
    ),
    expand=_saturation,
    check=needs_group,
)


def _imbalance(args: Arguments) -> Expansion:
    clause, level, bound = _group(args).clause, args.level(), args["above"]
    excess = f"max {clause} ({level}) / avg {clause} ({level}) - 1"
    values = {
        "excess": excess,
        "cv": f"stddev {clause} ({level}) / avg {clause} ({level})",
        "possible": f"({excess}) / (count {clause} ({level}) / {_top_k(args)} - 1)",
    }
    bound = _default_bound(args["of"]) if bound is None else bound
    test = Test.of(values[args["of"]], ">", number(bound))
    return Expansion((test,), shape="group", detail=_largest(args, "avg"))


def _default_bound(of: str) -> float:
    return 0.5 if of == "possible" else 1.0


def _check_imbalance(args: Arguments) -> Iterable[Issue]:
    yield from needs_group(args)
    if args["of"] == "possible" and args.given("above") and args["above"] >= 1:
        message = "this can never be reached: 1 is the most that is possible"
        yield Issue("above", message, "of: possible needs a bound below 1, such as 0.5", "out of range")
    if args["of"] != "possible" and args["top_k"] != 1:
        yield Issue("top_k", f'"of: {args["of"]}" does not use top_k', "write of: possible, or leave it out")


IMBALANCE = Condition(
    name="imbalance",
    summary="The busiest expert takes far more than its share.",
    finds="Routers that drift towards few experts, long before one of them has everything.",
    formula=(
        "excess: max(x) / mean(x) - 1; cv: standard deviation / mean; possible: excess / (series / top_k - "
        "1), which is 1 "
        "where one expert takes every token"
    ),
    source=(
        "MaxVio of Wang et al. 2024, arXiv:2408.15664 (excess); coefficient of variation of Shazeer et al. "
        "2017, arXiv:1701.06538."
    ),
    example={"metric": "tokens_per_expert", "over": ["expert"], "window": 20, "above": 1},
    examples=(
        {"metric": "tokens_per_expert", "over": ["expert"], "of": "possible", "top_k": "router_topk", "above": 0.5},
    ),
    not_for=(
        "Comparing models: the largest excess there can be is experts / top_k - 1, so that `excess: 4` is "
        "never reached "
        "with 8 experts and top 2. `of: possible` measures against that bound."
    ),
    labels=_GROUP,
    value="by how much the busiest exceeds the mean, as a multiple of it (excess)",
    parameters=(
        *SERIES,
        *GROUPING,
        steps("window", "Average each series over this many steps first.", 20),
        Parameter("above", "number", "Breach above this; 1 by default, 0.5 with `of: possible`.", least=0, example=1),
        Parameter("of", "choice", "What is measured.", "excess", choices=("excess", "cv", "possible")),
        Parameter("top_k", "count or metric", f"With `of: possible`. {_TOP_K}", 1, example="router_topk"),
    ),
    expand=_imbalance,
    check=_check_imbalance,
)


def _dead(args: Arguments) -> Expansion:
    return _dead_share(args) if args.given("share") else _dead_series(args)


def _dead_series(args: Arguments) -> Expansion:
    group, window = _group(args), args.window()
    tests = tuple(Test.of(f"{end}_over_time({window})", "==", "0") for end in ("max", "min"))
    ran = Guard(f"sum {group.clause} (sum_over_time({window})) > 0", group.matching)
    return Expansion(tests, (Guard(f"{args.selector} offset {half(args['window'])}"), ran))


def _dead_share(args: Arguments) -> Expansion:
    clause, series, bound = _group(args).clause, args.selector, args.text("share")
    test = Test(
        f"count {clause} ({series} == 0) / count {clause} ({series}) >= {bound}",
        f"sum {clause} ({series} == bool 0) / count {clause} ({series}) < {bound}",
        f"count {clause} ({series})",
    )
    ran = Guard(f"sum {clause} ({series}) > 0")
    return Expansion((test,), (ran,), shape="group", detail=f"{series} == 0")


def _read_dead(args: Arguments) -> Iterable[Issue]:
    yield from needs_group(args)
    if args.given("share") and args["window"] != _DEAD_WINDOW:
        yield Issue("window", '"share" looks at the newest sample alone', "leave out window or share")


_DEAD_WINDOW = 50

DEAD = Condition(
    name="dead",
    summary="Experts that get no token, while their layer does.",
    finds=(
        "Experts that have received nothing for a whole window; with `share`, layers in which many get "
        "nothing right now."
    ),
    formula=(
        "x = 0 throughout the window, and the group's sum over the window is positive; with `share`: "
        "(series that are 0) / (series) >= share, and the group's sum is positive"
    ),
    source=(
        "Unused experts waste their parameters: Fedus et al. 2021, arXiv:2101.03961. A layer that did not run"
        " has no dead experts."
    ),
    example={"metric": "tokens_per_expert", "over": ["expert"], "window": 50},
    examples=({"metric": "tokens_per_expert", "over": ["expert"], "share": 0.5},),
    not_for="Very small batches, in which an expert may get nothing by chance: take a longer window.",
    labels="those of the series; with `share` those of the group",
    value="0; with `share` the share of series that are 0",
    parameters=(
        *SERIES,
        *GROUPING,
        steps("window", "For how many steps there was nothing.", _DEAD_WINDOW),
        Parameter(
            "share",
            "number",
            "Instead of a window: breach at once where this share of the series is 0.",
            least=0,
            most=1,
            example=0.5,
        ),
    ),
    expand=_dead,
    check=_read_dead,
)

CONDITIONS = (SATURATION, IMBALANCE, DEAD)
