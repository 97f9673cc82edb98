"""Matching a whole text, fast and as `fullmatch` has it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from healthwatch.promql.regex import SMALL, compile_regex, full_match

ATOMS = ["a", "b", ".", "é", "\n", "[a-c]", "(a|b)", "(?i)x", r"\d", "^", "$", r"\b", ""]

patterns = st.lists(
    st.tuples(st.sampled_from(ATOMS), st.sampled_from(["", "*", "+", "?", "{2}"])).map("".join), max_size=4
).map("".join)


def compiles(pattern):
    try:
        compile_regex(pattern)
    except ValueError:
        return False
    return True


@given(patterns.filter(compiles), st.lists(st.text("abcé\nxX1 ", max_size=6), max_size=8))
def test_the_fast_way_says_what_fullmatch_says(pattern, texts):
    matches = full_match(pattern)
    assert [matches(text) for text in texts] == [compile_regex(pattern).fullmatch(text) is not None for text in texts]


def test_a_large_pattern_takes_the_way_that_never_runs_out_of_memory():
    pattern = "(a|b){500}"
    assert compile_regex(pattern).programsize > SMALL
    assert full_match(pattern)("ab" * 250)
    assert not full_match(pattern)("ab" * 249)


def test_what_is_no_pattern_is_refused_alike():
    with pytest.raises(ValueError, match="missing"):
        full_match("(")
