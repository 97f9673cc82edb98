"""Conditions that compare a series with its peers at the same step."""

from __future__ import annotations

from collections.abc import Iterable

from healthwatch.rulefile.conditions.baseline import sided
from healthwatch.rulefile.conditions.spec import (
    BY,
    OVER,
    SERIES,
    Arguments,
    Condition,
    Expansion,
    Group,
    Guard,
    Issue,
    Parameter,
    Test,
    direction,
)

_RANKS = Group(("rank",), without=True)
_PER_STANDARD_DEVIATION = 1.4826
_FLOOR = 0.001  # of the median: the least deviation that counts as usual


def _outlier(args: Arguments) -> Expansion:
    group, series = args.group or _RANKS, args.selector
    median = f"quantile {group.clause} (0.5, {series})"
    deviation = f"{series} - {group.matching} group_left () {median}"
    mad = f"{_PER_STANDARD_DEVIATION} * quantile {group.clause} (0.5, abs({deviation}))"
    floor = f"{_FLOOR} * abs({median})"
    value = f"({deviation}) / {group.matching} group_left () ({mad} > {floor} or {floor})"
    tests = [sided(value, args["direction"], args.text("above"))]
    distance = f"abs({deviation})"
    if args.given("min_deviation"):
        tests.append(Test.of(distance, ">", args.text("min_deviation")))
    if args.given("min_relative"):
        bound = f"{group.matching} group_left () ({args.text('min_relative')} * abs({median}))"
        tests.append(Test.of(distance, ">", bound))
    peers = Guard(f"count {group.clause} ({series}) >= {args['min_peers']}", group.matching)
    return Expansion(tuple(tests), (peers,))


def _one_group(args: Arguments) -> Iterable[Issue]:
    if args.group is not None and not args.group.labels and args.group.without:
        yield Issue("over", "an empty list compares every series with itself alone", "over: [rank]", "out of range")


OUTLIER = Condition(
    name="outlier",
    summary="A series that differs from its peers at the same step.",
    finds="One rank that is slower, hotter or further off than the others; one replica whose norm no longer agrees.",
    formula=(
        "(x - median of peers) / max(1.4826 MAD of peers, 0.001 |median|) > above, with at least min_peers "
        "peers and, where "
        "given, |x - median| > min_deviation and |x - median| > min_relative * |median|"
    ),
    source="Hampel identifier over a group: the median and MAD are not moved by the odd one out (Hampel 1974).",
    example={"metric": "step_time", "over": ["rank"], "above": 6, "min_relative": 0.1},
    not_for=(
        "Groups of two or three, which can't say who is wrong, and series that are meant to differ, such as "
        "the stages of a "
        "pipeline: leave their label in the group (`over: [rank]` keeps `pp` apart)."
    ),
    labels="those of the series, without the metric's name",
    value="deviations from the peers' median",
    parameters=(
        *SERIES,
        Parameter(OVER.name, OVER.kind, "Labels in which the peers differ.", ["rank"], example=["rank"]),
        BY,
        Parameter("above", "number", "Breach beyond this many deviations.", 6, least=0, open_bounds=True),
        Parameter("min_peers", "count", "Fewer series than this are not compared.", 4, least=3),
        Parameter(
            "min_deviation",
            "number",
            "Only where the difference is more than this, in the metric's unit: peers that agree to the last "
            "digit make "
            "any difference look large.",
            least=0,
            example=1e-6,
        ),
        Parameter(
            "min_relative",
            "number",
            "Only where the difference is more than this fraction of the peers' median.",
            least=0,
            example=0.1,
        ),
        direction("up", "Whether high, low or both kinds of values are unusual."),
    ),
    expand=_outlier,
    check=_one_group,
)

CONDITIONS = (OUTLIER,)
