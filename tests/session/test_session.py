from __future__ import annotations

import contextlib
import logging
import os
import time
from pathlib import Path

import numpy as np
import pytest
import yaml

import healthwatch
from healthwatch.diagnostics import Invalid
from healthwatch.monitors.pace import Pace
from healthwatch.recording import Run


def read(path: Path | str) -> tuple[list, list]:
    with Run.open(path) as run:
        return list(run.frames()), run.transitions()


def samples(frame) -> dict[tuple, list]:
    return {(column.series.metric, column.micro_step): column.values.tolist() for column in frame.columns}


def test_a_plain_loop_is_watched(open_session, tmp_path, caplog):
    with caplog.at_level(logging.INFO, "healthwatch"), open_session() as hw:
        for step in range(1, 6):
            for part in (0.5, 1.5):
                hw.micro_step(part)
            hw.log(lr=np.float32(0.1), nothing=None)
            hw.log(1, scale=2)
            hw.log_values("norm", np.ones(2, np.float16), [{"param": "a"}, {"param": "b"}])
            hw.step(9.0 if step == 3 else 1.0)
    frames, transitions = read(tmp_path / "output")
    assert [frame.step for frame in frames] == [1, 2, 3, 4, 5]
    found = samples(frames[2])
    assert found.pop(("step_time", None))[0] > 0
    assert sum(found.pop(("healthwatch_seconds", None))) > 0
    assert found == {
        ("local_loss", 0): [0.5],
        ("local_loss", 1): [1.5],
        ("scale", 1): [2],
        ("loss", None): [9.0],
        ("attempt_step", None): [3],
        ("lr", None): [pytest.approx(0.1)],
        ("norm", None): [1.0, 1.0],
    }
    dtypes = {column.series.metric: column.values.dtype for column in frames[0].columns}
    assert (dtypes["norm"], dtypes["lr"], dtypes["loss"]) == (np.float16, np.float32, np.float64)
    assert [(found.rule, found.after.value, found.now.step) for found in transitions] == [
        ("LossHigh", "firing", 3),
        ("LossHigh", "inactive", 4),
    ]
    lines = [record.message for record in caplog.records if record.message.startswith("LossHigh")]
    assert [line.split(" (")[0] for line in lines] == ["LossHigh firing", "LossHigh resolved"]


def test_step_time_is_the_time_between_two_ends(open_session, tmp_path):
    with open_session() as hw:
        hw.step(1.0)
        time.sleep(0.05)
        hw.step(1.0)
    frames, _ = read(tmp_path / "output")
    assert 0.05 <= samples(frames[1])[("step_time", None)][0] < 5
    assert 0 < hw.longest_call <= hw.healthwatch_seconds


def test_every_problem_is_refused_at_once_and_before_step_1(write_config):
    path = write_config(rules="groups: [{name: g, rules: [{alert: A, expr: 'loss >'}]}]", unknwon=1)
    with pytest.raises(Invalid) as refused:
        healthwatch.load(path)
    files = {found.span.file for found in refused.value.diagnostics if found.span is not None}
    assert {Path(file).name for file in files} == {"rules.yaml", "train.yaml"}


def test_an_unwritable_folder_is_refused_before_step_1(open_session, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(Invalid, match="can't be recorded"):
        open_session(output=str(tmp_path / "file" / "below")).attach()
    with pytest.raises(Invalid, match="can't be recorded"):
        open_session(output=str(tmp_path / "file" / "below")).step(1.0)


def test_a_model_of_no_known_framework_is_refused(open_session):
    with pytest.raises(Invalid, match="no framework that is known"):
        open_session().attach(object())


def test_switched_off_it_does_nothing(tmp_path, monkeypatch):
    monkeypatch.setenv("HEALTHWATCH_DISABLED", "1")
    hw = healthwatch.load(tmp_path / "there is no such file.yaml").attach(object(), object())
    hw.micro_step(1.0)
    hw.log(loss=1.0)
    hw.step(1.0)
    hw.close()
    assert list(tmp_path.iterdir()) == []


def test_a_dry_run_records_and_sends_nothing(open_session, tmp_path, inbox, monkeypatch, caplog):
    monkeypatch.setenv("HEALTHWATCH_DRY_RUN", "1")
    ladder = {"critical": [{"notify": "oncall"}]}
    with (
        caplog.at_level(logging.INFO, "healthwatch"),
        open_session(escalation=ladder, receivers={"oncall": {"urls": [inbox.url]}}) as hw,
    ):
        hw.step(9.0)
    assert inbox.titles == []
    assert any("not sent to oncall: CRITICAL: LossHigh" in record.message for record in caplog.records)
    with Run.open(tmp_path / "output") as run:
        assert len(run.transitions()) == 1
        assert run.outbox() == []


def test_messages_travel_and_their_acceptance_is_recorded(open_session, tmp_path, inbox):
    ladder = {"critical": [{"notify": "oncall"}]}
    with open_session(escalation=ladder, receivers={"oncall": {"urls": [inbox.url]}}) as hw:
        for loss in (1.0, 9.0, 1.0):
            hw.step(loss)
    assert [title.split(":")[0] for title in inbox.titles] == ["CRITICAL", "RESOLVED"]
    with Run.open(tmp_path / "output") as run:
        assert [(row.notice.reason, row.accepted is not None) for row in run.outbox()] == [
            ("opened", True),
            ("resolved", True),
        ]


def test_what_was_not_delivered_is_told_by_the_next_start(open_session, tmp_path, inbox):
    ladder = {"critical": [{"notify": "oncall"}]}
    with open_session(escalation=ladder, receivers={"oncall": {"urls": ["json://127.0.0.1:9/"]}}) as hw:
        hw.step(9.0)
    with Run.open(tmp_path / "output") as run:
        assert [row.accepted for row in run.outbox()] == [None]
    with open_session(escalation=ladder, receivers={"oncall": {"urls": [inbox.url]}}) as hw:
        hw.step(9.0, step=2)
    assert [title.split(":")[0] for title in inbox.titles] == ["CRITICAL"]
    with Run.open(tmp_path / "output") as run:
        assert [row.accepted is None for row in run.outbox()] == [False]


def test_a_run_that_starts_again_keeps_its_windows_and_its_alerts(open_session, tmp_path):
    with open_session() as hw:
        for step in range(1, 11):
            hw.log(norm=1.0)
            hw.step(9.0 if step >= 8 else 1.0)
    hw = open_session().attach(first_step=9)
    hw.log(norm=10.0)
    hw.step(9.0)
    hw.step(1.0)
    hw.close()
    frames, transitions = read(tmp_path / "output")
    assert [(frame.attempt, frame.step) for frame in frames][-3:] == [(1, 10), (2, 9), (2, 10)]
    second = [(found.rule, found.reason, found.now.step) for found in transitions if found.now.attempt == 2]
    assert second == [("NormJump", "fired", 9), ("LossHigh", "resolved", 10)] or second == [
        ("NormJump", "fired", 9),
        ("LossHigh", "resolved", 10),
        ("NormJump", "resolved", 10),
    ]


def test_a_step_that_comes_again_rewinds(open_session, tmp_path):
    with open_session() as hw:
        for step in range(1, 8):
            hw.log(norm=1.0)
            hw.step(1.0, step=step)
        hw.log(norm=30.0)
        hw.step(1.0)
        hw.log(norm=1.0)
        hw.step(1.0, step=5)
        hw.step(1.0)
    frames, transitions = read(tmp_path / "output")
    assert [frame.step for frame in frames] == [1, 2, 3, 4, 5, 6, 7, 8, 5, 6]
    assert [(found.rule, found.reason, found.now.step) for found in transitions][:2] == [
        ("NormJump", "fired", 8),
        ("NormJump", "resolved", 5),
    ]


def test_the_integration_is_bound_fed_and_let_go(write_config, tmp_path):
    calls = []

    class Weights:
        def register(self, table):
            self.series = table.register("weight", [{}])

        def flush(self, frame):
            frame.add(self.series, [2.0])

    class Framework:
        profiler = None
        printed = ()
        pace = Pace(())
        logit_names = {}  # noqa: RUF012

        def attach(self, model, optimizer, config, table):
            calls.append(("attach", model, optimizer, config.run))
            weights = Weights()
            weights.register(table)
            return [weights]

        def micro_step(self, loss, grads, accumulated=None):
            calls.append(("micro_step", loss, grads, accumulated))

        def step(self, loss, grads=None):
            calls.append(("step", loss, grads))

        def detach(self):
            calls.append(("detach",))

    from healthwatch.session import load

    with load(write_config(), lambda model, guard: Framework()).attach("model", "optimizer") as hw:
        hw.micro_step(1.0, ["g"], ["a"])
        hw.step(2.0, ["u"])
    assert calls == [
        ("attach", "model", "optimizer", "small"),
        ("micro_step", 1.0, ["g"], ["a"]),
        ("step", 2.0, ["u"]),
        ("detach",),
    ]
    frames, _ = read(tmp_path / "output")
    assert samples(frames[0])[("weight", None)] == [2.0]


def test_a_monitor_that_has_seen_more_micro_steps_than_the_loop_has_told_costs_no_step(open_session, tmp_path):
    class Twice:
        def register(self, table):
            self.series = table.register("weight", [{}])

        def flush(self, frame):
            for micro_step in (0, 1):
                frame.add(self.series, [2.0], micro_step)

    with open_session() as hw:
        twice = Twice()
        twice.register(hw._table)
        hw._monitors = [twice]
        for _ in range(3):
            hw.micro_step(1.0)
            hw.step(1.0)
        assert hw.guard.failures == {"micro_steps": 3}
    frames, _ = read(tmp_path / "output")
    assert [(frame.step, frame.micro_steps) for frame in frames] == [(1, 2), (2, 2), (3, 2)]
    assert samples(frames[0])["weight", 1] == [2.0]


def test_closing_ends_everything(open_session, tmp_path):
    hw = open_session()
    hw.step(1.0)
    hw.close()
    hw.close()
    hw.step(2.0)
    hw.log(a=1)
    frames, _ = read(tmp_path / "output")
    assert len(frames) == 1


def test_how_the_run_ended_is_recorded(open_session, tmp_path):
    with pytest.raises(ZeroDivisionError), open_session() as hw:
        hw.step(1 / 0)
    with open_session() as hw:
        hw.step(1.0)
    with Run.open(tmp_path / "output") as run:
        assert [attempt.reason for attempt in run.attempts()] == ["end"]
    with contextlib.suppress(ZeroDivisionError), open_session() as hw:
        hw.step(1.0)
        hw.step(1 / 0)
    with Run.open(tmp_path / "output") as run:
        assert [attempt.reason for attempt in run.attempts()] == ["end", "ZeroDivisionError"]


def test_a_forked_worker_is_not_the_training(open_session, tmp_path):
    hw = open_session()
    hw.step(1.0)
    child = os.fork()
    if child == 0:
        hw.step(2.0)
        hw.close()
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    hw.step(3.0)
    hw.close()
    frames, _ = read(tmp_path / "output")
    assert [samples(frame)[("loss", None)] for frame in frames] == [[1.0], [3.0]]


def test_what_the_run_was_watched_with_is_in_the_file(open_session, tmp_path):
    with open_session(receivers={"oncall": {"urls": ["json://user:hunter2@127.0.0.1:9/"]}}) as hw:
        hw.step(1.0)
    with Run.open(tmp_path / "output") as run:
        meta = run.meta
    assert (meta["run"], meta["rank"], meta["config_digest"]) == ("small", 0, hw.config.digest)
    assert "alert: LossHigh" in meta["rules"][0]["text"]
    assert b"hunter2" not in (tmp_path / "output" / "rank_0.sqlite").read_bytes()


def test_a_loop_that_counts_from_0_is_told_so_once_and_watched_all_the_same(open_session, tmp_path, caplog):
    hw = open_session()
    for step in range(5):
        hw.step(1.0, step=step)
    said = [record.getMessage() for record in caplog.records if "count from 1" in record.getMessage()]
    assert len(said) == 1
    assert "step=i + 1" in said[0]
    hw.close()
    frames, _ = read(tmp_path / "output")
    assert [frame.step for frame in frames] == [1, 1, 2, 3, 4]


def test_a_first_step_of_0_is_refused(open_session):
    with pytest.raises(ValueError, match="count from 1"):
        open_session().attach(first_step=0)


def test_a_run_that_begins_again_says_where_it_stood(open_session, caplog):
    for _ in range(4):
        with open_session() as hw:
            hw.step(1.0)
            hw.step(1.0)
    caplog.clear()
    with caplog.at_level(logging.INFO, "healthwatch"), open_session().attach(first_step=3) as hw:
        hw.step(1.0)
    said = [record.getMessage() for record in caplog.records]
    assert [each for each in said if "run small, attempt 5 after step 2: 2 rules, recorded in " in each]
    assert not [each for each in said if "goes back" in each]
    caplog.clear()
    with caplog.at_level(logging.INFO, "healthwatch"):
        for first_step in (2, 1):
            with open_session().attach(first_step=first_step) as hw:
                hw.step(1.0)
    mend = "a training that goes on from a checkpoint says where: attach(first_step=...)"
    back = [(record.levelname, record.getMessage()) for record in caplog.records if "goes back" in record.getMessage()]
    assert back == [
        ("INFO", "the run goes back from step 3 to step 2"),
        ("WARNING", f"the run goes back from step 2 to step 1; {mend}"),
    ]


def test_a_metric_under_nearly_the_name_that_a_rule_reads_is_told_once(open_session, tmp_path, caplog):
    with open_session() as hw:
        for _ in range(3):
            hw.log(nrom=1.0, queue_depth=3)
            hw.step(1.0)
    said = [each.getMessage() for each in caplog.records if "no rule reads" in each.getMessage()]
    assert said == ['no rule reads "nrom"; did you mean "norm"?']
    caplog.clear()
    with open_session(output=str(tmp_path / "other")) as hw:
        hw.log(nrom=1.0, norm=3)
        hw.step(1.0)
    assert not [each for each in caplog.records if "no rule reads" in each.getMessage()]


def test_every_kind_of_failure_is_told_and_none_fills_the_log(open_session, caplog):
    with open_session() as hw:
        for step in range(20):
            hw.log(a="x", b=object())
            hw.log_values("c", [1.0], [{}, {"n": str(step)}])
            hw.step(1.0)
    failures = [each.getMessage() for each in caplog.records if "failed" in each.getMessage()]
    assert len(failures) == len(set(failures)) == 3
    assert hw.guard.failures == {"log": 40, "log_values": 20}


@pytest.mark.parametrize(("metrics", "count"), [(["pressure"], "1 remark"), (["pressure", "humidity"], "2 remarks")])
def test_remarks_on_a_config_are_counted(write_config, caplog, metrics, count):
    known = {"labels": {"severity": "warning"}, "annotations": {"action": "look", "summary": "high"}}
    rules = [{"alert": f"High{each}", "expr": f"{each} > 5", **known} for each in metrics]
    path = write_config(yaml.safe_dump({"groups": [{"name": "g", "rules": rules}]}))
    with caplog.at_level(logging.INFO, "healthwatch"), healthwatch.load(path) as hw:
        hw.step(1.0)
    said = [record.getMessage() for record in caplog.records]
    assert sum(f"{count} on {path}:\n" in each for each in said) == 1
    assert sum(f"attempt 1: {len(metrics)} rule{'s' * (len(metrics) > 1)}, recorded in " in each for each in said) == 1
