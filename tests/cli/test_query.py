from __future__ import annotations

import json
import math
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from healthwatch.alerting.model import Now
from healthwatch.cli import group
from healthwatch.engine import Outcome
from healthwatch.recording import Recording
from healthwatch.stream import Frame, SeriesTable


@pytest.fixture(scope="module")
def run_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Ten steps of two series, two micro-steps of another; from step 9 on a second time, with other values."""
    path = tmp_path_factory.mktemp("run") / "rank_0.sqlite"
    for attempt, steps, more in ((1, range(1, 11), 0.0), (2, range(9, 11), 100.0)):
        table = SeriesTable()
        recording = Recording.create(path, {"run": "small"})
        assert recording.attempt == attempt
        for step in steps:
            frame = Frame(step, attempt, 1000.0 + step)
            loss = [step + more, math.nan if step == 4 else 2.0 * step]
            frame.add(table.register("loss", [{"rank": "0"}, {"rank": "1"}]), loss)
            for micro_step in range(2):
                frame.add(table.register("micro_loss", [{}]), [step + micro_step / 10], micro_step)
            frame.close()
            assert recording.commit(frame, Outcome(Now(step, frame.time, attempt))) is None
        recording.close()
    return path


def ask(run_file: Path, *arguments: str) -> Result:
    return CliRunner().invoke(group, ["query", str(run_file), *arguments])


def test_the_last_step_without_more(run_file: Path) -> None:
    said = ask(run_file, "loss")
    assert said.exit_code == 0
    assert said.output == 'loss{rank="0"}  110\nloss{rank="1"}  20\n'


def test_a_step_and_a_folder(run_file: Path) -> None:
    assert ask(run_file.parent, "loss * 2 > 5", "--at", "4").output == '{rank="0"}  8\n'
    assert ask(run_file, 'loss{rank="1"}', "--at", "4").output == 'loss{rank="1"}  NaN\n'


def test_a_rewound_run_has_the_samples_of_the_later_attempt(run_file: Path) -> None:
    said = ask(run_file, 'loss{rank="0"}', "--from", "7", "--to", "10", "--step", "1")
    assert said.output == 'loss{rank="0"}\n   7  7\n   8  8\n   9  109\n  10  110\n'


def test_several_steps_default_to_the_whole_run(run_file: Path) -> None:
    lines = ask(run_file, "sum(loss)", "--step", "3").output.splitlines()
    assert lines == ["{}", "   1  3", "   4  NaN", "   7  21", "  10  130"]


def test_windows_count_steps_or_seconds_and_may_look_ahead(run_file: Path) -> None:
    for text in ('sum_over_time(loss{rank="0"}[2])', 'sum_over_time(loss{rank="0"}[2s])'):
        assert ask(run_file, text, "--at", "3").output == '{rank="0"}  5\n'
    assert ask(run_file, 'loss{rank="0"} offset -1', "--at", "3").output == 'loss{rank="0"}  4\n'
    assert ask(run_file, 'loss{rank="0"} @ 2', "--at", "3").output == 'loss{rank="0"}  2\n'


@pytest.mark.parametrize("kind", ["loss", "sum(loss)", "loss[3]", "vector(1)", "1 + 1"])
def test_steps_behind_the_last_one_have_not_been(run_file: Path, kind: str) -> None:
    said = ask(run_file, kind, "--at", "11")
    assert (said.exit_code, said.stdout, said.stderr) == (0, "no series has a result\n", "the run ends at step 10\n")
    assert json.loads(ask(run_file, kind, "--at", "11", "-o", "json").stdout)["result"] == []
    assert ask(run_file, kind, "--at", "10").stderr == ""


def test_steps_before_the_first_one_have_not_been_either(run_file: Path) -> None:
    for asked in (["--at", "-1"], ["--from", "-3", "--to", "0"]):
        said = ask(run_file, "loss", *asked)
        assert (said.stdout, said.stderr) == ("no series has a result\n", "the run begins at step 1\n")


def test_several_steps_end_where_the_run_does(run_file: Path) -> None:
    said = ask(run_file, 'loss{rank="0"}', "--from", "9", "--to", "500")
    assert said.stdout == 'loss{rank="0"}\n   9  109\n  10  110\n'
    assert said.stderr == "the run ends at step 10\n"
    assert ask(run_file, "vector(1)", "--from", "10", "--to", "12").stdout == "{}\n  10  1\n"
    for behind in (["--from", "11"], ["--from", "11", "--to", "500"]):
        said = ask(run_file, "vector(1)", *behind)
        assert (said.exit_code, said.stdout) == (0, "no series has a result\n")
        assert said.stderr == "the run ends at step 10\n"
    assert ask(run_file, "loss", "--from", "9", "--to", "10").stderr == ""
    assert ask(run_file, "'a'", "--at", "500").stderr == ""


def test_what_a_selector_reaches_is_as_in_promql_all_the_same(run_file: Path) -> None:
    """R2: the newest sample; the run's end bounds the steps that are asked about, not those of `@` and `offset`."""
    assert ask(run_file, 'loss{rank="0"} offset -5', "--at", "10").output == 'loss{rank="0"}  110\n'
    assert ask(run_file, 'loss{rank="0"} @ 500', "--at", "3").output == 'loss{rank="0"}  110\n'


def commit_steps(path: Path, attempt: int, steps: range) -> None:
    recording, table = Recording.create(path, {}), SeriesTable()
    for step in steps:
        frame = Frame(step, attempt, 1000.0 + step)
        frame.add(table.register("loss", [{}]), float(step))
        frame.close()
        recording.commit(frame, Outcome(Now(step, frame.time, attempt)))
    recording.close()


def test_a_run_that_went_back_ends_where_it_is_now(tmp_path: Path) -> None:
    commit_steps(tmp_path / "rank_0.sqlite", 1, range(1, 11))
    commit_steps(tmp_path / "rank_0.sqlite", 2, range(5, 8))
    said = ask(tmp_path, "loss", "--from", "6")
    assert said.stdout == "loss\n  6  6\n  7  7\n"
    assert ask(tmp_path, "loss", "--at", "9").stderr == "the run ends at step 7\n"


def test_a_run_without_samples_says_so(tmp_path: Path) -> None:
    commit_steps(tmp_path / "rank_0.sqlite", 1, range(0))
    for arguments in ([], ["--at", "3"], ["--from", "1"]):
        said = ask(tmp_path, "vector(1)", *arguments)
        assert said.stderr == f"{tmp_path.as_posix()}/rank_0.sqlite holds no samples\n"


def test_json(run_file: Path) -> None:
    said = json.loads(ask(run_file, "loss", "--at", "4", "--output", "json").output)
    assert said == {
        "type": "vector",
        "step": 4,
        "result": [
            {"labels": {"__name__": "loss", "rank": "0"}, "value": 4.0},
            {"labels": {"__name__": "loss", "rank": "1"}, "value": "NaN"},
        ],
    }
    ranged = json.loads(ask(run_file, "avg(loss)", "--from", "1", "--to", "3", "-o", "json").output)
    assert ranged == {
        "type": "matrix",
        "from": 1,
        "to": 3,
        "step": 1,
        "result": [{"labels": {}, "values": [[1, 1.5], [2, 3.0], [3, 4.5]]}],
    }
    assert json.loads(ask(run_file, "1 + 1", "-o", "json").output)["type"] == "scalar"
    assert json.loads(ask(run_file, "'a'", "-o", "json").output) == {"type": "string", "result": "a"}


def test_sorted_results_keep_their_order(run_file: Path) -> None:
    assert ask(run_file, "sort_desc(loss)", "--at", "3").output == 'loss{rank="1"}  6\nloss{rank="0"}  3\n'


def test_micro_steps_are_in_windows(run_file: Path) -> None:
    assert ask(run_file, "count_over_time(micro_loss[3])", "--at", "5").output == "{}  6\n"


def test_samples_of_a_range(run_file: Path) -> None:
    said = ask(run_file, "micro_loss[2]", "--at", "3")
    assert said.output == "micro_loss\n  1.5  2\n    2  2.1\n  2.5  3\n    3  3.1\n"
    found = json.loads(ask(run_file, 'loss{rank="0"}[2]', "--at", "3", "-o", "json").output)["result"]
    assert found == [{"labels": {"__name__": "loss", "rank": "0"}, "values": [[2, 2.0], [3, 3.0]]}]
    refused = ask(run_file, "loss[2]", "--from", "1")
    assert (refused.exit_code, "need a vector or a number" in refused.output) == (2, True)


def test_no_result_is_said(run_file: Path) -> None:
    said = ask(run_file, "loss > 1000")
    assert (said.exit_code, said.output) == (0, "no series has a result\n")
    assert json.loads(ask(run_file, "loss > 1000", "-o", "json").output)["result"] == []


def test_a_metric_that_the_run_does_not_have_is_named(run_file: Path) -> None:
    said = ask(run_file, "sum(micro_los) > 1 and micro_los")
    assert said.stdout == "no series has a result\n"
    assert said.stderr == 'the run has no metric "micro_los"; did you mean "micro_loss"?\n'
    assert ask(run_file, "absent(micro_los)").stderr == ""


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('loss{rnk="0"}', 'loss has no label "rnk"; did you mean "rank"?\n'),
        ('micro_loss{rank=~"0|1"}', 'micro_loss has no label "rank"; it has none\n'),
        ('loss{rank="7"}', ""),
        ('loss{layer=""} > 1000', ""),
    ],
)
def test_a_label_that_a_metric_does_not_have_is_named(run_file: Path, text: str, said: str) -> None:
    assert ask(run_file, text).stderr == said


def test_steps_the_wrong_way_round_are_refused(run_file: Path) -> None:
    said = ask(run_file, "loss", "--from", "7", "--to", "3")
    assert said.exit_code == 2
    assert "--from 7 lies behind --to 3" in said.stderr


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["robust_zscor(loss[5])"], 'did you mean "robust_zscore"?'),
        (["loss +"], "the expression ends where an operand must follow"),
        (["loss + on () loss"], "the expression has no result"),
    ],
)
def test_what_can_not_be_evaluated_is_told_in_full(run_file: Path, arguments: list[str], told: str) -> None:
    said = ask(run_file, *arguments)
    assert told in str(said.exception)


def test_carets_stand_under_the_problem(run_file: Path) -> None:
    said = str(ask(run_file, "sum(loss)\n  > bogus(1)").exception)
    assert 'expression:2:5: error[HW103]: no function is called "bogus"' in said
    assert "2 |   > bogus(1)\n  |     ^^^^^" in said


def test_one_step_or_several(run_file: Path) -> None:
    said = ask(run_file, "loss", "--at", "3", "--from", "2")
    assert said.exit_code == 2
    assert "--at asks for one step" in said.output
