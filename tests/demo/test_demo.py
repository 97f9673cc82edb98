"""The demo from end to end: its exit code, its recording, its profiles, and what came over the wire."""

from __future__ import annotations

import hashlib
import json
import math
import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from demo_runs import Finished
from naive import Incident, incidents
from naive_messages import messages
from naive_reading import query, times
from naive_rules import STEP, Samples

pytestmark = [pytest.mark.long, pytest.mark.mindspore]

AT_ONCE = {  # rules without a window that fire at the first to the third record: metric, and what is past the bound
    "LossNonFinite": ("local_loss", lambda value: not math.isfinite(value)),
    "GradNormNonFinite": ("micro_norm", lambda value: not math.isfinite(value)),
    "AttentionLogitHigh": ("max_attention_logit", lambda value: value > 100),
    "AttentionLogitExtreme": ("max_attention_logit", lambda value: value > 1000),
}
FAULTS = (
    ("ParamGradNormSpike", range(151, 154)),
    ("GradNormSpike", range(151, 154)),
    ("ExpertSaturation", range(211, 271)),
    ("ExpertImbalanceSevere", range(211, 271)),
    ("ExpertDead", range(211, 271)),
    ("ExpertImbalance", range(211, 271)),
    ("AttentionLogitGrowth", range(320, 335)),
    ("AttentionLogitHigh", range(320, 335)),
    ("AttentionLogitExtreme", range(320, 335)),
    ("LossNonFinite", range(380, 381)),
    ("GradNormNonFinite", range(380, 381)),
)
FOLLOW_UPS = (  # incidents that a fault may bring along, and where they may open
    ("GradNormSpike", range(211, 228)),
    ("GradNormSpike", range(322, 345)),
    ("ParamGradNormSpike", range(211, 228)),
    ("ParamGradNormSpike", range(322, 345)),
    ("ExpertSaturation", range(151, 154)),
)
METRICS = {
    "local_norm",
    "micro_norm",
    "device_norm",
    "local_loss",
    "device_loss",
    "loss",
    "grad_norm",
    "lr",
    "step_time",
    "tokens_per_expert",
    "router_topk",
    "max_attention_logit",
}


@pytest.fixture(scope="module")
def expected(samples: Samples) -> list[Incident]:
    """What the naive evaluator computes from the recorded samples."""
    return incidents(samples)


@pytest.fixture(scope="module")
def seen(demo: Finished) -> list[tuple[str, int, int | None]]:
    return query(demo.recording, "SELECT rule, opened, ended FROM incidents ORDER BY opened, rule")


@pytest.fixture(scope="module")
def manifests(demo: Finished) -> dict[Path, dict[str, Any]]:
    paths = demo.folder.glob("captures/rank_0/*/manifest.json")
    return {path.parent: json.loads(path.read_text("utf-8")) for path in sorted(paths)}


def test_exits_with_zero_and_shows_everything(demo: Finished) -> None:
    assert demo.returncode == 0, demo.printed
    for shown in ("step 440/440", "messages over HTTP", "messages over SMTP", "ExpertDead@", str(demo.folder)):
        assert shown in demo.printed
    assert "WRONG" not in demo.printed


def test_every_metric_stands_in_the_recording_at_every_step(samples: Samples) -> None:
    assert samples.rows.keys() >= METRICS
    for metric in METRICS:
        assert {math.ceil(tick / STEP) for tick in samples.rows[metric]} == set(range(1, 441)), metric


@pytest.mark.parametrize(("rule", "steps"), FAULTS)
def test_fires_at_the_step_that_the_naive_evaluator_computes(
    rule: str, steps: range, expected: list[Incident], seen: list[tuple[str, int, int | None]]
) -> None:
    wanted = [one.opened for one in expected if one.rule == rule and one.opened in steps]
    assert len(wanted) == 1
    assert [opened for name, opened, _ in seen if name == rule and opened in steps] == wanted


@pytest.mark.parametrize("rule", AT_ONCE)
def test_fires_within_two_steps_of_the_first_value_past_its_bound(
    rule: str, samples: Samples, seen: list[tuple[str, int, int | None]]
) -> None:
    metric, past = AT_ONCE[rule]
    ticks = (
        tick
        for series in samples.metrics[metric].values()
        for tick, value in zip(series.ticks, series.values, strict=True)
        if past(value)
    )
    first = math.ceil(min(ticks) / STEP)
    assert first <= min(opened for name, opened, _ in seen if name == rule) <= first + 2


def test_nothing_opens_that_was_not_listed_beforehand(seen: list[tuple[str, int, int | None]]) -> None:
    listed = (*FAULTS, *FOLLOW_UPS)
    others = [(rule, step) for rule, step, _ in seen if not any(rule == name and step in span for name, span in listed)]
    assert others == []
    assert min(opened for _, opened, _ in seen) > 150


def test_incidents_end_when_the_naive_evaluator_says_and_none_is_left(
    expected: list[Incident], seen: list[tuple[str, int, int | None]]
) -> None:
    assert seen == [(one.rule, one.opened, one.ended) for one in expected]
    assert all(ended is not None for _, _, ended in seen)


def test_the_same_series_fire_at_the_same_steps(demo: Finished, expected: list[Incident]) -> None:
    rows = query(demo.recording, "SELECT rule, step, labels FROM transitions WHERE reason = 'fired'")
    fired = {(rule, step, tuple(map(tuple, json.loads(labels)))) for rule, step, labels in rows}
    assert fired == {(one.rule, step, labels) for one in expected for step, labels in one.fired}


def replay(folder: Path, *arguments: str) -> list[dict[str, Any]]:
    done = subprocess.run(
        [sys.executable, "-m", "healthwatch.cli", "replay", str(folder), "--output", "json", *arguments],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode in (0, 1), done.stderr
    return json.loads(done.stdout)["transitions"]


@pytest.fixture(scope="module")
def samples_alone(demo: Finished, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the recording without anything that healthwatch said."""
    copy = tmp_path_factory.mktemp("replay") / demo.recording.name
    shutil.copy(demo.recording, copy)
    with closing(sqlite3.connect(copy)) as connection, connection:
        for table in ("changes", "incidents", "captures", "outbox"):
            connection.execute(f"DELETE FROM {table}")
    return copy


def rules(*packs: str) -> list[str]:
    return [argument for pack in packs for argument in ("--rules", f"builtin:{pack}")]


@pytest.fixture(scope="module")
def replayed(samples_alone: Path) -> list[dict[str, Any]]:
    return replay(samples_alone, *rules("loss", "gradients", "moe", "attention"))


def test_replay_prints_exactly_the_transitions_of_the_live_run(demo: Finished, replayed: list[dict[str, Any]]) -> None:
    columns = "rule, labels, before, after, reason, micro_step, step"
    live = query(demo.recording, f"SELECT {columns} FROM transitions ORDER BY id")
    again = [
        (
            *(one["rule"], dict(one["labels"]), one["before"], one["after"], one["reason"], one["micro_step"]),
            one["now"]["step"],
        )
        for one in replayed
    ]
    assert again == [(rule, dict(json.loads(labels)), *rest) for rule, labels, *rest in live]


def test_another_parameter_changes_the_replay(samples_alone: Path, replayed: list[dict[str, Any]]) -> None:
    changed = replay(samples_alone, *rules("gradients"), "--param", "GradNormSpike.ratio=50")
    usual = [one for one in replayed if one["rule"] in ("GradNormNonFinite", "GradNormSpike", "ParamGradNormSpike")]
    assert changed == [one for one in usual if one["rule"] != "GradNormSpike"]
    assert changed != usual


def test_profiles_hold_the_next_three_steps(manifests: dict[Path, dict[str, Any]], expected: list[Incident]) -> None:
    assert len(manifests) <= 8
    for folder, manifest in manifests.items():
        asked = manifest["incident"]["asked"]["step"]
        assert manifest["steps"] == {"first": asked + 1, "last": asked + 3, "recorded": 3}
        names = [event["name"] for event in json.loads((folder / manifest["trace"]).read_text("utf-8"))]
        # 2 layers in 2 micro-batches choose their experts, and 20 parameters are updated
        assert sum("TopK" in name for name in names) == 3 * 4
        assert sum("Adam" in name for name in names) == 3 * 20


def test_every_incident_has_a_profile_or_joined_one(
    manifests: dict[Path, dict[str, Any]], seen: list[tuple[str, int, int | None]]
) -> None:
    held = {}
    for manifest in manifests.values():
        asked = manifest["incident"]["asked"]["step"]
        for one in (manifest["incident"], *manifest["joined"]):
            held[one["rule"], one["opened"]] = asked
    assert held.keys() == {(rule, opened) for rule, opened, _ in seen}
    assert all(asked <= opened <= asked + 3 for (_, opened), asked in held.items())


def test_manifests_say_why(demo: Finished, manifests: dict[Path, dict[str, Any]]) -> None:
    digest = hashlib.sha256((demo.folder / "train.yaml").read_bytes()).hexdigest()
    for manifest in manifests.values():
        assert manifest["config_digest"] == digest
        incident = manifest["incident"]
        assert incident["rule"] in {rule for rule, _ in FAULTS}
        assert incident["firing"]
        assert incident["value"] is not None


@pytest.fixture(scope="module")
def received(demo: Finished) -> dict[str, list[dict[str, str]]]:
    return json.loads((demo.folder / "received.json").read_text("utf-8"))


def test_both_receivers_got_what_was_expected(
    demo: Finished, expected: list[Incident], received: dict[str, list[dict[str, str]]]
) -> None:
    wanted = [(one.step, one.reason, list(one.rules)) for one in messages(expected, times(demo.recording))]
    rows = [json.loads(notice) for (notice,) in query(demo.recording, "SELECT notice FROM outbox ORDER BY rowid")]
    told = [(row["now"]["step"], row["reason"], sorted(id_.split("@")[0] for id_ in row["incidents"])) for row in rows]
    assert told == wanted
    titles = [row["title"] for row in rows]
    assert [message["title"] for message in received["http"]] == titles
    assert [message["title"] for message in received["mail"]] == titles
    assert query(demo.recording, "SELECT count(*) FROM outbox WHERE state != 'accepted'") == [(0,)]


@pytest.mark.parametrize(
    ("rule", "places"),
    [
        ("ParamGradNormSpike", ('param="decoder.layers.', "step 151, micro-step 2")),
        ("ExpertSaturation", ('layer="0"', 'expert="3"', "step 211, micro-step 2")),
        ("ExpertDead", ('layer="0"', 'expert="')),
        ("AttentionLogitHigh", ('layer="0"', 'head="')),
        ("LossNonFinite", ("local_loss", "step 380, micro-step 2")),
    ],
)
def test_a_message_names_the_place(
    rule: str, places: tuple[str, ...], received: dict[str, list[dict[str, str]]]
) -> None:
    for wire in ("http", "mail"):
        bodies = [message["body"] for message in received[wire] if rule in message["body"]]
        assert any(all(place in body for place in places) for body in bodies), (wire, bodies)


def test_no_url_of_a_receiver_is_written_anywhere(demo: Finished) -> None:
    texts = [demo.printed.encode(), *(path.read_bytes() for path in demo.folder.rglob("*") if path.is_file())]
    assert not [text for text in texts if b"json://127" in text or b"mailto://127" in text]


def test_without_faults_the_same_rules_raise_nothing(healthy: Finished) -> None:
    assert healthy.returncode == 0, healthy.printed
    assert query(healthy.recording, "SELECT max(step), count(*) FROM frames") == [(440, 440)]
    assert query(healthy.recording, "SELECT rule, opened FROM incidents") == []
    assert query(healthy.recording, "SELECT count(*) FROM transitions WHERE after = 'firing'") == [(0,)]
    assert query(healthy.recording, "SELECT count(*) FROM outbox") == [(0,)]
