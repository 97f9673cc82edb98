"""Diagnostics as text and JSON."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from healthwatch.diagnostics import (
    Diagnostic,
    Invalid,
    Span,
    did_you_mean,
    errors,
    in_order,
    masked,
    render_json,
    render_text,
    suggest,
)


def test_each_part_has_its_line() -> None:
    found = Diagnostic(
        "HW012",
        "error",
        'no metric is called "local_nrom"',
        Span("rules/gradients.yaml", 14, 13, 23),
        label='rule "GradNormSpike"',
        help='did you mean "local_norm"?',
        source="    metric: local_nrom",
    )
    assert render_text([found]).splitlines() == [
        'rules/gradients.yaml:14:13: error[HW012]: no metric is called "local_nrom"',
        "14 |     metric: local_nrom",
        '   |             ^^^^^^^^^^ rule "GradNormSpike"',
        'help: did you mean "local_norm"?',
    ]


@pytest.mark.parametrize(
    ("source", "column", "end_column", "under"),
    [
        ("a: bad", 4, 7, "  |    ^^^"),
        ("损失: bad", 5, 8, "  |       ^^^"),  # each Chinese character takes two cells
        ("a: 损失值", 4, 7, "  |    ^^^^^^"),
        ("e\u0301: bad", 5, 8, "  |    ^^^"),  # a combining accent takes none
        ("\tbad", 2, 5, "  |     ^^^"),
        ("\U0001f600 bad", 3, 6, "  |    ^^^"),
        ("a:", 3, 3, "  |   ^"),  # behind the end of the line, where something is missing
    ],
)
def test_carets_count_cells(source: str, column: int, end_column: int, under: str) -> None:
    found = Diagnostic("HW007", "error", "x", Span("f", 1, column, end_column), source=source)
    assert render_text([found]).splitlines()[2] == under


def test_a_long_line_is_cut_around_the_carets() -> None:
    source = "x" * 400 + "bad" + "y" * 400
    shown = render_text([Diagnostic("HW101", "error", "m", Span("f", 3, 401, 404), source=source)]).splitlines()
    assert len(shown[1]) < 200
    assert shown[1].startswith("3 | ...xxx")
    assert shown[1].endswith("yyy...")
    start = shown[2].index("^")
    assert shown[1][start : start + 3] == "bad"
    assert shown[2].count("^") == 3


def test_a_file_as_a_whole_has_no_line() -> None:
    found = Diagnostic("HW001", "error", "there is no such file", Span("a.yaml", 0, 0, 0))
    assert render_text([found]) == "a.yaml: error[HW001]: there is no such file"
    assert render_text([Diagnostic("HW001", "info", "m")]) == "info[HW001]: m"


def test_control_characters_do_not_reach_the_terminal() -> None:
    found = Diagnostic("HW003", "error", "a\x1b[31mb\nc", Span("f", 1, 1, 2), source="\x1b[2Jx")
    shown = render_text([found])
    assert "\x1b" not in shown
    assert len(shown.splitlines()) == 3


def test_json_holds_every_field() -> None:
    found = Diagnostic("HW012", "warning", "损失", Span("f", 1, 2, 3), "l", "h", "src")
    assert json.loads(render_json([found])) == [
        {
            "code": "HW012",
            "severity": "warning",
            "message": "损失",
            "span": {"file": "f", "line": 1, "column": 2, "end_column": 3},
            "label": "l",
            "help": "h",
            "source": "src",
        }
    ]


def test_order_is_by_place_and_each_is_told_once() -> None:
    def at(file: str, line: int, column: int = 1) -> Diagnostic:
        return Diagnostic("HW007", "error", "m", Span(file, line, column, column + 1))

    nowhere = Diagnostic("HW001", "error", "m")
    given_order = [at("b", 9), at("a", 3, 7), at("b", 2), nowhere, at("a", 3, 2), at("b", 9)]
    assert in_order(given_order) == [nowhere, at("b", 2), at("b", 9), at("a", 3, 2), at("a", 3, 7)]


def test_errors_leaves_out_warnings_and_notes() -> None:
    found = [Diagnostic("HW001", severity, "m") for severity in ("error", "warning", "info")]
    assert errors(found) == found[:1]


def test_invalid_shows_every_problem() -> None:
    text = str(Invalid([Diagnostic("HW001", "error", "first"), Diagnostic("HW002", "error", "second")]))
    assert "first" in text
    assert "second" in text


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("urls: [slack://tok/en, 'json://u:p@h/x']", "urls: [slack://******, '**************']"),
        ('a: "mailto://me:secret word@host"', 'a: "mailto://********* *********"'),
        ('["slack://${TOKEN}/x"]', '["slack://${TOKEN}**"]'),
        ("no address here: 12", "no address here: 12"),
    ],
)
def test_addresses_are_masked(text: str, shown: str) -> None:
    assert masked(text) == shown


@given(st.text(alphabet=st.characters(exclude_characters="\n\r$"), min_size=1, max_size=40))
def test_nothing_behind_an_address_shows(secret: str) -> None:
    shown = masked(f"urls: [slack://{secret}")
    assert shown.startswith("urls: [slack://")
    rest = shown.removeprefix("urls: [slack://")
    assert len(rest) == len(secret)
    assert all(character == "*" or character.isspace() or character in "\"'[]{}," for character in rest)


def test_suggestions() -> None:
    assert did_you_mean("warmpu", ["warmup", "settle"]) == 'did you mean "warmup"?'
    assert did_you_mean("zzz", ["warmup"]) == ""
    assert suggest("zzz", ["b", "a"], "known keys") == "known keys: a, b"
    assert suggest("zzz", [], "known keys") == ""


@given(
    st.text(max_size=300),
    st.integers(0, 400),
    st.integers(0, 400),
    st.text(max_size=20),
)
def test_rendering_never_raises_and_stays_on_three_lines(source: str, column: int, width: int, message: str) -> None:
    found = Diagnostic("HW007", "error", message, Span("f", 1, column, column + width), source=source, help="h")
    shown = render_text([found])
    assert 2 <= len(shown.split("\n")) <= 4
    json.loads(render_json([found]))
