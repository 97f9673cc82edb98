"""Labels made up for a selector are such as it takes, and where none is found none is made up."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from healthwatch.cli.matching import Sampler, matched, matches
from healthwatch.promql import parse
from healthwatch.promql.ast import VectorSelector
from healthwatch.promql.regex import compile_regex

ATOMS = [
    *("a", "B", "7", "_", "-", "ü", r"\.", r"\|", r"\)", ".", ".*", ".+", ".*?", "[ab]", "[^ab]", "[]x]", "[0-9]+"),
    *(r"\d", r"\d+", r"\w*", r"\s", r"[\d.]+", r"[^\]0]", "[[:alpha:]]+", "(?:)", "x{2}", "y{1,3}", "z{0,}", "^", "$"),
]
PATTERNS = st.recursive(
    st.lists(st.sampled_from([each for each in ATOMS if each not in "^$"]), max_size=4).map("".join),
    lambda inner: st.one_of(
        st.lists(inner, min_size=1, max_size=3).map(lambda parts: f"({'|'.join(parts)})"),
        st.lists(inner, min_size=1, max_size=2).map(lambda parts: f"(?:{'|'.join(parts)})?"),
        st.lists(inner, min_size=1, max_size=2).map(lambda parts: f"(?P<n>{'|'.join(parts)})"),
        st.tuples(inner, inner).map("".join),
    ),
    max_leaves=6,
).filter(lambda pattern: pattern.count("?P<n>") < 2)


def selector(text: str) -> VectorSelector:
    expression = parse(text).expression
    assert expression is not None
    assert isinstance(expression.tree, VectorSelector)
    return expression.tree


@given(PATTERNS, st.sampled_from(["", "0", "17"]), st.integers(0, 9))
def test_a_simple_expression_matches_what_is_written_for_it(pattern: str, filler: str, number: int) -> None:
    assert compile_regex(pattern).fullmatch(Sampler(pattern, filler, number).text())


@given(st.text(alphabet=r"ab01.*+?|()[]{}^$\\-:<>dDwWsSbQEAzPi,", max_size=12))
def test_whatever_the_expression_something_is_written_for_it(pattern: str) -> None:
    try:
        compile_regex(pattern)
    except ValueError:
        return
    assert isinstance(Sampler(pattern, "17", 3).text(), str)


def test_brackets_without_end_are_not_followed() -> None:
    assert Sampler("(" * 900 + "a" + ")" * 900, "17", 0).text() == ""
    assert Sampler("(" * 40 + "a" + ")" * 40 + "b", "17", 0).text() == "ab"


@pytest.mark.parametrize(
    ("matchers", "labels"),
    [
        ('param="wq"', {"param": "wq"}),
        ('param=~".*attn.*"', {"param": "17attn17"}),
        ('param=~"wq|wk|wv"', {"param": "wk"}),
        (r'param=~"layers[.](\\d+)[.](?:attn|mlp)"', {"param": "layers.17.mlp"}),
        ('param=~".*attn.*", param!~".*attn"', {"param": "17attn17"}),
        ('param!="17"', {"param": "x17"}),
        ('param!="3"', {"param": "17"}),
        ('param=~"1.*"', {"param": "17"}),
        ('param="", rank="0"', {"rank": "0"}),
        ('param!="", rank=~"[0-3]"', {"param": "17", "rank": "0"}),
        ('__name__=~"micro.*", param="wq"', {"param": "wq"}),
    ],
)
def test_labels_are_changed_as_little_as_is_needed(matchers: str, labels: dict[str, str]) -> None:
    asked = selector(f"{{{matchers}}}" if "__name__" in matchers else f"micro_norm{{{matchers}}}")
    assert matched({"param": "17"}, 1, asked) == labels
    assert matches(labels, asked)


@pytest.mark.parametrize("matchers", [r'param=~"a\\b.*c"', 'param=~"a.*", param=~"b.*"', 'param="a", param="b"'])
def test_none_is_found_where_that_takes_more(matchers: str) -> None:
    assert matched({"param": "17"}, 1, selector(f"micro_norm{{{matchers}}}")) is None
