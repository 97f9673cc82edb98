"""Whatever breaks inside, the loop goes on; and whatever kills the loop, the finished steps are there."""

from __future__ import annotations

import logging
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from healthwatch.monitors.pace import Pace
from healthwatch.recording import Run
from healthwatch.session import Guard, load


def told(caplog, part: str) -> list[str]:
    return [record.message for record in caplog.records if part in record.message and "told once" in record.message]


def test_a_rule_that_raises_is_told_once_and_the_others_go_on(open_session, tmp_path, caplog):
    with open_session() as hw:
        hw.step(1.0)
        broken = next(watch for watch in hw._pipeline.engine.watches if watch.rule.name == "NormJump")

        class Query:
            def due(self, frame):
                raise ZeroDivisionError("no such thing")

        broken.query = Query()
        for _ in range(4):
            hw.step(9.0)
    assert len(told(caplog, "NormJump")) == 1
    assert "ZeroDivisionError" in told(caplog, "NormJump")[0]
    assert hw.guard.failures["NormJump: failed"] == 4
    with Run.open(tmp_path / "output") as run:
        assert [(found.rule, found.now.step) for found in run.transitions()] == [("LossHigh", 2)]


class Framework:
    """An integration of which some parts are broken."""

    profiler = None
    printed = ()
    pace = Pace(())
    logit_names = {}  # noqa: RUF012

    def __init__(self, *broken: str) -> None:
        self.broken = broken

    def _run(self, part: str) -> None:
        if part in self.broken:
            raise RuntimeError(f"broken {part}")

    def attach(self, model, optimizer, config, table):
        self.series = table.register("weight", [{}])
        return [self, Weight(self.series)]

    def micro_step(self, loss, grads, accumulated=None):
        self._run("micro_step")

    def step(self, loss, grads=None):
        self._run("step")

    def register(self, table):
        pass

    def flush(self, frame):
        self._run("flush")

    def detach(self):
        self._run("detach")


class Weight:
    def __init__(self, series) -> None:
        self.series = series

    def register(self, table):
        pass

    def flush(self, frame):
        frame.add(self.series, [1.0])


@pytest.mark.parametrize(
    ("broken", "part"),
    [("micro_step", "micro_step"), ("step", "integration"), ("flush", "Framework"), ("detach", "integration")],
)
def test_a_monitor_or_integration_that_raises_costs_only_its_own_samples(write_config, tmp_path, caplog, broken, part):
    with load(write_config(), lambda model, guard: Framework(broken)).attach(object()) as hw:
        for step in range(1, 4):
            hw.micro_step(1.0)
            hw.log(loss=float(step))
            hw.step()
    assert len(told(caplog, part)) == 1
    assert hw.guard.failures[part] == (1 if broken == "detach" else 3)
    with Run.open(tmp_path / "output") as run:
        metrics = [{column.series.metric for column in frame.columns} for frame in run.frames()]
    known = {"weight", "loss", "step_time", "attempt_step", "healthwatch_seconds"}
    assert metrics == [known | {"run_failed"}, known, known]


class Broken(logging.Handler):
    def emit(self, record):
        raise OSError("the log server is gone")


def test_an_action_that_raises_is_counted_and_goes_no_further(open_session, tmp_path, caplog):
    caplog.set_level(logging.INFO, "healthwatch")
    logger, handler = logging.getLogger("healthwatch"), Broken()
    logger.addHandler(handler)
    try:
        with open_session() as hw:
            for loss in (1.0, 9.0, 1.0):
                hw.step(loss)
    finally:
        logger.removeHandler(handler)
    assert hw.guard.failures["log"] == 2
    with Run.open(tmp_path / "output") as run:
        assert len(run.transitions()) == 2


def test_a_receiver_that_raises_is_told_once_and_its_messages_stay(open_session, tmp_path, caplog):
    from apprise import decorators

    @decorators.notify(on="raises")
    def raises(*_, **__):
        raise RuntimeError("hunter2")

    ladder = {"critical": [{"notify": "oncall"}]}
    with open_session(escalation=ladder, receivers={"oncall": {"urls": ["raises://user:hunter2@there"]}}) as hw:
        for loss in (1.0, 9.0, 1.0, 9.0):
            hw.step(loss)
            time.sleep(0.05)
    with Run.open(tmp_path / "output") as run:
        assert [row.accepted for row in run.outbox()] == [None] * 3
    assert "oncall" in caplog.text
    assert "hunter2" not in caplog.text


def test_values_that_are_no_numbers_cost_their_own_sample_alone(open_session, tmp_path, caplog):
    with open_session() as hw:
        for _ in range(2):
            hw.log(lr="fast", scale=1.0)
            hw.log_values("norm", [1.0, 2.0], [{"param": "a"}])
            hw.step([1.0, 2.0])
    assert len(told(caplog, "lr")) == 1
    with Run.open(tmp_path / "output") as run:
        metrics = [{column.series.metric for column in frame.columns} for frame in run.frames()]
    known = {"scale", "step_time", "attempt_step", "healthwatch_seconds"}
    assert metrics == [known | {"run_failed"}, known]


@pytest.mark.parametrize(
    "call", [lambda hw: hw.log("norm", 2.0, param="a"), lambda hw: hw.log({"norm": 2.0}), lambda hw: hw.log_values(2.0)]
)
def test_a_wrong_call_is_told_once_and_the_loop_goes_on(open_session, tmp_path, caplog, call):
    with open_session() as hw:
        for _ in range(2):
            call(hw)
            hw.log(scale=1.0)
            hw.step(1.0)
    assert len(told(caplog, "TypeError")) == 1
    with Run.open(tmp_path / "output") as run:
        assert all("scale" in {column.series.metric for column in frame.columns} for frame in run.frames())


@pytest.mark.parametrize("step", ["3", 2.5, float("nan"), 10**400, -1, 1j, np.array([3, 4]), [3]])
def test_a_step_number_that_is_none_counts_on(open_session, tmp_path, caplog, step):
    with open_session() as hw:
        for number in (None, step, step, None):
            hw.step(9.0, step=number)
    assert len(told(caplog, "step number failed")) == 1
    assert any(record.message.startswith("LossHigh firing") for record in caplog.records)
    with Run.open(tmp_path / "output") as run:
        assert [frame.step for frame in run.frames()] == [1, 2, 3, 4]


def test_integers_of_numpy_are_numbers_of_steps_and_micro_steps(open_session, tmp_path):
    with open_session() as hw:
        for number in np.arange(5, 8):
            hw.log(np.int32(1), norm=1.0)
            hw.log_values("share", [0.5], [{"expert": "0"}], np.uint8(0))
            hw.step(1.0, step=number)
    assert not hw.guard.failures
    with Run.open(tmp_path / "output") as run:
        frames = list(run.frames())
    assert [frame.step for frame in frames] == [5, 6, 7]
    assert {column.micro_step for frame in frames for column in frame.columns} == {0, 1, None}


@pytest.mark.parametrize(
    "call",
    [
        lambda hw: hw.log_values(None, [1.0], [{}]),
        lambda hw: hw.log_values("norm", [1.0], {"param": "a"}),
        lambda hw: hw.log_values("norm", [1.0, 2.0], [{"param": "a"}]),
        lambda hw: hw.log_values(1.5, [1.0], [{}]),
        lambda hw: hw.log(**{"\ud800": 1.0}),
        lambda hw: hw.log_values("norm", [1.0], [{"param": "\ud800"}]),
        lambda hw: hw.log_values("norm", [1.0], [{"\ud800": "a"}]),
        lambda hw: hw.log_values("norm", [1.0], [{}], "0"),
        lambda hw: hw.log_values("norm", [1.0], [{}], 10**30),
        lambda hw: hw.log(float("inf"), norm=1.0),
    ],
)
def test_what_can_not_be_recorded_costs_itself_and_no_step(open_session, tmp_path, caplog, call):
    with open_session() as hw:
        for _ in range(3):
            call(hw)
            hw.step(9.0)
    assert set(hw.guard.failures) <= {"log", "log_values"}
    assert not told(caplog, "no longer recorded")
    with Run.open(tmp_path / "output") as run:
        assert [frame.step for frame in run.frames()] == [1, 2, 3]


def test_a_full_disk_stops_the_recording_and_alerts_go_on(open_session, tmp_path, caplog):
    with open_session() as hw:
        hw.step(1.0)
        connection = hw._pipeline.recording._connection
        connection.execute(f"PRAGMA max_page_count = {connection.execute('PRAGMA page_count').fetchone()[0]}")
        for _ in range(200):
            hw.step(1.0)
        hw.step(9.0)
    assert len(told(caplog, "no longer recorded: database or disk is full")) == 1
    assert any(record.message.startswith("LossHigh firing") for record in caplog.records)


def test_at_the_end_every_problem_is_counted(open_session, caplog):
    with open_session() as hw:
        for _ in range(3):
            hw.log(lr="fast")
            hw.step(1.0)
    assert "problems of this run: log (3 times)" in caplog.text


class PanicException(BaseException):
    """As pyo3 raises it: no Exception."""


@pytest.mark.parametrize("error", [ValueError("x"), PanicException("rust"), AssertionError(), MemoryError()])
def test_the_guard_lets_nothing_through(caplog, error):
    guard = Guard()
    for _ in range(3):
        with guard("part"):
            raise error
    assert guard.failures == {"part": 3}
    assert len(told(caplog, "part failed")) == 1


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit])
def test_the_guard_does_not_keep_the_user_from_stopping(error):
    with pytest.raises(error), Guard()("part"):
        raise error


@pytest.mark.parametrize("text", ["json://user:secret@host", "x"])
def test_the_guard_quotes_no_error_of_a_receiver(caplog, text):
    with Guard()("notify"):
        raise ValueError(text)
    assert text not in caplog.records[0].message
    assert "ValueError" in caplog.records[0].message


LOOP = """
import sys, healthwatch
with healthwatch.load(sys.argv[1]) as hw:
    for step in range(1, int(sys.argv[2]) + 1):
        hw.log_values("norm", [1.0] * 500, [{"param": str(number)} for number in range(500)])
        hw.step(9.0 if step == 3 else 1.0)
        print(step, flush=True)
"""


def start_loop(path: Path, steps: int) -> subprocess.Popen:
    return subprocess.Popen([sys.executable, "-c", LOOP, str(path), str(steps)], stdout=subprocess.PIPE, text=True)


@pytest.mark.parametrize("kill_at", [5, 150])
def test_sigkill_keeps_every_finished_step(write_config, tmp_path, kill_at):
    loop = start_loop(write_config(), 10**6)
    finished = 0
    for line in loop.stdout:
        finished = int(line)
        if finished >= kill_at:
            loop.send_signal(signal.SIGKILL)
            break
    finished = max([finished, *(int(line) for line in loop.stdout.read().split("\n")[:-1])])
    assert loop.wait() == -signal.SIGKILL
    loop.stdout.close()
    with Run.open(tmp_path / "output") as run:
        steps = [frame.step for frame in run.frames()]
        assert steps[:finished] == list(range(1, finished + 1))
        assert len(steps) <= finished + 1
        assert [found.now.step for found in run.transitions()] == [3, 4]
        assert run.attempts()[0].ended is None
    again = start_loop(tmp_path / "train.yaml", 2)
    again.communicate(timeout=300)
    with Run.open(tmp_path / "output") as run:
        assert [(frame.attempt, frame.step) for frame in run.frames()][len(steps) :] == [(2, 1), (2, 2)]


@pytest.mark.long
def test_a_black_hole_receiver_holds_up_neither_the_loop_nor_the_exit(write_config, tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as hole:  # its backlog accepts, nobody ever answers
        url = f"json://127.0.0.1:{hole.getsockname()[1]}/"
        path = write_config(escalation={"critical": [{"notify": "oncall"}]}, receivers={"oncall": {"urls": [url]}})
        began = time.monotonic()
        loop = start_loop(path, 50)
        output, _ = loop.communicate(timeout=300)
        assert time.monotonic() - began < 30
    assert loop.returncode == 0
    assert output.split()[-1] == "50"
    with Run.open(tmp_path / "output") as run:
        assert [row.accepted for row in run.outbox()] == [None, None]


def test_a_loop_that_closes_nothing_is_closed_at_exit(write_config, tmp_path, inbox):
    path = write_config(escalation={"critical": [{"notify": "oncall"}]}, receivers={"oncall": {"urls": [inbox.url]}})
    script = "import sys, healthwatch\nhw = healthwatch.load(sys.argv[1])\nhw.step(9.0)\n"
    subprocess.run([sys.executable, "-c", script, str(path)], check=True, timeout=300)
    with Run.open(tmp_path / "output") as run:
        assert run.attempts()[0].reason == "end"
        assert [row.accepted is not None for row in run.outbox()] == [True]
    assert len(inbox.titles) == 1
