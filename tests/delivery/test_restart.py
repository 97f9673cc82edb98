"""A run that is started again goes on where it was: exactly, at once, and without telling anybody twice."""

from __future__ import annotations

import sqlite3
import time

import numpy as np
import pytest
from killable import loss_at, norm_at, write_config
from receiving import wait_for

import healthwatch
from healthwatch.alerting.model import Acceptance
from healthwatch.recording import Recording, Run, rows_of
from healthwatch.recording.lock import Lock


def run(config, first, last, *, end=True):
    """Steps `first` to `last`; without an end everything is left as SIGKILL would leave it, the lock aside."""
    session = healthwatch.load(config).attach(first_step=first)
    for step in range(first, last + 1):
        session.log(norm=norm_at(step))
        session.step(loss_at(step))
    if end:
        session.close()
    return session


def vanish(session):
    session._pipeline.watchman.close()
    session._pipeline.recording._lock.release()
    session._closed = True


def step_until_recorded(session, output):
    """A receiver has a message before its answer is here: go on until the file says that one was accepted."""

    def recorded():
        session.log(norm=1.0)
        session.step(9.0)
        with Run.open(output) as run:
            return any(run.acceptances().values())

    wait_for(recorded)
    return session._pipeline.last_step


@pytest.mark.usefixtures("quick")
def test_the_state_comes_back_exactly(inbox, tmp_path):
    config = write_config(tmp_path, [inbox.url])
    for last in range(7, 27, 3):  # pending, firing, between, firing in another rule
        session = run(config, last - 2 if last > 7 else 1, last, end=False)
        before = rows_of(session._pipeline.engine)
        vanish(session)
        again = healthwatch.load(config).attach(first_step=last + 1)
        assert rows_of(again._pipeline.engine) == before
        vanish(again)


@pytest.mark.usefixtures("quick")
def test_an_alert_that_fires_for_ever_is_known_after_a_restart(inbox, tmp_path):
    """It began long before what is read again of the samples."""
    config = write_config(tmp_path, [inbox.url])
    session = healthwatch.load(config).attach()
    for step in range(1, 2300):
        session.log(norm=1.0)
        session.step(9.0 if step >= 10 else 2.0)
    last = step_until_recorded(session, tmp_path / "output")
    assert inbox.titles == ["CRITICAL: LossHigh, run killed"]
    vanish(session)
    session = healthwatch.load(config).attach(first_step=last + 1)
    session.log(norm=1.0)
    session.step(9.0)
    session.step(2.0)
    session.close()
    assert inbox.titles == ["CRITICAL: LossHigh, run killed", "RESOLVED: LossHigh (critical), run killed"]
    with Run.open(tmp_path / "output") as recorded:
        [incident] = recorded.incidents()
    assert (incident.since.step, incident.opened.attempt, incident.ended.attempt) == (10, 1, 2)


@pytest.mark.usefixtures("quick")
def test_only_the_url_that_did_not_take_it_is_told_again(inbox, second_inbox, tmp_path):
    second_inbox.script = [(500, {})] * 100
    config = write_config(tmp_path, [inbox.url, second_inbox.url])
    session = run(config, 1, 12, end=False)
    last = step_until_recorded(session, tmp_path / "output")
    wait_for(lambda: second_inbox.messages)
    vanish(session)
    second_inbox.script = []
    session = healthwatch.load(config).attach(first_step=last + 1)
    session.step(2.0)
    wait_for(lambda: "CRITICAL: LossHigh, run killed" in second_inbox.titles)
    session.close()
    assert inbox.titles.count("CRITICAL: LossHigh, run killed") == 1
    with Run.open(tmp_path / "output") as recorded:
        assert all(each.accepted for each in recorded.outbox())
        assert {target for taken in recorded.acceptances().values() for target in taken} == {1, 2}


@pytest.mark.usefixtures("quick")
def test_whoever_was_told_of_a_rule_that_is_gone_is_told_its_end(inbox, tmp_path):
    config = write_config(tmp_path, [inbox.url])
    run(config, 1, 10)
    rules = (tmp_path / "rules.yaml").read_text()
    (tmp_path / "rules.yaml").write_text(rules.replace("alert: LossHigh", "alert: LossVeryHigh"))
    run(config, 11, 12)
    assert inbox.titles[0] == "CRITICAL: LossHigh, run killed"
    assert "STOPPED REPORTING: LossHigh (critical), run killed" in inbox.titles


def test_two_processes_in_one_file_are_refused(tmp_path, subprocess_holding):
    with subprocess_holding(tmp_path / "rank_0.lock") as pid, pytest.raises(healthwatch.diagnostics.Invalid) as refused:
        Recording.create(tmp_path / "rank_0.sqlite", {})
    assert f"process {pid}" in str(refused.value)
    recording = Recording.create(tmp_path / "rank_0.sqlite", {})
    with pytest.raises(healthwatch.diagnostics.Invalid, match="this process"):
        Recording.create(tmp_path / "rank_0.sqlite", {})
    recording.close()
    lock = Lock(tmp_path / "rank_0.lock")
    assert lock.take() is None
    lock.release()


@pytest.mark.usefixtures("quick")
@pytest.mark.long
def test_many_series_are_read_again_within_seconds(inbox, tmp_path):
    """20,000 series, 2,000 steps, every one of them judged already: windows are filled, nothing is judged again."""
    config = write_config(tmp_path, [inbox.url])
    labels = [{"param": f"decoder.layers.{layer}.w{number}"} for layer in range(80) for number in range(256)]
    values = np.random.default_rng(1).lognormal(size=len(labels)).astype(np.float32)
    session = healthwatch.load(config).attach()
    session.log_values("norm", values, labels)
    session.step(2.0)
    session.close()
    with sqlite3.connect(tmp_path / "output" / "rank_0.sqlite") as file:
        for step in range(2, 2001):
            file.execute(
                "INSERT INTO frames SELECT ?, attempt, ?, time + ?, micro_steps FROM frames WHERE id = 1",
                (step, step, step),
            )
            file.execute(
                "INSERT INTO samples SELECT ?, ? * 1000000, micro_step, series, dtype, data"
                " FROM samples WHERE frame = 1",
                (step, step),
            )
    file.close()
    begin = time.perf_counter()
    session = healthwatch.load(config).attach(first_step=2001)
    took = time.perf_counter() - begin
    assert session._pipeline.last_step == 2000
    session.log_values("norm", values * 20, labels)
    session.step(2.0)
    session.close()
    print(f"{took:.1f} s")
    assert took < 60, "generous: a busy machine"
    with Run.open(tmp_path / "output") as recorded:
        [jump] = [incident for incident in recorded.incidents() if incident.rule == "NormJump"]
    assert jump.joined == len(labels), "the windows were there"


def test_what_is_delivered_elsewhere_is_accepted_by_the_next_attempt(tmp_path):
    recording = Recording.create(tmp_path / "rank_0.sqlite", {})
    recording.delivered.add(Acceptance("n", 1, 5.0, whole=True))
    assert recording.pending() == []
    recording.close()
    with Run.open(tmp_path) as recorded:
        assert recorded.acceptances() == {"n": {1: 5.0}}
