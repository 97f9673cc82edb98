"""A training that ends with an error: the shipped rule says so, people are told, and a replay says the same."""

from __future__ import annotations

import json
import logging
import subprocess
import sys
from contextlib import nullcontext
from pathlib import Path

import pytest

import healthwatch
from healthwatch.cli.replay import listen
from healthwatch.recording import Run
from healthwatch.replay import load_replay
from healthwatch.session.pipeline import Pipeline


@pytest.fixture
def config(tmp_path: Path, inbox) -> Path:
    """The shipped pack, with a ladder that has everything."""
    section = {
        "run": "short",
        "output": str(tmp_path / "out"),
        "rules": ["builtin:run"],
        "escalation": {"critical": [{"log": "error"}, {"profile": {"steps": 3}}, {"notify": "oncall"}, {"stop": True}]},
        "receivers": {"oncall": {"urls": [inbox.url]}},
    }
    path = tmp_path / "train.yaml"
    path.write_text(json.dumps({"healthwatch": section}), encoding="utf-8")
    return path


def said(folder: Path) -> list[tuple[int, int, str, str]]:
    with Run.open(folder / "out") as run:
        return [(each.now.attempt, each.now.step, each.rule, each.reason) for each in run.transitions()]


def same_in_a_replay(folder: Path) -> bool:
    with Run.open(folder / "out") as run:
        live = [repr(each) for each in run.transitions()]
    return live == [repr(each) for each in listen(load_replay(folder / "out")).transitions]


def train(config: Path, steps: int, error: BaseException | None = None, first_step: int = 1) -> None:
    with healthwatch.load(config).attach(first_step=first_step) as hw:
        for step in range(steps):
            hw.step(3.0 - 0.01 * step)
        if error is not None:
            raise error


def test_an_error_in_the_loop_is_told_recorded_and_replayed(config, tmp_path, inbox):
    error = RuntimeError("the data has ended")
    with pytest.raises(RuntimeError) as raised:
        train(config, 5, error)
    assert raised.value is error
    assert error.__context__ is None
    assert said(tmp_path) == [(1, 6, "RunFailed", "fired")]
    assert len(inbox.titles) == 1
    assert "RunFailed" in inbox.titles[0]
    with Run.open(tmp_path / "out") as run:
        (attempt,) = run.attempts()
        assert (attempt.reason, run.pending()) == ("RuntimeError", [])
        (incident,) = run.incidents()
        assert (incident.rule, incident.opened.step, incident.ended) == ("RunFailed", 6, None)
        assert [one["refused"].partition(":")[0] for one in run.captures()] == ["there is no profiler here"]
    assert same_in_a_replay(tmp_path)


def test_the_next_attempt_resolves_it(config, tmp_path, inbox):
    for error in (OSError("no space"), ValueError("no shape")):
        with pytest.raises(type(error)):
            train(config, 4, error, first_step=1 if isinstance(error, OSError) else 4)
    train(config, 3, first_step=8)
    assert said(tmp_path) == [
        (1, 5, "RunFailed", "fired"), (2, 4, "RunFailed", "resolved"),
        (2, 8, "RunFailed", "fired"), (3, 8, "RunFailed", "resolved"),
    ]  # fmt: skip
    assert len(inbox.titles) == 4
    assert same_in_a_replay(tmp_path)


def test_before_its_first_step(config, tmp_path):
    with pytest.raises(RuntimeError):
        train(config, 0, RuntimeError(), first_step=101)
    assert said(tmp_path) == [(1, 101, "RunFailed", "fired")]
    assert same_in_a_replay(tmp_path)


@pytest.mark.parametrize("error", [None, KeyboardInterrupt(), SystemExit(), SystemExit(0), GeneratorExit()], ids=repr)
def test_what_is_no_error(config, tmp_path, inbox, error):
    with pytest.raises(type(error)) if error is not None else nullcontext():
        train(config, 5, error)
    assert said(tmp_path) == []
    assert inbox.titles == []


def test_an_end_that_a_rule_asked_for_is_none(config, tmp_path):
    rules = "groups: [{name: g, rules: [{alert: High, expr: loss > 2.5, labels: {severity: critical}}]}]"
    (tmp_path / "rules.yaml").write_text(rules, encoding="utf-8")
    config.write_text(config.read_text().replace('"builtin:run"', '"builtin:run", "rules.yaml"'))
    with pytest.raises(healthwatch.TrainingStopped):
        train(config, 5)
    assert said(tmp_path) == [(1, 1, "High", "fired")]


def test_an_exit_code_is_an_error(config, tmp_path):
    with pytest.raises(SystemExit):
        train(config, 5, SystemExit(3))
    assert said(tmp_path) == [(1, 6, "RunFailed", "fired")]


def test_nothing_of_ours_hides_the_error(config, tmp_path, monkeypatch, caplog):
    monkeypatch.setattr(Pipeline, "fail", lambda *_: 1 / 0)
    caplog.set_level(logging.INFO, "healthwatch")
    with pytest.raises(RuntimeError, match="of the training"):
        train(config, 5, RuntimeError("of the training"))
    assert "division by zero" in caplog.text
    with Run.open(tmp_path / "out") as run:
        assert run.attempts()[0].reason == "RuntimeError"


PROGRAM = """
import sys
import healthwatch
hw = healthwatch.load(sys.argv[1]).attach()
for step in range(5):
    hw.step(3.0)
{end}
"""
ENDS = {
    "uncaught": ("raise RuntimeError('out of memory')", 1, [(1, 6, "RunFailed", "fired")]),
    "hooked": ("sys.excepthook = lambda *_: print('mine', file=sys.stderr)\n1 / 0", 1, [(1, 6, "RunFailed", "fired")]),
    "caught": ("try:\n    1 / 0\nexcept ZeroDivisionError:\n    pass", 0, []),
    "interrupted": ("raise KeyboardInterrupt", -2, []),
    "over": ("", 0, []),
}


@pytest.mark.long
@pytest.mark.parametrize("end", ENDS)
def test_a_process_that_nobody_closes(config, tmp_path, inbox, end):
    """Without `with` the end is seen at the exit of the process, which goes as it would without us."""
    code, status, expected = ENDS[end]
    program = PROGRAM.format(end=code)
    done = subprocess.run(
        [sys.executable, "-c", program, str(config)], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == status, done.stderr
    assert said(tmp_path) == expected
    assert len(inbox.titles) == len(expected)
    assert same_in_a_replay(tmp_path)
    if end == "uncaught":
        tail = (
            'Traceback (most recent call last):\n  File "<string>", line 7, in <module>\nRuntimeError: out of memory\n'
        )
        assert tail in done.stderr
    if end == "hooked":
        assert "mine\n" in done.stderr
