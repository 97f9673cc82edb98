"""Our own scripts, and those of Prometheus where they lie beside the repository."""

from __future__ import annotations

from pathlib import Path

import pytest
from promqltest_engine import almost_equal
from promqltest_script import Clear, Eval, Load, read_script
from promqltest_series import ScriptError, read_samples, read_series, read_time
from run import Tally, main, run_script, scripts

HERE = Path(__file__).parent
PROMETHEUS = HERE.parents[2] / "shared" / "promqltest"
MOST_SKIPPED = 24


@pytest.mark.parametrize("script", sorted((HERE / "scripts").glob("*.test")), ids=lambda path: path.stem)
def test_our_own_scripts(script: Path) -> None:
    tally = Tally()
    run_script(script, tally)
    assert tally.failures == []
    assert tally.passed > 10
    assert not tally.skipped


def test_scripts_of_prometheus() -> None:
    if not PROMETHEUS.is_dir():
        pytest.skip("../shared/promqltest is not there")
    tally = Tally()
    for script in scripts([str(PROMETHEUS)]):
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
        ('eval instant at 20s x\n  x{a="b"} 4', 'expected [x{a="b"} 4.0], got 3.0'),
        ('eval instant at 20s x\n  x{a="c"} 3', 'x{a="c"} 3.0] is missing'),
        ("eval instant at 20s x", 'unexpected: x{a="b"}'),
        ('eval instant at 20s x\n  x{a="b"} 3\n  y 1', "y{} 1.0] is missing"),
        ("eval instant at 20s x\n  expect fail", "it must fail"),
        ("eval instant at 20s bogus(x)\n  {} 1", 'it fails: no function is called "bogus"'),
        ("eval instant at 20s bogus(x)\n  expect fail msg: other", "not with 'other'"),
        ("eval instant at 20s bogus(x)\n  expect fail regex: oth.r", "not with 'oth.r'"),
        ("eval instant at 20s 3\n  4", "expected the number 4.0"),
        ("eval instant at 20s 3\n  {} 3", "expected a vector, got a number"),
        ("eval instant at 20s vector(3)\n  3", "expected the number 3.0"),
        ('eval instant at 20s "a"\n  expect string "b"', "expected the string 'b'"),
        ('eval_ordered instant at 10s sort(x or y)\n  x{a="b"} 2\n  y 1', "expected in this order"),
        ('eval range from 0 to 20s step 10s x\n  x{a="b"} 1 2 4', "at 20: expected 4.0, got 3.0"),
        ('eval range from 0 to 20s step 10s x\n  x{a="b"} 1 _ 3', "at 10 must be missing"),
        ('eval range from 0 to 30s step 10s x offset 20s\n  x{a="b"} 1 1 1 2', "at 0 is missing"),
    ],
)
def test_a_wrong_result_fails_with_its_line(tmp_path: Path, evaluation: str, why: str) -> None:
    (failure,) = _run(tmp_path, LOADED + evaluation + "\n").failures
    assert "some.test:5: " in failure
    assert why in failure


def test_what_can_not_be_read_is_a_failure(tmp_path: Path) -> None:
    (failure,) = _run(tmp_path, LOADED + "evaluate x\n").failures
    assert "line 5: no command" in failure


def test_expected_histograms_are_skipped_and_counted(tmp_path: Path) -> None:
    tally = _run(tmp_path, "load 10s\n  h {{count:1}}x3\n\neval instant at 0 h\n  h {{count:1}}\n")
    assert tally.summary() == "0 passed, 0 failed, 1 skipped"


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
    assert read_samples("Inf -Inf 0x10 1e+3x1 {{count:1}}x1") == [
        float("inf"),
        float("-inf"),
        16,
        1000,
        1000,
        "histogram",
        "histogram",
    ]
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
