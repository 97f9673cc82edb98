"""Which of thousands came first, found without looking at each of them."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from healthwatch.alerting import causal
from healthwatch.alerting.causal import causal_order

PARTS = ["mtp", "layers", "h", "attention", "w1", "3", "12", "0", "embedding"]

values = {
    "param": st.lists(st.sampled_from(PARTS), min_size=1, max_size=6).map(".".join),
    "layer": st.sampled_from(["0", "3", "12", "-1", "embedding"]),
    "block": st.sampled_from(["decoder", "mtp"]),
    "mtp_idx": st.sampled_from(["0", "1"]),
    "__name__": st.sampled_from(["local_norm", "max_attention_logit"]),
    "rank": st.sampled_from("01"),
}


@st.composite
def series(draw: st.DrawFn) -> list[tuple[tuple[str, str], ...]]:
    """Label sets with the same names, as the result of a rule nearly always has them."""
    names = sorted(draw(st.sets(st.sampled_from(sorted(values)), min_size=1)))
    drawn = draw(st.lists(st.tuples(*(values[name] for name in names)), min_size=1, max_size=12))
    return [tuple(zip(names, each, strict=True)) for each in drawn]


@given(series())
def test_the_first_one_is_among_those_that_are_looked_at(many):
    near = causal._near(many)
    if near is not None:
        assert min((many[place] for place in near), key=causal_order) == min(many, key=causal_order)


def test_of_ten_thousand_parameters_few_are_looked_at():
    many = [(("param", f"decoder.layers.{number // 128}.attention.w{number}"),) for number in range(10_000)]
    near = causal._near(many)
    assert near is not None
    assert len(near) == 10_000 % 128
    assert causal_order(many[near[0]])[:2] == (1, -78)
    named = [(("__name__", "local_norm"), *labels) for labels in many]
    assert causal._near(named) == near
    layered = [(*labels, ("stage", "0")) for labels in many]
    assert causal._near([(("layer", str(number // 128)), *labels) for number, labels in enumerate(layered)]) == near


def test_labels_of_several_kinds_are_all_looked_at():
    assert causal._near([(("param", "h.1.w"),), (("layer", "3"),)]) is None
    assert causal._near([(("rank", "1"),), (("rank", "0"),)]) is None
