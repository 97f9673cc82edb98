"""From a config to everything behind the frame, ready for the first step."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from healthwatch.actions.captures.requests import Requests
from healthwatch.actions.captures.window import static_window
from healthwatch.actions.noprofiler import NoProfiler, remark
from healthwatch.actions.profile import Captures
from healthwatch.alerting.policy import policy_of
from healthwatch.alerting.ports import Profiler
from healthwatch.config import Config
from healthwatch.engine import Engine
from healthwatch.recording import Recording, describe
from healthwatch.rulefile import Rule
from healthwatch.session.between import Between
from healthwatch.session.failing import FailingReceivers
from healthwatch.session.guard import Guard
from healthwatch.session.pipeline import Pipeline, delivery_of
from healthwatch.session.reload import Reloader
from healthwatch.stream import SeriesTable

RANKS = ("RANK_ID", "RANK")  # of the environment, where no integration knows it


def open_recording(config: Config, table: SeriesTable, rank: int | None = None) -> Recording:
    """The run file of this process; the series of earlier attempts come first in the table, as in a replay.

    `rank` is the integration's; the environment is asked where it knows none.

    Raises:
        Invalid: the run can't be recorded.
    """
    if rank is None:
        rank = int(next((os.environ[name] for name in RANKS if os.environ.get(name, "").isdecimal()), "0"))
    meta = {**describe(config), "rank": rank}
    recording = Recording.create(config.output / f"rank_{rank}.sqlite", meta, config.record_max_size)
    recording.restore(table)
    return recording


def open_pipeline(
    config: Config,
    rules: Sequence[Rule],
    table: SeriesTable,
    recording: Recording,
    profiler: Profiler | None,
    guard: Guard,
) -> Pipeline:
    """Everything behind the frame, ready for the first step; an earlier attempt of the run is taken in."""
    engine = Engine(rules, table, policy_of(config, rules), config.no_data_after)
    rank = recording.meta["rank"]
    about = {"run": config.run, "rank": rank, "attempt": recording.attempt, "config_digest": config.digest}
    recording.declare(table.series)
    pipeline = Pipeline(
        config=config,
        rank=rank,
        rules={rule.name: rule for rule in rules},
        engine=engine,
        recording=recording,
        captures=_captures(config, profiler, about, guard),
        delivery=delivery_of(config),
        guard=guard,
        failing=FailingReceivers(config.run, rank, tuple(config.receivers)),
        reloader=Reloader(config, guard),
    )
    pipeline.open_actions()
    with guard("resume"):
        pipeline.resume(table)
    with guard("rules"):
        engine.prepare()
    Between.begin(pipeline)
    return pipeline


def _captures(config: Config, profiler: Profiler | None, meta: Mapping[str, Any], guard: Guard) -> Captures | None:
    if config.dry_run:
        return None
    if profiler is None and remark(config):
        guard.say(remark(config), logging.WARNING)
    rank = int(meta["rank"])
    return Captures(
        profiler or NoProfiler(),
        settings=config.capture if profiler is not None else replace(config.capture, reference_at=None),
        folder=config.output / "captures" / f"rank_{rank}",
        meta=meta,
        section=config.profiler,
        tell=guard.tell,
        window=static_window(config.profiler, rank) if profiler is not None and profiler.takes_window else None,
        requests=Requests(config.output, rank, since=time.time()),
    )
