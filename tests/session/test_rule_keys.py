"""What a rule's keys and the config's override do to a training, from the files to the recording and the message."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import healthwatch
from healthwatch.alerting.model import Incident, Transition
from healthwatch.recording import Run

HEAD = "groups:\n  - name: g\n    rules:\n"


def rule(*lines: str, name: str = "High", expr: str = "loss > 5") -> str:
    own = ["labels: {severity: warning}", 'annotations: {action: look, summary: "{{ $value }}"}', *lines]
    return f"      - alert: {name}\n        expr: {expr}\n" + "".join(f"        {line}\n" for line in own)


class Ran:
    """What is left of a run."""

    def __init__(self, output: Path, titles: Sequence[str]) -> None:
        self.titles = list(titles)
        with Run.open(output) as run:
            self.transitions: list[Transition] = list(run.transitions())
            self.incidents: list[Incident] = list(run.incidents())

    def reasons(self, name: str = "High") -> list[tuple[int, str]]:
        return [(each.now.step, each.reason) for each in self.transitions if each.rule == name]


Train = Callable[..., Ran]


@pytest.fixture
def train(tmp_path: Path, inbox) -> Train:
    """Train on some losses under rules: every severity notifies, `night` too."""

    def train(rules: str, losses: Sequence[float], *, attempts: Sequence[Sequence[float]] = (), **section: Any) -> Ran:
        (tmp_path / "rules.yaml").write_text(HEAD + rules, encoding="utf-8")
        ladders = {name: [{"notify": "oncall"}] for name in ("critical", "warning", "info")}
        known = {
            "run": "r", "output": str(tmp_path / "output"), "rules": ["rules.yaml"], "escalation": ladders,
            "receivers": {"oncall": {"urls": [inbox.url]}},
        }  # fmt: skip
        (tmp_path / "train.yaml").write_text(json.dumps({"healthwatch": known | section}), encoding="utf-8")
        first = 1
        for part in (losses, *attempts):
            with healthwatch.load(tmp_path / "train.yaml").attach(first_step=first) as session:
                for loss in part:
                    session.step(loss)
            first += len(part)
        return Ran(tmp_path / "output", inbox.titles)

    return train


def test_the_rule_as_it_is(train: Train) -> None:
    ran = train(rule(), [1, 9, 1])
    assert ran.reasons() == [(2, "fired"), (3, "resolved")]
    assert len(ran.titles) == 2


def test_override_params(train: Train) -> None:
    ran = train(rule("params: {k: 5}", expr="loss > $k"), [1, 9, 1], override={"High": {"params": {"k": 10}}})
    assert ran.reasons() == []


def test_override_enabled(train: Train) -> None:
    ran = train(rule() + rule(name="Other"), [1, 9, 1], override={"High": {"enabled": False}})
    assert (ran.reasons(), ran.reasons("Other")) == ([], [(2, "fired"), (3, "resolved")])


def test_override_labels_choose_another_ladder(train: Train) -> None:
    ladders = {"critical": [{"notify": "oncall"}], "warning": [{"log": "warning"}]}
    assert train(rule(), [9, 1], escalation=ladders).titles == []
    ran = train(rule(), [9, 1], escalation=ladders, override={"High": {"labels": {"severity": "critical"}}})
    assert len(ran.titles) == 2
    assert ran.incidents[-1].severity == "critical"


def test_override_escalation(train: Train) -> None:
    ladders = {"night": [{"notify": "oncall"}], "warning": [{"log": "warning"}]}
    ran = train(rule(), [9, 1], escalation=ladders, override={"High": {"escalation": "night"}})
    assert len(ran.titles) == 2


def test_a_shadow_is_recorded_and_tells_nobody(train: Train) -> None:
    ran = train(rule("mode: shadow"), [1, 9, 1])
    assert ran.reasons() == [(2, "fired"), (3, "resolved")]
    assert ran.incidents[0].shadow
    assert ran.titles == []


def test_limit_truncates_and_never_wipes(tmp_path: Path, train: Train) -> None:
    """50 series fire: three are listed, all are recorded and each ends."""
    train(rule("limit: 3", expr="queue > 5") + "metrics: {queue: {labels: [worker]}}\n", [])
    names = [{"worker": str(n)} for n in range(50)]
    with healthwatch.load(tmp_path / "train.yaml").attach() as session:
        for value in (9.0, 1.0):
            session.log_values("queue", np.full(50, value) + np.arange(50) / 100, names)
            session.step(1.0)
    with Run.open(tmp_path / "output") as run:
        transitions, incidents = list(run.transitions()), list(run.incidents())
    assert [sum(each.reason == reason for each in transitions) for reason in ("fired", "resolved")] == [50, 50]
    assert {each.count for each in incidents} == {50}
    assert all(len(each.firing) == 3 for each in incidents)
    assert dict(incidents[0].firing[0].labels)["worker"] == "49"


def test_until_holds_what_fires(train: Train) -> None:
    held = rule("until: loss > 3", expr="loss > 5")
    assert train(held, [4, 9, 4, 4, 4, 2, 4]).reasons() == [(2, "fired"), (6, "resolved")]


def test_warmup_counts_steps_of_the_run(train: Train) -> None:
    ran = train(rule("warmup: 3"), [9, 9], attempts=[[9, 9, 1]])
    assert ran.reasons() == [(4, "fired"), (5, "resolved")]


def test_settle_counts_steps_of_the_attempt(train: Train) -> None:
    ran = train(rule("settle: 2"), [9, 9, 9, 1], attempts=[[9, 9, 9]])
    assert ran.reasons() == [(3, "fired"), (4, "resolved"), (7, "fired")]


def test_for_records_and_keep_firing_for(train: Train) -> None:
    ran = train(rule("for_records: 2", "keep_firing_for: 2"), [9, 1, 9, 9, 1, 1, 1, 1])
    assert ran.reasons()[-2:] == [(4, "fired"), (7, "resolved")]
