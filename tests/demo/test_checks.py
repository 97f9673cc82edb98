"""The demo's own checks: each finds nothing in a finished demo, and fails when what it stands for is not so."""

from __future__ import annotations

import json
import shutil
from copy import copy
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from demo_runs import Finished

pytestmark = [pytest.mark.long, pytest.mark.mindspore]


@pytest.fixture(scope="module")
def evidence(demo: Finished) -> Any:
    from examples.moe_pretrain.evidence import Evidence

    return Evidence.load(demo.folder)


def changed(evidence: Any, **found: Any) -> Any:
    """The same demo, had it left something else behind."""
    other = copy(evidence)
    vars(other).update(found)  # fields, and what its cached properties have read
    return other


def check(name: str, evidence: Any) -> list[str]:
    from examples.moe_pretrain import checks

    assert getattr(checks, name) in [function for _, function in checks.CHECKS]
    return getattr(checks, name)(evidence)


def test_a_finished_demo_passes_each(evidence: Any) -> None:
    from examples.moe_pretrain import checks

    assert [wrong for _, wrong in checks.run(evidence) if wrong] == []


@pytest.mark.parametrize(
    ("rule", "step", "allowed"),
    [
        ("LossSpike", 160, False),
        ("GradNormSpike", 100, False),
        ("ExpertSaturation", 150, False),
        ("ExpertSaturation", 151, True),
        ("ExpertSaturation", 153, True),
        ("ExpertSaturation", 154, False),
        ("GradNormSpike", 210, False),
        ("GradNormSpike", 211, True),
        ("GradNormSpike", 227, True),
        ("GradNormSpike", 228, False),
        ("ParamGradNormSpike", 321, False),
        ("ParamGradNormSpike", 322, True),
        ("ParamGradNormSpike", 344, True),
        ("ParamGradNormSpike", 345, False),
        ("AttentionLogitHigh", 345, False),
        ("LossNonFinite", 381, False),
    ],
)
def test_any_incident_but_those_listed_fails(evidence: Any, rule: str, step: int, allowed: bool) -> None:
    """Whatever the second opinion says: by rule and span alone."""
    one = evidence.incidents[0]
    another = replace(one, id=f"{rule}@{step}", rule=rule, opened=replace(one.opened, step=step))
    wrong = check("faults", changed(evidence, incidents=[*evidence.incidents, another]))
    assert wrong == ([] if allowed else [f"{rule} opened at step {step} and belongs to no fault"])


def test_each_planted_fault_must_be_found_once_by_each_of_its_rules(evidence: Any) -> None:
    from examples.moe_pretrain.expected import PLANTED

    for planted in PLANTED:
        for rule in planted.rules:
            [one] = [one for one in evidence.incidents if one.rule == rule and one.opened.step in planted.steps]
            for times, incidents in (
                (0, [other for other in evidence.incidents if other is not one]),
                (2, [*evidence.incidents, one]),
            ):
                wrong = check("faults", changed(evidence, incidents=incidents))
                assert [text for text in wrong if f"{rule} opened {times} times" in text]


def test_a_fault_of_one_micro_batch_is_told_of_that_one(evidence: Any) -> None:
    incidents = [replace(one, micro_step=1) if one.rule == "LossNonFinite" else one for one in evidence.incidents]
    [wrong] = check("faults", changed(evidence, incidents=incidents))
    assert wrong.endswith("names micro-step 1")


def test_another_end_or_none_fails(evidence: Any) -> None:
    *others, last = evidence.incidents
    later = replace(last, ended=replace(last.ended, step=last.ended.step + 1))
    assert len(check("incidents", changed(evidence, incidents=[*others, later]))) == 1
    assert len(check("incidents", changed(evidence, incidents=others))) == 1
    assert len(check("resolved", changed(evidence, incidents=[*others, replace(last, ended=None, ending=None)]))) == 1


def test_another_series_fails(evidence: Any) -> None:
    fired = next(one for one in evidence.transitions if one.reason == "fired")
    left = [one for one in evidence.transitions if one is not fired]
    assert len(check("alerts", changed(evidence, transitions=left))) == 1


def test_a_log_and_messages_without_places_fail(evidence: Any) -> None:
    log = [line.replace('expert="', 'part="') for line in evidence.log]
    assert {text.rpartition(" ")[2] for text in check("places", changed(evidence, log=log))} == {'expert="'}
    rows = [
        replace(row, notice=replace(row.notice, body=row.notice.body.replace("head=", "part=")))
        for row in evidence.outbox
    ]
    wrong = check("places", changed(evidence, outbox=rows))
    assert len(wrong) == 3
    assert all(text.startswith("no message of AttentionLogit") for text in wrong)


def test_a_message_too_few_or_not_accepted_fails(evidence: Any) -> None:
    first, *others = evidence.outbox
    assert len(check("notices", changed(evidence, outbox=others))) == 1
    assert len(check("notices", changed(evidence, outbox=[replace(first, accepted=None), *others]))) == 1
    assert check("notices", changed(evidence, outbox=[*others, first])) == ["messages out of order"]


@pytest.mark.parametrize("wire", ["http", "mail"])
def test_what_a_receiver_did_not_get_fails(evidence: Any, wire: str) -> None:
    first, *others = getattr(evidence, wire)
    cut = replace(first, body=first.body[: len(first.body) // 2])
    for got in (others, [first, first, *others], [cut, *others]):
        assert len(check("delivered", changed(evidence, **{wire: tuple(got)}))) == 1


def test_a_profile_that_is_missing_cut_or_of_other_steps_fails(evidence: Any, tmp_path: Path) -> None:
    folder = tmp_path / "demo"
    shutil.copytree(evidence.folder, folder)
    moved = changed(evidence, folder=folder)
    assert check("captures", moved) == []
    lost, cut, other = moved.manifests[:3]
    shutil.rmtree(lost.parent)
    trace = cut.parent / json.loads(cut.read_text("utf-8"))["trace"]
    trace.write_bytes(trace.read_bytes()[:-100])
    manifest = json.loads(other.read_text("utf-8"))
    manifest["steps"]["recorded"] = 2
    other.write_text(json.dumps(manifest), "utf-8")
    wrong = sorted(text.rpartition(":")[0] or text for text in check("captures", moved))
    assert len(wrong) == 3
    assert [text for text in wrong if text.startswith("no profile of")]
    assert [text for text in wrong if "no whole trace" in text]
    assert [text for text in wrong if text.startswith("manifest of")]
