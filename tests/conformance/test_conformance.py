"""Our own scripts, and those of Prometheus where they lie beside the repository."""

from __future__ import annotations

from pathlib import Path

import pytest
from promqltest_compare import almost_equal
from promqltest_script import Clear, Eval, Load, read_script
from promqltest_series import Histogram, ScriptError, read_samples, read_series, read_time
from run import Tally, main, run_script, scripts

HERE = Path(__file__).parent
MOST_SKIPPED = 24


@pytest.mark.parametrize("script", sorted((HERE / "scripts").glob("*.test")), ids=lambda path: path.stem)
def test_our_own_scripts(script: Path) -> None:
    tally = Tally()
    run_script(script, tally)
    assert tally.failures == []
    assert tally.passed > 10
    assert not tally.skipped


def test_scripts_of_prometheus(shared: Path) -> None:
    tally = Tally()
    for script in scripts([str(shared / "promqltest")]):
        run_script(script, tally)
    assert tally.failures == []
    assert tally.skipped.total() <= MOST_SKIPPED
    assert tally.passed >= 800


def _run(tmp_path: Path, text: str) -> Tally:
    script = tmp_path / "some.test"
    script.write_text(text, encoding="utf-8")
    tally = Tally()
    run_script(script, tally)
    return tally


LOADED = 'load 10s\n  x{a="b"} 1 2 3\n  y 1\n\n'


@pytest.mark.parametrize(
    ("evaluation", "why"),
    [
        ('eval instant at 20s x\n  x{a="b"} 4', 'x{a="b"} at 20: expected 4.0, got 3.0'),
        ('eval instant at 20s x\n  x{a="c"} 3', 'x{a="c"} at 20: expected 3.0, got nothing'),
        ("eval instant at 20s x", 'x{a="b"} at 20: expected nothing, got 3.0'),
        ("eval instant at 0 y\n  y 2", "y{} at 0: expected 2.0, got 1.0"),
        ("eval instant at 20s x\n  expect fail", "it must fail"),
        ("eval instant at 20s bogus(x)\n  {} 1", 'it fails: no function is called "bogus"'),
        ("eval instant at 20s bogus(x)\n  expect fail msg: other", "not with 'other'"),
        ("eval instant at 20s bogus(x)\n  expect fail regex: oth.r", "not with 'oth.r'"),
        ("eval instant at 20s 3\n  4", "expected the number 4.0"),
        ("eval instant at 20s 3\n  {} 3", "expected a vector, got a number"),
        ("eval instant at 20s vector(3)\n  3", "expected the number 3.0"),
        ('eval instant at 20s "a"\n  expect string "b"', "expected the string 'b'"),
        (
            'eval_ordered instant at 10s sort(x or y)\n  x{a="b"} 2\n  y 1',
            'expected in the order x{a="b"}, y{}; got y{}, x{a="b"}',
        ),
        ('eval range from 0 to 20s step 10s x\n  x{a="b"} 1 2 4', "at 20: expected 4.0, got 3.0"),
        ('eval range from 0 to 20s step 10s x\n  x{a="b"} 1 _ 3', "at 10: expected nothing, got 2.0"),
        ('eval range from 0 to 30s step 10s x offset 20s\n  x{a="b"} 1 1 1 2', "at 0: expected 1.0, got nothing"),
    ],
)
def test_a_wrong_result_fails_with_its_line(tmp_path: Path, evaluation: str, why: str) -> None:
    (failure,) = _run(tmp_path, LOADED + evaluation + "\n").failures
    assert "some.test:5: " in failure
    assert why in failure


def test_what_can_not_be_read_is_a_failure(tmp_path: Path) -> None:
    (failure,) = _run(tmp_path, LOADED + "evaluate x\n").failures
    assert "line 5: no command" in failure


HISTOGRAMS = "load 10s\n  h 1 {{count:1}} {{count:2}} {{count:2}}\n\n"


@pytest.mark.parametrize(
    ("evaluation", "summary"),
    [
        ("eval instant at 10s h\n  h {{count:1}}", "1 passed, 0 failed, 0 skipped"),
        ("eval instant at 10s h\n  h {{count:2}}", "0 passed, 0 failed, 1 skipped"),
        ("eval instant at 10s h * 2\n  {} {{count:3}}", "0 passed, 0 failed, 1 skipped"),
        ("eval instant at 10s h\n  h 1", "0 passed, 1 failed, 0 skipped"),
        ("eval instant at 0 h\n  h 1", "1 passed, 0 failed, 0 skipped"),
        ("eval instant at 10s max(h)", "1 passed, 0 failed, 0 skipped"),
        ("eval instant at 10s quantile(0.5, h)", "1 passed, 0 failed, 0 skipped"),
        ("eval instant at 10s count(h)\n  {} 1", "1 passed, 0 failed, 0 skipped"),
        ("eval instant at 30s count_over_time(h[1m])\n  {} 4", "1 passed, 0 failed, 0 skipped"),
        ("eval instant at 30s count_over_time(h[1m])\n  {} 1", "0 passed, 1 failed, 0 skipped"),
        ("eval instant at 30s changes(h[1m])\n  {} 2", "0 passed, 0 failed, 1 skipped"),
    ],
)
def test_what_needs_the_inside_of_a_histogram_is_skipped(tmp_path: Path, evaluation: str, summary: str) -> None:
    assert _run(tmp_path, f"{HISTOGRAMS}{evaluation}\n").summary() == summary


def test_what_we_refuse_by_name_is_skipped_with_its_reason(tmp_path: Path) -> None:
    tally = _run(
        tmp_path, "eval instant at 0 histogram_sum(h)\n\neval instant at 0 info(h)\n\neval instant at 0 info(h\n"
    )
    assert (tally.passed, len(tally.failures)) == (0, 1)
    assert list(tally.skipped) == [
        "not supported: histogram_sum works on histograms, which are not supported",
        "not supported: the function info is not supported",
    ]


def test_a_warning_alone_is_skipped_where_histograms_would_cause_it(tmp_path: Path) -> None:
    warned = "eval instant at 20s h > bool 3\n  expect warn\n\neval instant at 20s h > bool 3\n"
    tally = _run(tmp_path, HISTOGRAMS + warned)
    assert tally.summary() == "0 passed, 1 failed, 1 skipped"
    assert list(tally.skipped) == ["a warning alone is expected"]


def test_classic_histograms_are_loaded_as_they_are_and_once_more(tmp_path: Path) -> None:
    loaded = 'load_with_nhcb 10s\n  h_bucket{le="1"} 1 2\n  h_bucket{le="2"} 1 2\n\n'
    asked = "eval instant at 10s sum(h_bucket)\n  {} 4\n\neval instant at 10s count(h)\n  {} 1\n"
    assert _run(tmp_path, loaded + asked).summary() == "2 passed, 0 failed, 0 skipped"


def test_the_summary_is_the_last_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "a.test").write_text(LOADED + "eval instant at 0 y\n  y 1\n\neval instant at 0 y\n  y 2\n")
    assert main([str(tmp_path)]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[-1] == "1 passed, 1 failed, 0 skipped"
    assert lines[0].endswith("a.test:8: y")
    assert main([str(tmp_path / "empty")]) == 2


def test_commands() -> None:
    script = "load 5m\n  x 1\n\nclear\neval instant at 1m x\n  x 1\n\n# a note\neval_warn range from 0 to 1m step 10s x"
    load, clear, instant, ranged = read_script(script)
    assert isinstance(load, Load)
    assert load.gap == 300_000_000
    assert isinstance(clear, Clear)
    assert isinstance(instant, Eval)
    assert (instant.line, instant.start, instant.step) == (5, 60_000_000, None)
    assert isinstance(ranged, Eval)
    assert (ranged.end, ranged.step, ranged.expected.annotated) == (60_000_000, 10_000_000, True)


def test_series_notation() -> None:
    assert read_samples("1 2+3x2 _x2 stale 4x1 -1-.5x1 # rest") == [1, 2, 5, 8, None, None, "stale", 4, 4, -1, -1.5]
    assert read_samples("Inf -Inf 0x2 1e+3x1") == [float("inf"), float("-inf"), 0, 0, 0, 1000, 1000]
    first, second, third = read_samples("{{schema:0 count:1 sum:2}}+{{count:1}}x1 {{sum:2 count:1}}")
    assert isinstance(first, Histogram)
    assert first == third != second
    assert read_series('a:b{x="1", "y z"="\\"", empty=""} 1').labels == (("__name__", "a:b"), ("x", "1"), ("y z", '"'))
    assert read_series('{"q", x="1"} 1').labels == (("__name__", "q"), ("x", "1"))
    assert (read_time("1m30s"), read_time("-5"), read_time("0.5")) == (90_000_000, -5_000_000, 500_000)
    for wrong in ("1 abc", "1x", "{{"):
        with pytest.raises(ScriptError):
            read_samples(wrong)


def test_tolerance() -> None:
    assert almost_equal(1.0, 1.0 + 1e-7)
    assert not almost_equal(1.0, 1.0 + 1e-5)
    assert almost_equal(float("nan"), float("nan"))
    assert not almost_equal(float("inf"), 1e308)
    assert not almost_equal(0.0, 1e-9)
