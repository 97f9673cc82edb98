from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from healthwatch.promql.tokens import Lexed, parse_number, parse_steps, tokenize, unquote


def kinds(text: str) -> list[tuple[str, str]]:
    return [(token.kind, token.text) for token in tokenize(text).tokens]


def values(text: str) -> list[object]:
    return [token.value for token in tokenize(text).tokens if token.value is not None]


def test_spans_point_into_the_text() -> None:
    text = 'sum by (layer) (loss{split="val"}[50]) # the rest\n> $k'
    for token in tokenize(text, {"k": 3}).tokens:
        assert text[token.span[0] : token.span[1]] == token.text


def test_a_colon_belongs_to_a_name_outside_brackets_only() -> None:
    assert kinds("job:loss:mean") == [("name", "job:loss:mean"), ("end", "")]
    assert [text for _, text in kinds("x[5:1]")] == ["x", "[", "5", ":", "1", "]", ""]
    assert [text for _, text in kinds("x[50] or a:b")] == ["x", "[", "50", "]", "or", "a:b", ""]


def test_inf_and_nan_are_numbers_except_as_label_names() -> None:
    assert [token.kind for token in tokenize('inf + NaN + x{inf="a"}').tokens if token.word in ("inf", "nan")] == [
        "number",
        "number",
        "name",
    ]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("0", 0.0),
        ("42", 42.0),
        (".5", 0.5),
        ("5.", 5.0),
        ("1e3", 1000.0),
        ("1.5E-3", 0.0015),
        ("0x1F", 31.0),
        ("0755", 493.0),
        ("089", 89.0),
        ("1_000_000", 1e6),
        ("0x_ff", 255.0),
        ("1e400", math.inf),
        ("1__0", None),
        ("1_", None),
        ("1_0.5", None),
        ("1e", None),
        ("1.2.3", None),
        ("0x", None),
    ],
)
def test_numbers_as_go_reads_them(text: str, value: float | None) -> None:
    assert parse_number(text) == value


@pytest.mark.parametrize(
    ("text", "steps"),
    [
        ("5m", 300.0),
        ("1h30m", 5400.0),
        ("1d", 86400.0),
        ("2w", 1209600.0),
        ("1y", 31536000.0),
        ("1s500ms", 1.5),
        ("250ms", 0.25),
        ("0s", 0.0),
        ("30m1h", None),
        ("5x", None),
        ("1.5h", None),
        ("5m3", None),
        ("", None),
    ],
)
def test_durations_count_a_step_for_a_second(text: str, steps: float | None) -> None:
    assert parse_steps(text) == steps


@pytest.mark.parametrize(
    ("literal", "value"),
    [
        ('"plain"', "plain"),
        (r'"a\tb\\c\"d"', 'a\tb\\c"d'),
        (r"'it\'s'", "it's"),
        (r'"\x41\102\u00e4\U0001F600"', "AB\u00e4\U0001f600"),
        ("`raw\\n\nline`", "raw\\n\nline"),
        (r'"\xc3\xa4"', "\u00e4"),
        (r'"a\xc5z"', "a\udcc5z"),
        (r'"\ud800"', "\ufffd"),
        ('"\u00e4"', "\u00e4"),
        (r'"\q"', None),
        (r'"\'"', None),
        (r'"\400"', None),
        (r'"\x4"', None),
        (r'"\UFFFFFFFF"', None),
    ],
)
def test_strings_as_go_unquotes_them(literal: str, value: str | None) -> None:
    assert unquote(literal) == value


def test_params_become_values_outside_strings_only() -> None:
    params = {"k": 8, "window": 50, "which": "val"}
    lexed = tokenize('label_replace(x{split=$which}[$window], "a", "$k") > $k', params)
    assert not lexed.problems
    assert [(token.text, token.value) for token in lexed.tokens if token.value is not None] == [
        ("$which", "val"),
        ("$window", 50.0),
        ('"a"', "a"),
        ('"$k"', "$k"),
        ("$k", 8.0),
    ]


@pytest.mark.parametrize(
    ("text", "code", "under"),
    [
        ("x > $rtio", "HW107", "$rtio"),
        ('x{a="b', "HW102", '"b'),
        ("x + `abc\ndef", "HW102", "`abc\ndef"),
        ("x ! y", "HW102", "!"),
        ("x + 5x", "HW102", "5x"),
        ("loss\u00e4", "HW102", "\u00e4"),
        (r'x{a="\q"}', "HW102", r'"\q"'),
    ],
)
def test_what_is_no_token_is_told_with_its_place(text: str, code: str, under: str) -> None:
    (problem,) = tokenize(text, {"ratio": 3.0}).problems
    assert (problem.code, text[problem.span[0] : problem.span[1]]) == (code, under)


def test_every_bad_token_is_told_at_once() -> None:
    assert [problem.span for problem in tokenize("? + 5x + ~").problems] == [(0, 1), (4, 6), (9, 10)]


def test_a_misspelt_param_gets_a_suggestion() -> None:
    assert tokenize("x > $rtio", {"ratio": 3}).problems[0].help == 'did you mean "ratio"?'
    assert tokenize("x > $zz", {"ratio": 3}).problems[0].help == "params: ratio"


def _without_blanks(text: str, lexed: Lexed) -> bool:
    """What lies between tokens is blank or a comment, nothing else."""
    position = 0
    for token in lexed.tokens:
        gap = text[position : token.span[0]]
        while gap := gap.lstrip(" \t\r\n"):
            if not gap.startswith("#"):
                return False
            _, _, gap = gap.replace("\r", "\n").partition("\n")
        position = token.span[1]
    return True


PIECES = st.sampled_from(
    [
        *"+-*/%^<>=!~(){}[],@:#$\"'`\\ \n\t\r?;.",
        "==",
        "=~",
        "!~",
        "loss",
        "a:b",
        "by",
        "0x1",
        "5m",
        "1e3",
        "$k",
        "\u00e4",
        '"s"',
    ]
)
TEXTS = st.text(max_size=40) | st.lists(PIECES, max_size=25).map("".join)


@given(TEXTS)
def test_tokens_cover_the_text(text: str) -> None:
    lexed = tokenize(text, {"k": 1})
    assert all(text[token.span[0] : token.span[1]] == token.text for token in lexed.tokens)
    assert all(left.span[1] <= right.span[0] for left, right in zip(lexed.tokens, lexed.tokens[1:], strict=False))
    assert _without_blanks(text, lexed)
    bad = [token.span for token in lexed.tokens if token.kind == "bad"]
    assert [problem.span for problem in lexed.problems if problem.code != "HW107"] == bad
