"""`healthwatch silence add`: what is asked for is kept, what it fits is said, and so is a name that nothing has."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

import healthwatch
from healthwatch.alerting.text import time_text
from healthwatch.cli import group
from healthwatch.session.control import all_of

RULES = """
groups:
  - name: g
    rules:
      - {alert: LossHigh, expr: loss > 5, labels: {severity: warning, team: vision}}
      - {alert: CardHot, expr: heat > 90, labels: {severity: warning}}
"""


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One step of a run."""
    config = write_config(tmp_path_factory.mktemp("run"))
    with healthwatch.load(config) as hw:
        hw.log_values("heat", [50.0], [{"card": "0"}])
        hw.step(1.0)
    return config.parent / "out"


@pytest.fixture(scope="module")
def hot(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A run that goes on, with a loss and twenty cards that are too high: more than an incident lists."""
    config = write_config(tmp_path_factory.mktemp("hot"), run="hot")
    cards = [{"card": str(number)} for number in range(20)]
    with healthwatch.load(config) as hw:
        for heat in (50.0, 95.0):
            hw.log_values("heat", [heat] * len(cards), cards)
            hw.step(9.0)
        yield config.parent / "out"


def write_config(folder: Path, **more: str) -> Path:
    (folder / "rules.yaml").write_text(RULES, encoding="utf-8")
    section = {"output": str(folder / "out"), "rules": ["rules.yaml"], **more}
    (folder / "c.yaml").write_text(json.dumps({"healthwatch": section}), encoding="utf-8")
    return folder / "c.yaml"


def add(run: Path, *matchers: str) -> str:
    """What is remarked; the silence stands whatever that is."""
    before = len(all_of(run))
    result = CliRunner().invoke(group, ["silence", "add", str(run), *matchers, "--for", "1h"])
    assert result.exit_code == 0, result.output
    silences = all_of(run)
    assert len(silences) == before + 1
    assert result.stdout.removesuffix("\n") in {each.id for each in silences}, "nothing else, for scripts"
    [silence] = [each for each in silences if each.id == result.stdout.strip()]
    assert silence.ends is not None
    head = f"in force until {time_text(silence.ends)}"
    assert result.stderr.startswith(head)
    return result.stderr.removeprefix(head)


@pytest.mark.parametrize(
    ("matcher", "remark"),
    [
        ("alertname=LossHihg", 'no rule of this run is called "LossHihg"; did you mean "LossHigh"?\n'),
        (
            "alertname=GradNormSpike",
            'no rule of this run is called "GradNormSpike"; it is in builtin:gradients, which is not loaded\n',
        ),
        ("rule=LossHihg", 'no rule of this run is called "LossHihg"; did you mean "LossHigh"?\n'),
        ("alertname!=LossHihg", 'no rule of this run is called "LossHihg"; did you mean "LossHigh"?\n'),
        (
            "alertname=~Grad.*",
            "no rule of this run fits alertname=~Grad.*; rules: CardHot, LossHigh, ReceiverFailing\n",
        ),
        ("crad=0", 'nothing in this run has the label "crad"; did you mean "card"?\n'),
        ("alertname=LossHigh", ""),
        ("alertname=ReceiverFailing", ""),
        ("alertname=~Loss.*", ""),
        ("card=~[0-3]", ""),
        ("team=vision", ""),
        ("rank=0", ""),
        ("severity!=critical", ""),
    ],
)
def test_a_name_that_nothing_has_is_remarked_upon(run: Path, matcher: str, remark: str) -> None:
    assert add(run, matcher) == f"; it fits no open incident now\n{remark}"


def test_a_file_that_is_no_run_is_refused(tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    log.write_text("{}", encoding="utf-8")
    result = CliRunner().invoke(group, ["silence", "add", str(log), "alertname=A", "--for", "1h"])
    assert result.exit_code == 2
    assert "log.jsonl is no run" in result.stderr
    assert list(tmp_path.iterdir()) == [log]


def test_of_a_run_that_has_not_begun_nothing_is_known(tmp_path: Path) -> None:
    assert add(tmp_path, "alertname=Anything") == "\n"


@pytest.mark.parametrize(
    ("matcher", "fits"),
    [
        ("alertname=LossHigh", "1 open incident now: LossHigh@1"),
        ("team=vision", "1 open incident now: LossHigh@1"),
        ("alertname=~.*", "2 open incidents now: CardHot@2, LossHigh@1"),
        ("rank=1", "no open incident now"),
        ("run=hot", "2 open incidents now: CardHot@2, LossHigh@1"),
        ("card=0", "no open incident now"),  # another of its cards fires
        ("card=~[0-9]+", "1 open incident now: CardHot@2"),
    ],
)
def test_what_it_fits_now_is_said(hot: Path, matcher: str, fits: str) -> None:
    assert add(hot, matcher) == f"; it fits {fits}\n"


def test_a_step_that_is_past_holds_nothing_back(hot: Path) -> None:
    def said(step: int) -> str:
        asked = ["silence", "add", str(hot), "severity=warning", "--until-step", str(step)]
        return CliRunner().invoke(group, asked).stderr

    past = "step 1 is past: the run is at step 2, so this holds back nothing\n"
    assert said(1) == f"in force up to step 1; it fits no open incident now\n{past}"
    assert said(9) == "in force up to step 9; it fits 2 open incidents now: CardHot@2, LossHigh@1\n"


def test_no_silence_is_said(tmp_path: Path) -> None:
    result = CliRunner().invoke(group, ["silence", "list", str(tmp_path)])
    assert (result.exit_code, result.output) == (0, "there is no silence\n")


def test_no_help_is_cut_off() -> None:
    said = CliRunner().invoke(group, ["silence", "--help"]).output
    assert [line for line in said.splitlines() if line.endswith("...") and "[ARGS]" not in line] == []
