"""What healthwatch costs, and what it does about it."""

from __future__ import annotations

import threading
import time
from itertools import pairwise

import numpy as np
import pytest

from healthwatch.monitors.pace import WIDEST, Pace
from healthwatch.recording import Run
from healthwatch.session import load
from healthwatch.session.guard import Guard
from healthwatch.session.meter import PARTS, SETTLING, WINDOW, Budget


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
    """An integration whose norms cost what it is told, and whose counters cost little."""

    profiler = None
    printed = ()
    logit_names = {}  # noqa: RUF012
    loss_scale = None

    def __init__(self, norms: float, always: float = 0.0) -> None:
        self.pace = Pace(("norms", "counters"))
        self.costs = {"norms": norms, "counters": 0.0001}
        self.always = always  # seconds that no interval spares

    def attach(self, model, optimizer, config, table):
        self.series = {name: table.register(name, [{}]) for name in ("micro_norm", "tokens_per_expert")}
        return [self]

    def register(self, table):
        pass

    def micro_step(self, loss, grads, accumulated=None):
        pass

    def step(self, loss, grads=None):
        time.sleep(self.always)
        for name, cost in self.costs.items():
            if self.pace.due(name):
                with self.pace.timed(name):
                    time.sleep(cost)

    def flush(self, frame):
        for name, metric in (("norms", "micro_norm"), ("counters", "tokens_per_expert")):
            if self.pace.due(name):
                frame.add(self.series[metric], [1.0])

    def detach(self):
        pass


def remarks(caplog) -> list[str]:
    return [text for text in (each.getMessage() for each in caplog.records) if "of the step time" in text]


FIRST = SETTLING + 2 * WINDOW  # steps before anything can be done


def test_over_budget_the_dearest_monitor_measures_more_rarely_and_says_so(write_config, tmp_path, caplog):
    dear = Dear(norms=0.004)
    with load(write_config(budget="1%"), lambda model, guard: dear).attach(object()) as hw:
        for _ in range(FIRST + WINDOW):
            hw.step(1.0)
    first = remarks(caplog)[0]
    assert first.startswith("healthwatch takes ")
    assert "(monitor " in first, "the dearest part comes first"
    assert first.endswith("over the budget of 1%: norms are measured at every other step from now on")
    with Run.open(tmp_path / "output") as run:
        frames = list(run.frames())
    metrics = [{column.series.metric for column in frame.columns} for frame in frames]
    assert all("micro_norm" in found for found in metrics[:FIRST])
    assert sum("micro_norm" in found for found in metrics[FIRST:]) == WINDOW // 2
    (column,) = [column for column in frames[5].columns if column.series.metric == "healthwatch_seconds"]
    assert [dict(labels)["part"] for labels in column.series.labels] == list(PARTS)
    assert column.values[PARTS.index("monitor")] >= 0.004
    assert column.values[PARTS.index("engine")] > 0
    assert column.values[PARTS.index("record")] > 0


def taken(**parts: float) -> list[float]:
    return [parts.get(part, 0.0) for part in PARTS]


class Loop:
    """Steps of 0.1 s as the budget sees them; `costs` is what a monitor's measuring takes of each part."""

    def __init__(self, share: float, costs: dict[str, dict[str, float]], always: dict[str, float]) -> None:
        self.pace, self.budget = Pace(costs), Budget(share)
        self.costs, self.always = costs, always
        self.said: list[str] = []
        self.intervals: list[dict[str, int]] = []

    def run(self, steps: int) -> None:
        for _ in range(steps):
            parts = dict(self.always)
            for monitor, costs in self.costs.items():
                if self.pace.due(monitor):
                    self.pace.seconds[monitor] += costs["monitor"]
                    for part, cost in costs.items():
                        parts[part] = parts.get(part, 0.0) + cost
            said = self.budget.account(taken(**parts), 0.1, self.pace)
            self.said += [] if said is None else [said]
            self.intervals.append(dict(self.pace.intervals))


def test_within_budget_nothing_changes():
    loop = Loop(0.02, {"norms": {"monitor": 0.001}}, {"engine": 0.0005})
    loop.run(10 * WINDOW)
    assert (loop.said, loop.pace.intervals) == ([], {"norms": 1})


def test_all_parts_count_and_it_stops_where_the_budget_is_kept():
    """1 % monitors and 3 % rules over what they bring: either alone, and half of both, is too much."""
    loop = Loop(0.015, {"norms": {"monitor": 0.001, "engine": 0.003}}, {})
    loop.run(40 * WINDOW)
    assert loop.pace.intervals == {"norms": 4}
    assert len(loop.said) == 2
    assert loop.said[0].startswith("healthwatch takes 4.0% of the step time (engine 3.0%, monitor 1.0%,")


def test_a_burst_changes_nothing():
    loop = Loop(0.02, {"norms": {"monitor": 0.001}}, {})
    loop.run(SETTLING + WINDOW)
    loop.always = {"actions": 0.05}  # a capture and its messages
    loop.run(WINDOW)
    loop.always = {}
    loop.run(10 * WINDOW)
    assert (loop.said, loop.pace.intervals) == ([], {"norms": 1})


def test_where_rules_over_other_series_are_dear_measuring_more_rarely_is_undone_and_never_tried_again():
    loop = Loop(0.02, {"norms": {"monitor": 0.0001}, "counters": {"monitor": 0.00005}}, {"engine": 0.004})
    loop.run(60 * WINDOW)
    assert loop.pace.intervals == {"norms": 1, "counters": 1}
    changes = sum(before != after for before, after in pairwise(loop.intervals))
    assert changes == 3  # norms rarer; norms back and counters rarer; counters back
    assert len(loop.said) == 3
    assert "no monitor is left to measure more rarely" in loop.said[-1]
    assert "most of it are rules" in loop.said[-1]


def test_intervals_never_go_to_and_fro_whatever_the_noise():
    random = np.random.default_rng(1)
    for seed_cost in (0.0005, 0.002, 0.004):
        loop = Loop(0.02, {"norms": {"monitor": seed_cost}, "logits": {"monitor": 0.001}}, {})
        for _ in range(80):
            loop.always = {"engine": float(random.exponential(0.002))}
            loop.run(WINDOW)
        for monitor in loop.costs:
            steps = [intervals[monitor] for intervals in loop.intervals]
            falls = sum(after < before for before, after in pairwise(steps))
            assert falls <= 1, "given back once at most"
            assert all(after in (before, 2 * before, before // 2) for before, after in pairwise(steps))


def test_an_interval_has_an_end_and_that_is_told_once():
    loop = Loop(0.0001, {"norms": {"monitor": 0.09}}, {})
    loop.run(100 * WINDOW)
    steps = [interval["norms"] for interval in loop.intervals]
    assert sorted(set(steps)) == [1, 2, 4, 8, 16, 32, WIDEST]
    assert steps == sorted(steps)
    assert len(loop.said) == 7
    assert "no monitor is left" in loop.said[-1]


def test_a_loop_that_is_over_budget_without_its_monitors_is_told(write_config, caplog):
    dear = Dear(norms=0.0, always=0.003)
    with load(write_config(budget="0.1%"), lambda model, guard: dear).attach(object()) as hw:
        for _ in range(FIRST + 4 * WINDOW):
            hw.step(1.0)
    assert sum("no monitor is left to measure more rarely" in text for text in remarks(caplog)) == 1
    assert set(dear.pace.intervals.values()) <= {1, 2}


@pytest.mark.parametrize("interval", [1, 2, 4])
def test_due_at_one_of_so_many_steps(interval: int):
    pace = Pace(("norms",))
    pace.intervals["norms"] = interval
    due = []
    for _ in range(8):
        due.append(pace.due("norms"))
        pace.next_step()
    assert due == [step % interval == 0 for step in range(8)]
