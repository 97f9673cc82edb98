"""Messages within the limits of a service, cut between characters as people see them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from healthwatch.actions.notify.text import clean, cut, escape_html, fit, length, plain

FAMILY = "👩‍👩‍👧‍👦"
mixed = st.text(st.sampled_from("ab \n梯度🔥é`*" + "e\u0301" + "\u200d" + "👩👧🏽🇩🇪"), max_size=300)


@given(mixed, st.integers(0, 400))
def test_a_cut_is_within_its_limit_and_marked(text, limit):
    told = cut(text, limit)
    assert length(told) <= limit
    if told != text:
        head = told.split("\n… (cut here, ")[0]
        assert text.startswith(head.rstrip())
        assert "cut here" in told or limit < 60
        told.encode()  # no half of a surrogate pair


@given(mixed, st.integers(100, 400))
def test_a_text_that_fits_is_left_alone(text, limit):
    assert cut(text, limit) == text or length(text) > limit


@pytest.mark.parametrize("whole", [FAMILY, "é", "👍🏽", "🇩🇪", "🏴\U000e0067\U000e0062\U000e007f", "☀\ufe0f"])
def test_what_looks_like_one_character_is_never_cut_in_two(whole):
    text = whole * 200
    for limit in range(60, 120):
        head = cut(text, limit).split("\n…")[0]
        assert head.replace(whole, "") == "", f"half a character at {limit}"


def test_a_cut_goes_back_to_the_end_of_a_line():
    told = cut("first line\nsecond line\nthird line" + "x" * 100, 70)
    assert told.split("\n…")[0] in ("first line\nsecond line", "first line")


def test_length_counts_as_the_strictest_service():
    assert length("a梯") == 2
    assert length("🔥") == 2


@given(mixed, st.integers(60, 300))
def test_fit_bounds_what_a_conversion_makes_longer(text, budget):
    told = fit(text, budget, lambda part: part.replace("a", "&amp;&amp;"))
    assert length(told) <= budget


@given(st.text(max_size=200))
def test_clean_text_can_always_be_sent(text):
    told = clean(text)
    told.encode("utf-8")
    assert not any(ord(character) < 32 and character not in "\n\t" for character in told)


def test_clean_keeps_chinese_and_emoji():
    assert clean(f"梯度范数 {FAMILY} 𝒙\n\tok\r\nend\x00\x1b") == f"梯度范数 {FAMILY} 𝒙\n\tok\nend"
    assert clean("half \ud83d of a pair") == "half ? of a pair"


def test_plain_drops_the_marks_but_not_the_names():
    assert (
        plain('**GradNormSpike** (critical): `a_b{x="**"}` is 2 * 3')
        == 'GradNormSpike (critical): a_b{x="**"} is 2 * 3'
    )


def test_no_name_turns_into_a_tag():
    assert escape_html("param <unk> & `<unk>`") == "param &lt;unk&gt; & `<unk>`".replace("&gt;", ">").replace(
        " & ", " &amp; "
    )


def test_case_061_keeps_the_head_and_marks_the_cut(shared: Path):
    folder = shared / "cases" / "061-apprise-long-message-dropped"
    alert = json.loads((folder / "alert.json").read_text())
    text = f"{alert['rule']} step {alert['step']} {alert['run']}\n" + "\n".join(alert["details"])
    told = cut(text, 2000)
    assert len(text) > 5000
    assert len(told) <= 2000
    assert "grad_norm_spike step 31216 run-a" in told
    assert "cut here" in told
