"""Annotation templates read as Prometheus would write them."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from healthwatch.rulefile.goformat import go_float, humanize, humanize_percentage
from healthwatch.rulefile.template import SYNTAX_HELP, compile_template

LABELS = {"param": "layers.0.weight", "__name__": "micro_norm"}


@pytest.mark.parametrize(
    ("text", "value", "shown"),
    [
        ("no template { here }", 1.0, "no template { here }"),
        ("{{ $labels.param }}: {{ $value }}", 9.5, "layers.0.weight: 9.5"),
        ("{{$labels.param}}{{$value}}", 9.0, "layers.0.weight9"),
        ("{{ $labels.__name__ }}", 1.0, "micro_norm"),
        ("[{{ $labels.head }}]", 1.0, "[]"),
        ("{{ $value | humanize }}", 1234567.0, "1.235M"),
        ("{{ humanize $value }}", 0.00012, "120u"),
        ("{{ $value | humanizePercentage }}", 0.8567, "85.67%"),
        ('{{ printf "%.2f" $value }} x', 1.005, "1.00 x"),
        ('{{ $value | printf "about %.1e steps" }}', 12345.0, "about 1.2e+04 steps"),
        ('{{ printf "%5.1f%%" $value }}', 3.14, "  3.1%"),
        ('{{ printf "%-6.1f|" $value }}', 3.14, "3.1   |"),
        ('{{ printf "%06.1f" $value }}', -3.14, "-003.1"),
        ('{{ printf "%+.0f" $value }}', 3.6, "+4"),
        ('{{ printf "%v" $value }}', 1e7, "1e+07"),
        ('{{ printf "%s" $labels.param }}', 0.0, "layers.0.weight"),
        ('{{ printf "%8.3s" $labels.param }}', 0.0, "     lay"),
        ('{{ printf "%.2f" $value }}', math.nan, "NaN"),
        ("{{ $value }}", math.inf, "+Inf"),
    ],
)
def test_renders(text: str, value: float, shown: str) -> None:
    template, problems = compile_template(text)
    assert problems == ()
    assert template.render(LABELS, value) == shown
    assert template.render(tuple(LABELS.items()), value) == shown
    assert str(template) == text


@pytest.mark.parametrize(
    ("text", "part", "message"),
    [
        ("a {{ $values }}", "$values", "$values is not known in a template"),
        ("{{ $label.x }}", "$label.x", "$label.x is not known in a template"),
        ("{{ $labels }}", "$labels", "$labels is not known in a template"),
        ("{{ .Value }}", ".Value", "can't read '.Value' in a template"),
        ("{{ if $value }}x{{ end }}", "if $value", "no template function is called 'if'"),
        ("{{ title $value }}", "title", "no template function is called 'title'"),
        ("{{ $value | title }}", "title", "no template function is called 'title'"),
        ("{{ $labels.x | humanize }}", " $labels.x | humanize ", "humanize takes a number, a label is text"),
        ('{{ printf "%d" $value }}', ' printf "%d" $value ', "%d does not print a number"),
        ('{{ printf "%.1f" $labels.x }}', ' printf "%.1f" $labels.x ', "%f does not print a label"),
        (
            '{{ printf "%f %f" $value }}',
            ' printf "%f %f" $value ',
            "the format must hold exactly one verb, such as %.2f",
        ),
        ('{{ printf "none" $value }}', ' printf "none" $value ', "the format must hold exactly one verb, such as %.2f"),
        ("{{ printf $value }}", " printf $value ", 'printf needs a format, for example printf "%.2f" $value'),
        ('{{ humanize "%f" $value }}', ' humanize "%f" $value ', "humanize takes no format"),
        ("{{ }}", "{{ }}", "this template action is empty"),
        ("x {{ $value", "{{ $value", "this {{ is never closed"),
    ],
)
def test_anything_else_is_a_problem_at_its_place(text: str, part: str, message: str) -> None:
    _, problems = compile_template(text)
    first = problems[0]
    assert (text[first.start : first.end], first.message) in ((part, message), ("if", message))


def test_every_problem_is_told() -> None:
    _, problems = compile_template("{{ $a }} {{ $value }} {{ $b }} {{")
    assert len(problems) == 3


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (0.0, "0"),
        (-0.0, "-0"),
        (1.0, "1"),
        (100000.0, "100000"),
        (123456.0, "123456"),
        (1e6, "1e+06"),
        (1234567.0, "1.234567e+06"),
        (0.0001, "0.0001"),
        (0.00001, "1e-05"),
        (1e-320, "1e-320"),
        (-2.5e100, "-2.5e+100"),
        (0.1 + 0.2, "0.30000000000000004"),
        (math.nan, "NaN"),
        (-math.inf, "-Inf"),
    ],
)
def test_numbers_as_go_prints_them(value: float, shown: str) -> None:
    assert go_float(value) == shown


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_shortest_digits_read_back(value: float) -> None:
    assert float(go_float(value)) == value


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (0.0, "0"),
        (1.0, "1"),
        (999.9, "999.9"),
        (1000.0, "1k"),
        (-1.5e12, "-1.5T"),
        (0.5, "500m"),
        (math.nan, "NaN"),
        (math.inf, "+Inf"),
    ],
)
def test_humanize(value: float, shown: str) -> None:
    assert humanize(value) == shown


def test_humanize_percentage() -> None:
    assert [humanize_percentage(value) for value in (0.0, 0.5, 1.234567)] == ["0%", "50%", "123.5%"]


@given(st.text(alphabet='{}$ .|"%labelsvueprintfhumanize2fx', max_size=60), st.floats())
def test_a_compiled_template_never_raises(text: str, value: float) -> None:
    template, problems = compile_template(text)
    assert isinstance(template.render({"l": "x"}, value), str)
    for problem in problems:
        assert 0 <= problem.start < problem.end <= len(text)


@pytest.mark.parametrize(
    ("text", "mend"),
    [
        ("{{ $values }}", 'did you mean "$value"?'),
        ("{{ $lables.param }}", 'did you mean "$labels"?'),
        ("{{ $value | humanise }}", 'did you mean "humanize"?'),
        ("{{ $labels }}", SYNTAX_HELP),
        ("{{ title $value }}", SYNTAX_HELP),
    ],
)
def test_help(text: str, mend: str) -> None:
    _, (problem,) = compile_template(text)
    assert problem.help == mend
