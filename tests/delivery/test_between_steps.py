"""What happens between steps: a training that stands still or ends, people who ask for silence, receivers that fail."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
import time

import pytest
from click.testing import CliRunner
from killable import write_config
from receiving import wait_for

import healthwatch
from healthwatch.cli import group
from healthwatch.recording import Run
from healthwatch.session import between
from healthwatch.session.control import Silences

pytestmark = pytest.mark.usefixtures("quick")

HIGH, LOW = "CRITICAL: LossHigh, run killed", "RESOLVED: LossHigh (critical), run killed"
TOGETHER = {"group_by": ["run"]}


def cli(*arguments):
    result = CliRunner().invoke(group, [str(each) for each in arguments])
    assert result.exit_code in (0, 1), result.output
    return result


def step(session, loss=2.0, norm=1.0, times=1):
    for _ in range(times):
        session.log(norm=norm)
        session.step(loss)


def test_no_step_waits_for_a_folder_that_hangs(tmp_path, monkeypatch):
    """The watchman reads what people ask for; the file system under it may be a network's."""
    session = healthwatch.load(write_config(tmp_path, ["json://127.0.0.1:1/"])).attach()
    hangs, goes_on, looked = threading.Event(), threading.Event(), threading.Event()

    def look(_):
        hangs.set()
        goes_on.wait(30)
        looked.set()
        return ()

    monkeypatch.setattr(Silences, "look", look)
    assert hangs.wait(10)
    step(session, times=5)
    assert not looked.is_set(), "a step waited until the folder answered"
    goes_on.set()
    session.close()


def test_a_training_that_hangs_still_tells_what_joined(inbox, tmp_path, monkeypatch):
    monkeypatch.setattr(between, "STANDSTILL", 1.0)
    session = healthwatch.load(write_config(tmp_path, [inbox.url], **TOGETHER)).attach()
    step(session, times=5)
    step(session, loss=9.0)
    step(session, loss=9.0, norm=9.0)  # joins, and would wait for five steps
    wait_for(lambda: len(inbox.titles) == 2)
    assert "more has joined" in inbox.taken[1]["message"]
    assert "`NormJump` (warning)" in inbox.taken[1]["message"]
    session.close()
    with Run.open(tmp_path / "output") as run:
        assert all(each.accepted for each in run.outbox())
    assert len(inbox.titles) == 2


def test_a_training_that_ends_still_tells_what_joined(inbox, tmp_path):
    session = healthwatch.load(write_config(tmp_path, [inbox.url], **TOGETHER)).attach()
    step(session, times=5)
    step(session, loss=9.0)
    step(session, loss=9.0, norm=9.0)
    session.close()
    assert len(inbox.titles) == 2
    assert "`NormJump` (warning)" in inbox.taken[1]["message"]


def test_a_silence_reaches_the_running_training(inbox, tmp_path):
    session = healthwatch.load(write_config(tmp_path, [inbox.url])).attach()
    output = tmp_path / "output"
    step(session, times=5)
    name = cli("silence", "add", output, "alertname=LossHigh", "--for", "1h", "--comment", "known").stdout.strip()
    assert name in cli("silence", "list", output).output
    wait_for(lambda: session._pipeline.engine._silences)
    step(session, loss=9.0, times=3)
    with Run.open(output) as run:
        [incident] = run.incidents()
    assert (incident.active, incident.silenced) == (True, True)
    assert inbox.titles == []
    assert "[silenced]" in cli("incidents", output).output
    assert "no receiver was told" in cli("incidents", output).output
    cli("silence", "expire", output, name)
    assert cli("silence", "list", output).output == "there is no silence\n"
    assert name in cli("silence", "list", output, "--all").output

    def told():
        step(session, loss=9.0)
        return inbox.titles

    wait_for(told)
    assert inbox.titles == [HIGH]
    step(session, times=1)
    session.close()
    assert inbox.titles == [HIGH, LOW]


def test_a_silence_up_to_a_step_also_holds_for_a_run_to_come(inbox, tmp_path):
    (tmp_path / "output").mkdir()
    cli("silence", "add", tmp_path / "output", "severity=critical", "--until-step", 8)
    session = healthwatch.load(write_config(tmp_path, [inbox.url])).attach()
    step(session, times=5)
    step(session, loss=9.0, times=3)
    assert inbox.titles == []
    step(session, loss=9.0)
    session.close()
    assert inbox.titles == [HIGH]


def test_the_other_receivers_hear_once_of_one_that_fails(inbox, second_inbox, tmp_path):
    second_inbox.script = [(500, {})] * 8
    config = write_config(
        tmp_path,
        [],
        escalation={"critical": [{"notify": "broken"}, {"notify": "well"}]},
        receivers={"broken": {"urls": [second_inbox.url]}, "well": {"urls": [inbox.url]}},
    )
    session = healthwatch.load(config).attach()
    step(session, times=5)

    def told(count):
        step(session, loss=9.0)
        time.sleep(0.02)
        return len(inbox.titles) >= count

    wait_for(lambda: told(2))
    assert inbox.titles[1] == "WARNING: ReceiverFailing, run killed"
    assert "broken (json://127.0.0.1" in inbox.taken[1]["message"]
    assert "HTTP 500" in inbox.taken[1]["message"]
    wait_for(lambda: told(3))
    session.close()
    assert inbox.titles == [
        HIGH,
        "WARNING: ReceiverFailing, run killed",
        "RESOLVED: ReceiverFailing (warning), run killed",
    ]
    assert second_inbox.titles == [HIGH], "nobody is told of his own failure"
    with Run.open(tmp_path / "output") as run:
        assert {incident.rule for incident in run.incidents()} == {"LossHigh", "ReceiverFailing"}


def test_two_receivers_that_fail_tell_nobody_of_each_other(inbox, second_inbox, tmp_path):
    inbox.script = second_inbox.script = [(500, {})] * 1000
    config = write_config(
        tmp_path,
        [],
        escalation={"critical": [{"notify": "a"}, {"notify": "b"}]},
        receivers={"a": {"urls": [second_inbox.url]}, "b": {"urls": [inbox.url]}},
    )
    session = healthwatch.load(config).attach()
    step(session, times=5)
    for _ in range(100):
        step(session, loss=9.0)
        time.sleep(0.01)
    session.close()
    with Run.open(tmp_path / "output") as run:
        notices = [each.notice.title for each in run.outbox()]
    assert len([title for title in notices if "ReceiverFailing" in title]) <= 1


def test_retry_after_is_obeyed(inbox, tmp_path):
    inbox.script = [(429, {"Retry-After": "2"})]
    session = healthwatch.load(write_config(tmp_path, [inbox.url])).attach()
    step(session, times=5)
    step(session, loss=9.0)
    wait_for(lambda: inbox.messages)
    begin = time.monotonic()
    wait_for(lambda: inbox.titles)
    assert time.monotonic() - begin > 1.5, "the test's own pace would come again after 0.3 s"
    session.close()


def test_deliver_sends_what_a_run_left_and_the_run_does_not_send_it_again(inbox, tmp_path):
    config = write_config(tmp_path, ["json://127.0.0.1:1/"])
    session = healthwatch.load(config).attach()
    step(session, times=5)
    step(session, loss=9.0)
    session.close()
    write_config(tmp_path, [inbox.url])
    sent = cli("deliver", tmp_path, "--config", config)
    assert (sent.exit_code, sent.output) == (0, "1 delivered, 0 left\n")
    assert inbox.titles == [HIGH]
    told = cli("incidents", tmp_path / "output").output
    assert "oncall: opened at step 6, accepted 20" in told, "by its only URL, and so wholly"
    assert cli("deliver", tmp_path / "output", "--config", config).output == "0 delivered, 0 left\n"
    session = healthwatch.load(config).attach(first_step=7)
    step(session)
    session.close()
    assert inbox.titles == [HIGH, LOW]
    told = cli("incidents", tmp_path / "output").output
    assert told.count(", accepted ") == 2
    assert "not accepted" not in told


def test_deliver_leaves_a_living_run_its_time(inbox, tmp_path):
    config = write_config(tmp_path, ["json://127.0.0.1:1/"])
    session = healthwatch.load(config).attach()
    step(session, times=5)
    step(session, loss=9.0)
    write_config(tmp_path, [inbox.url])
    assert "1 are left to the run" in cli("deliver", tmp_path, "--config", config).output
    assert inbox.titles == []
    sent = cli("deliver", tmp_path, "--config", config, "--patience", "0")
    assert sent.output == "1 delivered, 0 left\n"

    def known():
        step(session, loss=9.0)
        return not any(lane.waiting for lane in session._pipeline.delivery.state())

    wait_for(known)  # the run has heard of it
    session.close()
    with Run.open(tmp_path / "output") as run:
        assert all(each.accepted for each in run.outbox())


def test_deliver_says_what_is_left(tmp_path):
    config = write_config(tmp_path, ["json://127.0.0.1:1/"])
    session = healthwatch.load(config).attach()
    step(session, times=5)
    step(session, loss=9.0)
    session.close()
    left = cli("deliver", tmp_path, "--config", config)
    assert left.exit_code == 1
    assert "0 delivered, 1 left" in left.output


def test_deliver_follows_runs_that_come_and_minds_no_file_that_it_cannot_read(inbox, tmp_path):
    """On a login node: two ranks of a cluster without a network, and a file that is only being made."""
    config = write_config(tmp_path, [inbox.url])
    shared = tmp_path / "shared"
    (shared / "new").mkdir(parents=True)
    (shared / "new" / "rank_0.sqlite").touch()
    command = [sys.executable, "-m", "healthwatch.cli", "deliver", shared, "--config", config, "--follow"]
    options = ["--every", "0.3", "--patience", "0"]
    with subprocess.Popen(
        [*map(str, command), *options], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as follower:
        for told, rank in enumerate(("a", "b")):
            (tmp_path / rank).mkdir()
            alone = write_config(tmp_path / rank, ["json://127.0.0.1:1/"], output=str(shared / rank))
            session = healthwatch.load(alone).attach()
            step(session, times=5)
            step(session, loss=9.0)
            wait_for(lambda count=told: len(inbox.taken) > count)  # while it goes on
            session.close()
        wait_for(lambda: all((shared / rank / "rank_0.delivered").exists() for rank in ("a", "b")))
        follower.send_signal(signal.SIGINT)
        said, problems = follower.communicate(timeout=300)
    assert inbox.titles == [HIGH, HIGH]
    assert said.splitlines()[-1] == "2 delivered, 0 left"
    assert problems.count("new/rank_0.sqlite is left out") == 1


def test_notify_test_says_what_came_back(inbox, second_inbox, tmp_path):
    second_inbox.script = [(403, {})]
    config = write_config(tmp_path, [inbox.url, second_inbox.url])
    tried = cli("notify-test", "oncall", "--config", config)
    assert tried.exit_code == 1
    first, second = tried.output.splitlines()
    assert "/***: accepted" in first
    assert "HTTP 403 Forbidden" in second
    assert "梯度范数 🚨" in inbox.taken[0]["message"]
    assert CliRunner().invoke(group, ["notify-test", "oncal", "--config", str(config)]).exception is not None
