"""No code without a test: those that other tests know by their words are asked for here."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from click.testing import CliRunner

import healthwatch
from healthwatch.actions.notify import Delivery
from healthwatch.alerting.model import Notice, Now
from healthwatch.cli import group
from healthwatch.diagnostics import Invalid
from healthwatch.engine import Outcome
from healthwatch.promql.second_opinion import refusal
from healthwatch.promql.tokens import tokenize
from healthwatch.recording import Recording
from healthwatch.replay import load_replay
from healthwatch.rulefile.codes import codes
from healthwatch.stream import Frame, SeriesTable

TESTS = Path(__file__).resolve().parents[1]


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A recorded run of one step, without rules."""
    recording, table = Recording.create(tmp_path / "rank_0.sqlite", {}), SeriesTable()
    frame = Frame(1)
    frame.add(table.register("loss", [{"split": "train"}, {"split": "val"}]), [2.0, 3.0])
    frame.close()
    recording.commit(frame, Outcome(Now(1, 0.0)))
    recording.close()
    return tmp_path


def test_hw117_the_reference_parser_refuses() -> None:
    """Nothing is known that our own reader lets through and the reference does not; if there were, it would say so."""
    tokens = tuple(tokenize("loss +").tokens)
    (problem,) = refusal(tokens)
    assert (problem.code, problem.span) == ("HW117", (0, 6))
    assert refusal(tuple(tokenize("loss + 1").tokens)) == []


def test_hw302_a_model_of_no_known_framework(tmp_path: Path) -> None:
    (tmp_path / "c.yaml").write_text(f"healthwatch: {{output: '{tmp_path / 'o'}', rules: [builtin:loss]}}\n", "utf-8")
    with pytest.raises(Invalid) as refused:
        healthwatch.load(tmp_path / "c.yaml").attach(object())
    assert [found.code for found in refused.value.diagnostics] == ["HW302"]


def test_hw303_a_recording_without_rules(run: Path) -> None:
    with pytest.raises(Invalid) as refused:
        load_replay(run)
    assert [found.code for found in refused.value.diagnostics] == ["HW303"]


def test_hw310_an_expression_without_a_result(run: Path) -> None:
    result = CliRunner().invoke(group, ["query", str(run), "loss + on () loss"])
    assert isinstance(result.exception, Invalid)
    assert [found.code for found in result.exception.diagnostics] == ["HW310"]


def test_hw602_a_receiver_that_does_not_exist() -> None:
    delivery = Delivery({})
    delivery.send([Notice("1", "nobody", "opened", "warning", "title", "body", (), Now(1, 0.0))])
    assert [(found.code, found.severity) for found in delivery.problems()] == [("HW602", "warning")]
    delivery.close()


def test_hw605_a_silence_that_is_none(run: Path) -> None:
    folder = run / "control" / "silences"
    folder.mkdir(parents=True)
    (folder / "x.json").write_text("{}", encoding="utf-8")
    result = CliRunner().invoke(group, ["silence", "list", str(run)])
    assert isinstance(result.exception, Invalid)
    assert [found.code for found in result.exception.diagnostics] == ["HW605"]


def test_every_code_stands_in_a_test() -> None:
    asked = {
        code
        for file in TESTS.rglob("test_*.py")
        for code in re.findall(r"HW\d{3}", file.read_text(encoding="utf-8"), re.IGNORECASE)
    }
    assert set(codes()) <= {code.upper() for code in asked}
