"""What each condition stands for, as the normative table has it."""

from __future__ import annotations

from typing import Any

import pytest

from healthwatch.promql.parse import parse
from healthwatch.rulefile.conditions import expand
from healthwatch.stream.catalogue import Metric

MAD = "1.4826 * quantile without (rank) (0.5, abs(m - ignoring (rank) group_left () quantile without (rank) (0.5, m)))"
FLOOR = "0.001 * abs(quantile without (rank) (0.5, m))"
DEVIATION = "(m - ignoring (rank) group_left () quantile without (rank) (0.5, m))"
LEVEL = "avg_over_time(finite(x[20]))"
BEFORE = "min_over_time(finite(m[500] offset 500))"

SERIES = {
    "nonfinite": ({}, "nonfinite(m)"),
    "threshold above": ({"above": 5}, "m > 5"),
    "threshold at_least": ({"at_least": 0.5}, "m >= 0.5"),
    "threshold below": ({"below": -1}, "m < -1"),
    "threshold at_most": ({"at_most": 0}, "m <= 0"),
    "threshold both": ({"above": 5, "at_most": 1}, "m > 5 or m <= 1"),
    "spike_ratio": ({}, "spike_ratio(m[50], 3) > 8"),
    "zscore": ({}, "robust_zscore(m[128], 16) > 6"),
    "zscore plain": ({"robust": False}, "zscore(m[128], 16) > 6"),
    "zscore down": ({"direction": "down"}, "robust_zscore(m[128], 16) < -6"),
    "zscore both": ({"direction": "both"}, "abs(robust_zscore(m[128], 16)) > 6"),
    "growth": ({}, "growth(m[500], 16) >= 2 and deriv(finite(m[500])) > 0"),
    "growth floor": ({"floor": 30}, "growth(m[500], 16) >= 2 and deriv(finite(m[500])) > 0 and m > 30"),
    "drop": ({}, "spike_ratio(m[50], 3) < 0.9"),
    "plateau": ({}, f"{BEFORE} - min_over_time(finite(m[500])) <= 0.01 * abs({BEFORE}) and m offset 750"),
    "trend": ({}, "deriv(finite(m[500])) * 500 / abs(avg_over_time(finite(m[500]))) > 0.1 and m offset 250"),
    "trend absolute": ({"relative": False, "above": 3}, "deriv(finite(m[500])) * 500 > 3 and m offset 250"),
    "constant": (
        {},
        "max_over_time(m[50]) == min_over_time(m[50]) and m offset 25 and count_over_time(finite(m[50])) >= 5",
    ),
    "missing": ({}, "present_over_time(m[200]) unless present_over_time(m[50])"),
    "outlier": (
        {"over": ["rank"]},
        (
            f"{DEVIATION} / ignoring (rank) group_left () ({MAD} > {FLOOR} or {FLOOR}) > 6 "
            "and ignoring (rank) count without (rank) (m) >= 4"
        ),
    ),
}

GROUP = {
    "nonfinite": ({}, "count without (expert) (nonfinite(x)) > 0", "nonfinite(x)"),
    "threshold": ({"above": 5}, "max without (expert) (x) > 5", "x > 5"),
    "threshold below": ({"below": 5}, "min without (expert) (x) < 5", "x < 5"),
    "saturation": (
        {},
        "max without (expert) (x) / sum without (expert) (x) >= 0.85",
        "topk without (expert) (1, x / ignoring (expert) group_left () sum without (expert) (x))",
    ),
    "saturation window": (
        {"window": 20, "top_k": 2},
        f"2 * max without (expert) ({LEVEL}) / sum without (expert) ({LEVEL}) >= 0.85",
        (
            "topk without (expert) (2, avg_over_time(finite(x[20])) / ignoring (expert) group_left () "
            "sum without (expert) (avg_over_time(finite(x[20]))))"
        ),
    ),
    "imbalance": (
        {},
        f"max without (expert) ({LEVEL}) / avg without (expert) ({LEVEL}) - 1 > 1",
        (
            "topk without (expert) (1, avg_over_time(finite(x[20])) / ignoring (expert) group_left () "
            "avg without (expert) (avg_over_time(finite(x[20]))))"
        ),
    ),
    "dead": (
        {},
        (
            "max_over_time(x[50]) == 0 and min_over_time(x[50]) == 0 and x offset 25 "
            "and ignoring (expert) sum without (expert) (sum_over_time(x[50])) > 0"
        ),
        None,
    ),
    "dead share": (
        {"share": 0.5},
        "count without (expert) (x == 0) / count without (expert) (x) >= 0.5 and sum without (expert) (x) > 0",
        "x == 0",
    ),
}


def metric(name: str, *labels: str) -> Metric:
    return Metric(name, "1", labels, "gauge", "step", "test", "")


METRICS = {
    each.name: each
    for each in (metric("m", "param"), metric("x", "layer", "expert"), metric("k", "layer"), metric("l", "split"))
}


def text_of(when: Any, **params: float) -> str:
    expanded = expand(when, METRICS, params)
    assert expanded.problems == ()
    assert expanded.text is not None
    for text in filter(None, (expanded.text, expanded.detail)):
        parsed = parse(text)
        assert parsed.expression is not None, (text, parsed.problems)
    return expanded.text


@pytest.mark.parametrize(("name", "case"), SERIES.items(), ids=SERIES)
def test_series_conditions(name: str, case: tuple[dict[str, Any], str]) -> None:
    parameters, wanted = case
    assert text_of({name.split(maxsplit=1)[0]: {"metric": "m", **parameters}}) == wanted


@pytest.mark.parametrize(("name", "case"), GROUP.items(), ids=GROUP)
def test_group_conditions(name: str, case: tuple[dict[str, Any], str, str | None]) -> None:
    parameters, wanted, detail = case
    when = {name.split(maxsplit=1)[0]: {"metric": "x", "over": ["expert"], **parameters}}
    assert text_of(when) == wanted
    assert expand(when, METRICS).detail == detail


def test_stalled() -> None:
    assert text_of({"stalled": {"after": "10m"}}) == "vector(stalled_seconds()) > 600"


def test_imbalance_of_what_is_possible() -> None:
    when = {"imbalance": {"metric": "x", "over": ["expert"], "of": "possible", "top_k": 2}}
    excess = f"max without (expert) ({LEVEL}) / avg without (expert) ({LEVEL}) - 1"
    assert text_of(when) == f"({excess}) / (count without (expert) ({LEVEL}) / 2 - 1) > 0.5"


def test_coefficient_of_variation() -> None:
    when = {"imbalance": {"metric": "x", "over": ["expert"], "of": "cv", "above": 2}}
    assert text_of(when) == f"stddev without (expert) ({LEVEL}) / avg without (expert) ({LEVEL}) > 2"


def test_top_k_may_be_a_metric() -> None:
    when = {"saturation": {"metric": "x", "over": ["expert"], "top_k": "k"}}
    assert text_of(when) == "max without (expert) (k) * max without (expert) (x) / sum without (expert) (x) >= 0.85"


def test_by_instead_of_over() -> None:
    assert text_of({"threshold": {"metric": "x", "above": 1, "by": ["layer"]}}) == "max by (layer) (x) > 1"
    assert "on (layer) sum by (layer)" in text_of({"dead": {"metric": "x", "by": ["layer"]}})


@pytest.mark.parametrize(
    ("value", "matcher"),
    [
        ("a.b", 'param="a.b"'),
        ("=~.*attn.*", 'param=~".*attn.*"'),
        ("!~lm|head", 'param!~"lm|head"'),
        ("!=x", 'param!="x"'),
        ('a"b\\c', 'param="a\\"b\\\\c"'),
        (3, 'param="3"'),
    ],
)
def test_select(value: object, matcher: str) -> None:
    assert (
        text_of({"spike_ratio": {"metric": "m", "select": {"param": value}}})
        == f"spike_ratio(m{{{matcher}}}[50], 3) > 8"
    )


def test_several_metrics_keep_their_names_where_the_result_has_one() -> None:
    assert text_of({"nonfinite": {"metric": ["m", "l"]}}) == 'nonfinite({__name__=~"m|l"})'
    assert text_of({"threshold": {"metric": ["m", "l"], "above": 1}}) == '{__name__=~"m|l"} > 1'


def test_several_metrics_are_told_apart_where_it_has_none() -> None:
    assert text_of({"drop": {"metric": ["m", "l"]}}) == (
        'label_replace(spike_ratio(m[50], 3) < 0.9, "metric", "m", "", "") or '
        'label_replace(spike_ratio(l[50], 3) < 0.9, "metric", "l", "", "")'
    )


def test_parameters_of_the_rule() -> None:
    when = {"spike_ratio": {"metric": "m", "above": "$ratio", "window": "$w"}}
    assert text_of(when, ratio=12, w=100) == "spike_ratio(m[100], 3) > 12"


SPIKE = {"spike_ratio": {"metric": "m"}}
HIGH = {"threshold": {"metric": "l", "above": 5}}


class TestCombining:
    def test_all_joins_on_what_both_carry(self) -> None:
        saturated = {"saturation": {"metric": "x", "over": ["expert"]}}
        hot = {"threshold": {"metric": "k", "above": 3}}
        assert text_of({"all": [hot, saturated]}) == (
            "k > 3 and on (layer) max without (expert) (x) / sum without (expert) (x) >= 0.85"
        )
        assert text_of({"all": [SPIKE, HIGH]}) == "spike_ratio(m[50], 3) > 8 and on () l > 5"

    def test_all_on_the_same_series_joins_on_everything(self) -> None:
        when = {"all": [{"zscore": {"metric": "m"}}, SPIKE]}
        assert text_of(when) == "robust_zscore(m[128], 16) > 6 and spike_ratio(m[50], 3) > 8"

    def test_placement_counts_where_it_is_mentioned(self) -> None:
        slow = {"outlier": {"metric": "k", "over": ["rank"]}}
        when = {"all": [{"threshold": {"metric": "m", "above": 1}}, slow]}
        assert text_of(when).startswith("m > 1 and on (rank) (")

    def test_any(self) -> None:
        assert text_of({"any": [SPIKE, HIGH]}) == "(spike_ratio(m[50], 3) > 8) or (l > 5)"

    def test_not_inverts_comparisons(self) -> None:
        assert text_of({"not": HIGH}) == "l <= 5"
        assert text_of({"not": {"not": HIGH}}) == "l > 5"
        assert text_of({"not": {"nonfinite": {"metric": "m"}}}) == "m < Inf > -Inf"
        assert text_of({"not": {"threshold": {"metric": "l", "above": 5, "below": 1}}}) == "l <= 5 and l >= 1"
        growing = {"growth": {"metric": "m", "floor": 1}}
        assert text_of({"not": growing}) == "growth(m[500], 16) < 2 or deriv(finite(m[500])) <= 0 or m <= 1"

    def test_not_keeps_what_must_be_there(self) -> None:
        assert text_of({"not": {"constant": {"metric": "m"}}}) == (
            "max_over_time(m[50]) != min_over_time(m[50]) and m offset 25 and count_over_time(finite(m[50])) >= 5"
        )
        assert text_of({"not": {"dead": {"metric": "x", "over": ["expert"]}}}) == (
            "(max_over_time(x[50]) != 0 or min_over_time(x[50]) != 0) and x offset 25 "
            "and ignoring (expert) sum without (expert) (sum_over_time(x[50])) > 0"
        )

    def test_not_follows_de_morgan(self) -> None:
        assert text_of({"not": {"all": [SPIKE, HIGH]}}) == "(spike_ratio(m[50], 3) <= 8) or (l <= 5)"
        assert text_of({"not": {"any": [SPIKE, HIGH]}}) == "spike_ratio(m[50], 3) <= 8 and on () l <= 5"

    def test_quorum(self) -> None:
        assert text_of({**SPIKE, "quorum": 5}) == "count (spike_ratio(m[50], 3) > 8) >= 5"
        assert text_of({**SPIKE, "quorum": "5%"}) == (
            "count (spike_ratio(m[50], 3) > 8) / count (spike_ratio(m[50], 3)) >= 0.05"
        )
        spike = {"spike_ratio": {"metric": "x"}}
        assert text_of({**spike, "quorum": {"at_least": 2, "by": ["layer"]}}) == (
            "count by (layer) (spike_ratio(x[50], 3) > 8) >= 2"
        )

    def test_quorum_of_all_counts_what_has_data_for_all(self) -> None:
        when = {"all": [{"zscore": {"metric": "m"}}, SPIKE], "quorum": "10%"}
        assert text_of(when) == (
            "count (robust_zscore(m[128], 16) > 6 and spike_ratio(m[50], 3) > 8) / "
            "count (robust_zscore(m[128], 16) and spike_ratio(m[50], 3)) >= 0.1"
        )

    def test_a_quorum_lists_the_series(self) -> None:
        assert expand({**SPIKE, "quorum": 5}, METRICS).detail == "spike_ratio(m[50], 3) > 8"

    def test_operands_are_put_in_brackets_where_they_must_be(self) -> None:
        either = {"any": [HIGH, {"threshold": {"metric": "k", "above": 1}}]}
        assert text_of({"all": [SPIKE, either]}) == "spike_ratio(m[50], 3) > 8 and on () ((l > 5) or (k > 1))"
