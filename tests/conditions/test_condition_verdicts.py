"""Each condition fires on what it is for, is quiet on what it is not, and keeps its head at the edges."""

from __future__ import annotations

import math
from typing import ClassVar

import numpy as np
import pytest
from condition_run import breaching, run

NAN, INF = math.nan, math.inf
FLAT = [1.0 + 0.01 * (step % 7) for step in range(100)]  # never twice the same, never far


class TestNonfinite:
    WHEN: ClassVar = {"nonfinite": {"metric": "norm"}}

    def test_fires_on_each_kind(self):
        seen = breaching(self.WHEN, {"norm{param=a}": [1, NAN, 1, INF, -INF], "norm{param=b}": [1, 1, 1, 1, 1]})
        assert seen == {2: ["norm,a"], 4: ["norm,a"], 5: ["norm,a"]}

    def test_quiet_on_large_numbers(self):
        assert breaching(self.WHEN, {"norm{param=a}": [1e300, -1e300, 0]}) == {}

    def test_a_finite_value_is_clear(self):
        assert run(self.WHEN, {"norm{param=a}": [1, NAN]})[1].clear == {"norm,a"}

    def test_two_metrics_are_two_alerts(self):
        seen = breaching({"nonfinite": {"metric": ["loss", "speed"]}}, {"loss": [NAN], "speed": [NAN]})
        assert seen == {1: ["loss", "speed"]}

    def test_the_opposite_of_two_metrics(self):
        when = {"not": {"nonfinite": {"metric": ["loss", "speed"]}}}
        assert breaching(when, {"loss": [1.0, NAN], "speed": [INF, 1.0]}) == {1: ["loss"], 2: ["speed"]}

    def test_of_a_group(self):
        when = {"nonfinite": {"metric": "logit", "over": ["head"]}}
        series = {
            f"logit{{layer={layer},head={head}}}": [1.0, NAN if layer else 2.0] for layer in (0, 1) for head in (0, 1)
        }
        assert run(when, series)[2].breaches == {"1": 2.0}

    def test_its_opposite_breaches_on_finite_values_only(self):
        series = {"norm{param=a}": [1, NAN, INF, 2]}
        assert breaching({"not": self.WHEN}, series) == {1: ["norm,a"], 4: ["norm,a"]}
        grouped = {"not": {"nonfinite": {"metric": "logit", "over": ["head"]}}}
        heads = {"logit{layer=0,head=0}": [1, 1, INF], "logit{layer=0,head=1}": [1, NAN, -INF]}
        assert breaching(grouped, heads) == {1: ["0"]}


class TestThreshold:
    def test_each_bound(self):
        series = {"loss": [1, 2, 3]}
        assert list(breaching({"threshold": {"metric": "loss", "above": 2}}, series)) == [3]
        assert list(breaching({"threshold": {"metric": "loss", "at_least": 2}}, series)) == [2, 3]
        assert list(breaching({"threshold": {"metric": "loss", "below": 2}}, series)) == [1]
        assert list(breaching({"threshold": {"metric": "loss", "at_most": 2}}, series)) == [1, 2]
        assert list(breaching({"threshold": {"metric": "loss", "below": 2, "above": 2}}, series)) == [1, 3]

    def test_quiet_within(self):
        assert breaching({"threshold": {"metric": "loss", "below": 0, "above": 5}}, {"loss": [1, 2, 3]}) == {}

    def test_nan_is_neither_breach_nor_clear(self):
        seen = run({"threshold": {"metric": "loss", "above": 5}}, {"loss": [9, NAN, 1]})
        assert [bool(step.breaches) for step in seen.values()] == [True, False, False]
        assert [bool(step.clear) for step in seen.values()] == [False, False, True]

    def test_a_group_tells_its_extreme(self):
        when = {"threshold": {"metric": "logit", "above": 100, "over": ["head"]}}
        series = {"logit{layer=0,head=0}": [90.0], "logit{layer=0,head=1}": [120.0], "logit{layer=1,head=0}": [99.0]}
        assert run(when, series)[1].breaches == {"0": 120.0}


class TestSpikeRatio:
    WHEN: ClassVar = {"spike_ratio": {"metric": "norm"}}

    def test_fires_and_tells_the_ratio(self):
        assert run(self.WHEN, {"norm{param=a}": [2.0] * 20 + [20.0]})[21].breaches == {"a": 10.0}

    def test_quiet_below(self):
        assert breaching(self.WHEN, {"norm{param=a}": [2.0] * 20 + [15.0]}) == {}

    def test_no_verdict_with_too_few_samples(self):
        seen = run(self.WHEN, {"norm{param=a}": [1.0, 1.0, 1.0, 1.0]})
        assert [bool(step.clear) for step in seen.values()] == [False, False, False, True]

    def test_infinity_is_a_spike_and_nan_is_not(self):
        assert list(breaching(self.WHEN, {"norm{param=a}": [1.0] * 10 + [INF, NAN, 1.0]})) == [11]

    def test_one_nan_does_not_hide_a_later_spike(self):
        assert list(breaching(self.WHEN, {"norm{param=a}": [1.0] * 10 + [NAN, 1.0, 1.0, 20.0]})) == [14]

    def test_a_median_of_zero_says_nothing(self):
        assert breaching(self.WHEN, {"norm{param=a}": [0.0] * 20 + [5.0]}) == {}

    def test_a_negative_baseline_says_nothing(self):
        assert breaching(self.WHEN, {"norm{param=a}": [-1.0] * 20 + [-10.0]}) == {}

    def test_a_sparse_metric_has_a_baseline_too(self):
        values = [1.0 if step % 100 == 99 else None for step in range(500)] + [None] * 99 + [20.0]
        assert list(breaching(self.WHEN, {"norm{param=a}": values})) == [600]


class TestDrop:
    WHEN: ClassVar = {"drop": {"metric": "speed"}}

    def test_fires_on_ten_percent_less(self):
        assert list(breaching(self.WHEN, {"speed": [*FLAT[:30], 0.8]})) == [31]

    def test_quiet_on_noise(self):
        assert breaching(self.WHEN, {"speed": FLAT}) == {}


class TestZscore:
    WHEN: ClassVar = {"zscore": {"metric": "loss"}}

    def test_fires_upwards_alone_by_default(self):
        assert list(breaching(self.WHEN, {"loss": [*FLAT[:40], 2.0, 0.1]})) == [41]

    def test_down_and_both(self):
        series = {"loss": [*FLAT[:40], 2.0, 0.1]}
        assert list(breaching({"zscore": {"metric": "loss", "direction": "down"}}, series)) == [42]
        assert list(breaching({"zscore": {"metric": "loss", "direction": "both"}}, series)) == [41, 42]

    def test_quiet_on_noise_and_before_16_samples(self):
        assert breaching(self.WHEN, {"loss": FLAT}) == {}
        assert breaching(self.WHEN, {"loss": [1.0] * 15 + [50.0]}) == {}

    def test_works_below_zero(self):
        assert list(breaching(self.WHEN, {"loss": [value - 10 for value in FLAT[:40]] + [0.0]})) == [41]

    def test_standard_deviation_instead(self):
        when = {"zscore": {"metric": "loss", "robust": False}}
        assert list(breaching(when, {"loss": [*FLAT[:40], 2.0]})) == [41]


class TestGrowth:
    WHEN: ClassVar = {"growth": {"metric": "loss", "window": 100}}

    def test_fires_on_steady_growth(self):
        creeping = [1.01**step for step in range(120)]
        assert min(breaching(self.WHEN, {"loss": creeping})) == 71  # 1.01^70 is 2.006

    def test_quiet_on_slow_growth_and_below_the_floor(self):
        assert breaching(self.WHEN, {"loss": [1.002**step for step in range(120)]}) == {}
        when = {"growth": {"metric": "loss", "window": 100, "floor": 30}}
        assert breaching(when, {"loss": [1.01**step for step in range(120)]}) == {}

    def test_quiet_when_high_but_falling(self):
        falling = [1.0] * 10 + [50.0 - 0.5 * step for step in range(80)]
        assert falling[-1] > 10
        assert max(breaching(self.WHEN, {"loss": falling})) < 80

    def test_one_nan_does_not_hide_it(self):
        creeping = [NAN if step == 50 else 1.01**step for step in range(120)]
        assert min(breaching(self.WHEN, {"loss": creeping})) == 71


class TestPlateau:
    WHEN: ClassVar = {"plateau": {"metric": "loss", "window": 20}}

    def test_fires_when_nothing_is_gained(self):
        falling_then_flat = [10 - 0.2 * step for step in range(30)] + [4.2] * 40
        assert min(breaching(self.WHEN, {"loss": falling_then_flat})) == 50

    def test_quiet_while_it_falls_and_before_it_knows(self):
        assert breaching(self.WHEN, {"loss": [10 - 0.1 * step for step in range(80)]}) == {}
        assert breaching(self.WHEN, {"loss": [5.0] * 30}) == {}

    def test_upwards(self):
        when = {"plateau": {"metric": "speed", "window": 20, "direction": "up"}}
        assert breaching(when, {"speed": [1 + 0.1 * step for step in range(60)]}) == {}
        assert list(breaching(when, {"speed": [5.0] * 32})) == [31, 32]


class TestTrend:
    def test_fires_on_a_rise(self):
        when = {"trend": {"metric": "loss", "window": 50}}
        rising = [2 + 0.01 * step for step in range(60)]
        assert min(breaching(when, {"loss": rising})) == 26  # as soon as half a window is there

    def test_quiet_on_noise_and_on_a_fall(self):
        when = {"trend": {"metric": "loss", "window": 50}}
        assert breaching(when, {"loss": FLAT}) == {}
        assert breaching(when, {"loss": [2 - 0.01 * step for step in range(60)]}) == {}

    def test_down(self):
        when = {"trend": {"metric": "speed", "window": 50, "direction": "down"}}
        assert breaching(when, {"speed": [2 - 0.01 * step for step in range(60)]})

    def test_absolute(self):
        when = {"trend": {"metric": "loss", "window": 50, "relative": False, "above": 0.4}}
        assert breaching(when, {"loss": [-0.3 + 0.01 * step for step in range(60)]})
        assert breaching(when, {"loss": [-0.3 + 0.005 * step for step in range(60)]}) == {}


class TestConstant:
    WHEN: ClassVar = {"constant": {"metric": "loss", "window": 20}}

    def test_fires_after_half_a_window(self):
        assert min(breaching(self.WHEN, {"loss": [0.0] * 30})) == 11

    def test_quiet_on_what_moves(self):
        assert breaching(self.WHEN, {"loss": FLAT}) == {}

    def test_quiet_on_a_sparse_log_and_on_a_series_that_ends(self):
        sparse = [2.0 - step / 1000 if step % 30 == 0 else None for step in range(200)]
        assert breaching(self.WHEN, {"loss": sparse}) == {}
        assert breaching(self.WHEN, {"loss": FLAT[:30]}, until=60) == {}

    def test_quiet_again_when_it_moves_again(self):
        assert max(breaching(self.WHEN, {"loss": [1.0] * 30 + FLAT[1:20]})) == 30


def experts(rows, layer="0"):
    """Series of a layer from one row of counts per step."""
    return {
        f"tokens{{layer={layer},expert={expert}}}": list(values)
        for expert, values in enumerate(zip(*rows, strict=True))
    }


class TestSaturation:
    WHEN: ClassVar = {"saturation": {"metric": "tokens", "over": ["expert"]}}

    def test_fires_on_one_layer(self):
        series = experts([[90, 4, 3, 3]]) | experts([[40, 20, 20, 20]], layer="1")
        assert run(self.WHEN, series)[1].breaches == {"0": 0.9}

    def test_quiet_on_balance(self):
        assert breaching(self.WHEN, experts([[25, 25, 25, 25]])) == {}

    def test_a_layer_that_did_not_run_is_not_saturated(self):
        assert breaching(self.WHEN, experts([[0, 0, 0, 0]])) == {}

    def test_with_two_experts_a_token_no_share_exceeds_a_half(self):
        series = experts([[50, 46, 2, 2]])
        assert breaching(self.WHEN, series) == {}
        two = {"saturation": {"metric": "tokens", "over": ["expert"], "top_k": 2}}
        assert run(two, series)[1].breaches == {"0": 1.0}

    def test_top_k_from_a_metric(self):
        when = {"saturation": {"metric": "tokens", "over": ["expert"], "top_k": "topk"}}
        assert breaching(when, experts([[50, 46, 2, 2]]) | {"topk{layer=0}": [2.0]}) == {1: ["0"]}

    def test_over_a_window(self):
        when = {"saturation": {"metric": "tokens", "over": ["expert"], "window": 4}}
        rows = [[25, 25, 25, 25]] * 3 + [[100, 0, 0, 0]] + [[97, 1, 1, 1]] * 3
        assert list(breaching(when, experts(rows))) == [7]


class TestImbalance:
    def test_excess(self):
        when = {"imbalance": {"metric": "tokens", "over": ["expert"], "window": 1}}
        assert run(when, experts([[60, 20, 10, 10]]))[1].breaches == pytest.approx({"0": 1.4})
        assert breaching(when, experts([[40, 20, 20, 20]])) == {}

    def test_coefficient_of_variation(self):
        when = {"imbalance": {"metric": "tokens", "over": ["expert"], "window": 1, "of": "cv"}}
        assert run(when, experts([[97, 1, 1, 1]]))[1].breaches["0"] == pytest.approx(np.std([97, 1, 1, 1]) / 25)
        assert breaching(when, experts([[40, 20, 20, 20]])) == {}

    def test_of_what_is_possible(self):
        when = {"imbalance": {"metric": "tokens", "over": ["expert"], "window": 1, "of": "possible", "top_k": 2}}
        assert run(when, experts([[50, 50, 0, 0]]))[1].breaches == {"0": 1.0}
        assert breaching(when, experts([[30, 30, 20, 20]])) == {}


class TestDead:
    WHEN: ClassVar = {"dead": {"metric": "tokens", "over": ["expert"], "window": 10}}

    def test_fires_after_half_a_window_of_nothing(self):
        assert min(breaching(self.WHEN, experts([[5, 5, 0]] * 20))) == 6
        assert breaching(self.WHEN, experts([[5, 5, 0]] * 20))[20] == ["2,0"]

    def test_quiet_at_step_1_though_an_expert_has_nothing(self):
        assert breaching(self.WHEN, experts([[5, 5, 0]])) == {}

    def test_quiet_when_it_gets_something(self):
        assert breaching(self.WHEN, experts([[5, 5, step % 4 == 0] for step in range(40)])) == {}

    def test_a_layer_that_did_not_run_is_not_dead(self):
        assert breaching(self.WHEN, experts([[0, 0, 0]] * 20)) == {}

    def test_share_at_once(self):
        when = {"dead": {"metric": "tokens", "over": ["expert"], "share": 0.5}}
        assert run(when, experts([[9, 1, 0, 0]]))[1].breaches == {"0": 0.5}
        assert breaching(when, experts([[9, 1, 1, 0]])) == {}
        assert breaching(when, experts([[0, 0, 0, 0]])) == {}

    def test_share_is_clear_where_no_expert_is_dead(self):
        when = {"dead": {"metric": "tokens", "over": ["expert"], "share": 0.5}}
        assert run(when, experts([[5, 5, 5, 5]]))[1].clear == {"0"}
        assert breaching({"not": when}, experts([[5, 5, 5, 5]])) == {1: ["0"]}


def ranks(*values, name="step_time"):
    return {f"{name}{{rank={rank}}}": [value] for rank, value in enumerate(values)}


class TestOutlier:
    WHEN: ClassVar = {"outlier": {"metric": "step_time"}}

    def test_fires_on_the_odd_one(self):
        assert breaching(self.WHEN, ranks(1.0, 1.01, 0.99, 1.02, 2.0)) == {1: ["4"]}

    def test_quiet_on_peers_alike(self):
        assert breaching(self.WHEN, ranks(1.0, 1.01, 0.99, 1.02, 1.03)) == {}

    def test_equal_peers_and_one_off_by_half(self):
        assert breaching(self.WHEN, ranks(1.0, 1.0, 1.0, 1.0, 1.5)) == {1: ["4"]}

    def test_two_or_three_peers_are_not_compared(self):
        assert breaching(self.WHEN, ranks(1.0, 9.0)) == {}
        assert breaching(self.WHEN, ranks(1.0, 1.0, 9.0)) == {}

    def test_a_trace_above_zeros_needs_a_least_deviation(self):
        series = ranks(0.0, 0.0, 0.0, 0.0, 1e-9)
        assert breaching(self.WHEN, series) == {1: ["4"]}
        assert breaching({"outlier": {"metric": "step_time", "min_deviation": 1e-6}}, series) == {}

    def test_relative_deviation(self):
        when = {"outlier": {"metric": "step_time", "min_relative": 0.1}}
        assert breaching(when, ranks(1.0, 1.0, 1.0, 1.0, 1.05)) == {}
        assert breaching(when, ranks(1.0, 1.0, 1.0, 1.0, 1.5)) == {1: ["4"]}

    def test_direction(self):
        series = ranks(1.0, 1.0, 1.0, 1.0, 0.5)
        assert breaching(self.WHEN, series) == {}
        assert breaching({"outlier": {"metric": "step_time", "direction": "down"}}, series) == {1: ["4"]}

    def test_peers_within_each_group(self):
        series = {
            f"logit{{layer={layer},head=0,rank={rank}}}": [10.0 * (layer + 1)] for layer in (0, 1) for rank in range(4)
        }
        assert breaching({"outlier": {"metric": "logit"}}, series) == {}
        series["logit{layer=1,head=0,rank=3}"] = [40.0]
        assert breaching({"outlier": {"metric": "logit"}}, series) == {1: ["0,1,3"]}


class TestMissing:
    WHEN: ClassVar = {"missing": {"metric": "loss", "window": 10, "known": 30}}

    def test_fires_while_it_is_remembered(self):
        seen = breaching(self.WHEN, {"loss": [1.0] * 5, "speed": [1.0] * 60})
        assert (min(seen), max(seen)) == (15, 34)

    def test_quiet_on_what_comes_and_on_what_never_came(self):
        assert breaching(self.WHEN, {"loss": [1.0] * 60}) == {}
        assert breaching(self.WHEN, {"speed": [1.0] * 60}) == {}

    def test_one_series_of_several(self):
        when = {"missing": {"metric": "norm", "window": 10}}
        assert breaching(when, {"norm{param=a}": [1.0] * 5, "norm{param=b}": [1.0] * 20})[20] == ["a"]


class TestCombined:
    SPIKE: ClassVar = {"spike_ratio": {"metric": "loss", "above": 3}}
    ODD: ClassVar = {"zscore": {"metric": "loss"}}

    def test_all(self):
        series = {"loss": [*FLAT[:40], 2.0, 5.0]}
        assert list(breaching({"all": [self.ODD, self.SPIKE]}, series)) == [42]

    def test_any(self):
        series = {"loss": [1.0, 9.0], "speed": [1.0, 1.0]}
        high = {"threshold": {"metric": "loss", "above": 5}}
        slow = {"threshold": {"metric": "speed", "at_most": 1}}
        assert list(breaching({"any": [high, slow]}, series)) == [1, 2]

    def test_all_of_different_labels(self):
        when = {"all": [{"threshold": {"metric": "norm", "above": 1}}, {"threshold": {"metric": "loss", "above": 5}}]}
        series = {"norm{param=a}": [2.0, 2.0], "norm{param=b}": [0.0, 0.0], "loss": [1.0, 9.0]}
        assert breaching(when, series) == {2: ["norm,a"]}

    def test_not_does_not_breach_while_there_is_no_baseline(self):
        seen = run({"not": {"spike_ratio": {"metric": "loss"}}}, {"loss": [1.0] * 6})
        assert [step for step, each in seen.items() if each.breaches] == [4, 5, 6]

    @pytest.mark.parametrize(("bad", "breaches"), [(0, False), (4, False), (5, True), (20, True)])
    def test_quorum(self, bad, breaches):
        series = {f"norm{{param={n}}}": [1.0] * 10 + [20.0 if n < bad else 1.0] for n in range(20)}
        seen = run({"spike_ratio": {"metric": "norm"}, "quorum": 5}, series)
        assert bool(seen[11].breaches) is breaches
        assert bool(seen[11].clear) is not breaches

    @pytest.mark.parametrize(("bad", "breaches"), [(0, False), (1, False), (2, True)])
    def test_quorum_as_a_share(self, bad, breaches):
        series = {f"norm{{param={n}}}": [1.0] * 10 + [20.0 if n < bad else 1.0] for n in range(20)}
        seen = run({"spike_ratio": {"metric": "norm"}, "quorum": "10%"}, series)
        assert bool(seen[11].breaches) is breaches

    def test_list_of_metrics(self):
        when = {"drop": {"metric": ["loss", "speed"]}}
        series = {"loss": [1.0] * 10 + [0.5], "speed": [1.0] * 10 + [0.5]}
        assert breaching(when, series) == {11: ["loss", "speed"]}
