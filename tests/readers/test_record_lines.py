"""Lines of records as others write them: what may be left out, what is no number in JSON, what is refused why."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from log_reading import samples

from healthwatch.cli import group
from healthwatch.cli.read import remarks
from healthwatch.readers import Log, Options, open_log
from healthwatch.readers.records import FORMAT
from healthwatch.stream import SeriesTable

WHOLE = {"step": 1, "micro_step": None, "attempt": 1, "time": None, "metric": "loss", "labels": {}, "value": 2.5}
LEAST = {"step": 2, "metric": "loss", "value": 2.5}


def log_of(path: Path, *lines: object) -> Log:
    written = [line if isinstance(line, str) else json.dumps(line) for line in lines]
    path.write_text("".join(f"{line}\n" for line in written), encoding="utf-8")
    return open_log(path)


def values(log: Log, metric: str = "loss") -> dict[int, float]:
    return {key[0]: value for each in samples(list(log.frames())) for key, value in each.items() if key[3] == metric}


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("as_text", [False, True])
def test_numbers_that_json_has_none_for(tmp_path: Path, value: float, as_text: bool):
    text = {math.inf: "+Inf", -math.inf: "-Inf"}.get(value, "NaN")
    log = log_of(tmp_path / "log", WHOLE | {"value": text if as_text else value}, LEAST)
    assert repr(values(log)) == repr({1: value, 2: 2.5})
    assert log.passed.unreadable == 0


def test_a_nan_as_python_writes_it_reaches_the_rule_on_it(tmp_path: Path):
    log_of(tmp_path / "log", *(WHOLE | {"step": step, "value": math.nan if step == 7 else 2.5} for step in range(1, 9)))
    said = CliRunner().invoke(group, ["replay", str(tmp_path / "log"), "--output", "json"])
    fired = [(each["rule"], each["now"]["step"]) for each in json.loads(said.stdout)["transitions"]]
    assert ("LossNonFinite", 7) in fired
    assert said.stderr == ""


@pytest.mark.parametrize("left_out", ["micro_step", "attempt", "time", "labels"])
def test_what_has_a_default_may_be_left_out(tmp_path: Path, left_out: str):
    whole = [WHOLE | {"step": step} for step in (5, 6)]
    short = [{key: value for key, value in each.items() if key != left_out} for each in whole]
    log = log_of(tmp_path / "log", *short)
    assert log.format is FORMAT
    assert samples(list(log.frames())) == samples(list(log_of(tmp_path / "whole", *whole).frames()))


def test_a_log_without_attempts_that_goes_back_begins_the_next_one(tmp_path: Path):
    log = log_of(tmp_path / "log", *(LEAST | {"step": step} for step in (8, 9, 10, 5, 6)))
    assert [(frame.attempt, frame.step) for frame in log.frames()] == [(1, 8), (1, 9), (1, 10), (2, 5), (2, 6)]


def test_a_time_that_is_no_number_is_not_known(tmp_path: Path):
    (frame,) = log_of(tmp_path / "log", WHOLE | {"time": math.nan}).frames()
    assert frame.time == 0.0


def without(key: str) -> dict[str, Any]:
    return {name: value for name, value in WHOLE.items() if name != key}


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (without("value"), 'no key "value"'),
        (without("metric"), 'no key "metric"'),
        (WHOLE | {"value": "high"}, "not a number: 'high'"),
        (WHOLE | {"value": None}, '"value": Expected `float | str`, got `null`'),
        (WHOLE | {"step": "one"}, '"step": Expected `int`, got `str`'),
        (WHOLE | {"micro_step": 0}, '"micro_step": Expected `int` >= 1'),
        (WHOLE | {"attempt": 0}, '"attempt": Expected `int` >= 1'),
        (WHOLE | {"step": -1}, '"step": Expected `int` >= 0'),
        (WHOLE | {"step": 10**18}, '"step": Expected `int` <= 1000000000000'),
        (WHOLE | {"step": math.nan}, '"step": Expected `int`, got `float`'),
        (WHOLE | {"labels": {"rank": 3}}, '"labels": Expected `str`, got `int`'),
        ('{"step": 1, "metric": "lo', "no JSON from column 23 on: Unterminated string starting at"),
        ('{"step": 1, "else": ' + "[" * 100_000, "nested too deeply"),
        ("[1, 2]", "Expected `object`, got `array`"),
        (WHOLE | {"value": math.nan, "labels": {"a": "\ud800"}}, None),  # text that could not be printed
    ],
)
def test_why_a_line_can_not_be_read_is_kept(line: object, reason: str | None):
    reader = FORMAT.open(SeriesTable(), Options())
    texts = [json.dumps(LEAST), line if isinstance(line, str) else json.dumps(line), json.dumps({"later": 1})]
    frames = [frame for text in texts for frame in reader.feed(text + "\n")] + list(reader.finish())
    first, *others = reader.passed.reasons.items()
    assert (reader.passed.unreadable, first[1]) == (2, 2)
    assert reason is None or first[0] == reason
    assert [line for _, line in others if line != 3] == []
    assert [frame.step for frame in frames] == [2]


def test_a_long_value_is_not_printed_whole():
    reader = FORMAT.open(SeriesTable(), Options())
    reader.feed(json.dumps(WHOLE | {"value": "x" * 10_000}))
    (reason,) = reader.passed.reasons
    assert reason.startswith("not a number: 'xxx")
    assert len(reason) < 200


def test_of_ever_new_reasons_only_a_few_are_kept_and_the_others_counted(tmp_path: Path):
    log = log_of(tmp_path / "log", *(WHOLE | {"value": f"x{number}"} for number in (*range(50), *range(50))))
    list(log.frames())
    assert (log.passed.unreadable, list(log.passed.reasons.values())) == (100, [1, 2, 3, 4, 5])
    assert list(remarks(log.path, log.passed, 0))[-1] == f"{log.path.as_posix()}: and 90 records for other reasons"


def test_a_first_line_with_a_fault_is_recognised_all_the_same(tmp_path: Path):
    log = log_of(tmp_path / "log", WHOLE | {"value": math.nan, "micro_step": 0}, LEAST)
    assert log.format is FORMAT
    assert values(log) == {2: 2.5}
    assert log.passed.reasons == {'"micro_step": Expected `int` >= 1': 1}


def test_what_was_passed_over_is_that_of_the_whole_log(tmp_path: Path):
    """Whoever reads its beginning once more meanwhile, as a replay does where the log goes back, changes nothing."""
    steps = [LEAST | {"step": step} for step in (7, 8, 9, 3, 4)]
    log = log_of(tmp_path / "log", *steps[:2], without("value"), *steps[2:], without("metric"))
    frames = log.frames()
    first = [next(frames) for _ in range(3)]
    assert [frame.step for frame, _ in zip(log.frames(), range(2), strict=False)] == [7, 8]
    assert [frame.step for frame in (*first, *frames)] == [7, 8, 9, 3, 4]
    assert (log.passed.unreadable, list(log.passed.reasons.values())) == (2, [3, 7])
    replayed = CliRunner().invoke(group, ["replay", str(tmp_path / "log")])
    told = f'{(tmp_path / "log").as_posix()}:3: 2 records can\'t be read, for several reasons: no key "value"'
    assert told in replayed.stderr.splitlines()
