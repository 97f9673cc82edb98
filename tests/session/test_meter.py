"""What healthwatch costs, and what it does about it."""

from __future__ import annotations

import threading
import time

import pytest

from healthwatch.monitors.pace import WIDEST, Pace
from healthwatch.recording import Run
from healthwatch.session import load
from healthwatch.session.guard import Guard
from healthwatch.session.meter import PARTS, WINDOW, Budget

STEPS = 3 * WINDOW


def test_a_block_inside_another_is_not_counted_twice():
    guard = Guard()
    with guard("step"):
        time.sleep(0.02)
        with guard("engine"):
            time.sleep(0.05)
            with guard("notify"):
                time.sleep(0.03)
        with guard("recording"):
            time.sleep(0.01)
    taken = dict(zip(PARTS, guard.meter.take(), strict=True))
    for part, least in {"monitor": 0.02, "engine": 0.05, "actions": 0.03, "record": 0.01}.items():
        assert taken[part] >= least
    assert taken["engine"] < 0.05 + 0.03 or taken["actions"] >= 0.03
    assert guard.meter.take() == [0.0] * len(PARTS)


def test_what_another_thread_does_is_not_the_loops_time():
    guard = Guard()

    def elsewhere() -> None:
        with guard("engine"):
            time.sleep(0.02)

    thread = threading.Thread(target=elsewhere)
    thread.start()
    thread.join()
    assert guard.meter.take() == [0.0] * len(PARTS)


class Dear:
    """An integration whose norms cost much, and whose counters cost little."""

    profiler = None
    printed = ()
    logit_names = {}  # noqa: RUF012
    loss_scale = None

    def __init__(self) -> None:
        self.pace = Pace(("norms", "counters"))

    def attach(self, model, optimizer, config, table):
        self.series = {name: table.register(name, [{}]) for name in ("micro_norm", "tokens_per_expert")}
        return [self]

    def register(self, table):
        pass

    def micro_step(self, loss, grads, accumulated=None):
        pass

    def step(self, loss, grads=None):
        for name, cost in (("norms", 0.002), ("counters", 0.0001)):
            if self.pace.due(name):
                with self.pace.timed(name):
                    time.sleep(cost)

    def flush(self, frame):
        for name, metric in (("norms", "micro_norm"), ("counters", "tokens_per_expert")):
            if self.pace.due(name):
                frame.add(self.series[metric], [1.0])

    def detach(self):
        pass


def test_over_budget_the_dearest_monitor_measures_more_rarely_and_says_so(write_config, tmp_path, caplog):
    dear = Dear()
    with load(write_config(budget="1%"), lambda model, guard: dear).attach(object()) as hw:
        for _ in range(STEPS):
            hw.step(1.0)
    said = [record.getMessage() for record in caplog.records if record.getMessage().startswith("monitors take")]
    assert "over the budget of 1%: norms are measured at every other step from now on" in said[0]
    assert dear.pace.intervals["norms"] > 1
    with Run.open(tmp_path / "output") as run:
        frames = list(run.frames())
    metrics = [{column.series.metric for column in frame.columns} for frame in frames]
    assert all("micro_norm" in found for found in metrics[:WINDOW])
    assert sum("micro_norm" in found for found in metrics[WINDOW : 2 * WINDOW]) == WINDOW // 2
    (column,) = [column for column in frames[5].columns if column.series.metric == "healthwatch_seconds"]
    assert [dict(labels)["part"] for labels in column.series.labels] == list(PARTS)
    assert column.values[PARTS.index("monitor")] >= 0.002
    assert column.values[PARTS.index("engine")] > 0
    assert column.values[PARTS.index("record")] > 0


def test_within_budget_nothing_changes():
    pace, budget = Pace(("norms",)), Budget(0.02)
    with pace.timed("norms"):
        pass
    assert [budget.account(0.001, 0.1, pace) for _ in range(STEPS)] == [None] * STEPS
    assert pace.intervals == {"norms": 1}


def test_an_interval_has_an_end():
    pace = Pace(("norms",))
    found = []
    for _ in range(20):
        with pace.timed("norms"):
            time.sleep(0.0001)
        found.append(pace.widen())
    intervals = [each[1] for each in found if each is not None]
    assert intervals == [2, 4, 8, 16, 32, WIDEST]


@pytest.mark.parametrize("interval", [1, 2, 4])
def test_due_at_one_of_so_many_steps(interval: int):
    pace = Pace(("norms",))
    pace.intervals["norms"] = interval
    due = []
    for _ in range(8):
        due.append(pace.due("norms"))
        pace.next_step()
    assert due == [step % interval == 0 for step in range(8)]
