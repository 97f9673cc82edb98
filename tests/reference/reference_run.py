"""A small training without a framework, watched with a config of the reference."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from healthwatch.config import Config, load_config
from healthwatch.diagnostics import Diagnostic
from healthwatch.monitors.pace import Pace
from healthwatch.monitors.train_state import MicroBatch, StepEnd, TrainState
from healthwatch.session import Session, load
from healthwatch.stream import Frame, SeriesTable

EXAMPLES = Path(__file__).resolve().parents[2] / "examples" / "reference"

NAMES = (
    "embedding.weight",
    "decoder.layers.0.self_attention.linear_qkv.weight",
    "decoder.layers.0.input_layernorm.weight",
    "decoder.layers.1.mlp.linear_fc1.weight",
    "decoder.layers.10.mlp.linear_fc1.weight",
)
PARAMS = [{"param": name} for name in NAMES]
MICRO_STEPS = 2


def config_of(folder: Path, sections: Mapping[str, Any]) -> tuple[Config | None, list[Diagnostic]]:
    path = folder / "train.yaml"
    path.write_text(yaml.safe_dump({**sections, "healthwatch": {"output": str(folder / "output")}}))
    return load_config(path)


def sound(folder: Path, sections: Mapping[str, Any]) -> Config:
    config, found = config_of(folder, sections)
    assert config is not None, found
    assert [each for each in found if each.severity == "error"] == []
    return config


def refusals(folder: Path, sections: Mapping[str, Any]) -> list[str]:
    """Where the errors stand, by the last key of their source line."""
    config, found = config_of(folder, sections)
    wrong = [each for each in found if each.severity == "error"]
    assert (config is None) == bool(wrong)
    return [each.message for each in wrong]


def session_of(folder: Path, sections: Mapping[str, Any]) -> Session:
    """Watched by nothing but the monitors: rules of its own make a run slow."""
    path = folder / "train.yaml"
    path.write_text(
        yaml.safe_dump({**sections, "healthwatch": {"output": str(folder / "output"), "rules": ["builtin:loss"]}})
    )
    return load(path, lambda model, guard: Framework())


class Framework:
    """Gradients of five parameters whose norms are known: 3 in the first micro-batch, 4 in each other one."""

    profiler = None
    printed: frozenset[str] = frozenset()
    pace = Pace(())
    logit_names: Mapping[Any, str] = {}

    def attach(self, model: Any, optimizer: Any, config: Config, table: SeriesTable) -> list[TrainState]:
        self.monitor = TrainState(NAMES)
        self.monitor.register(table)
        self.micro = 0
        return [self.monitor]

    def micro_step(self, loss: float, grads: Any, accumulated: Any = None) -> None:
        squares = np.full(len(NAMES), 9.0 if self.micro == 0 else 16.0)
        total = np.full(len(NAMES), 9.0 + 16.0 * self.micro)
        self.micro += 1
        self.monitor.micro_step(MicroBatch(squares, total, loss))

    def step(self, loss: float, grads: Any = None) -> None:
        self.micro = 0
        self.monitor.step(StepEnd(loss=loss, device_loss=loss))

    def detach(self) -> None:
        pass


def train(folder: Path, sections: Mapping[str, Any], steps: int = 1) -> list[Frame]:
    """Two micro-batches a step, of losses 1 and 2; returns what was recorded."""
    from healthwatch.recording import Run

    with session_of(folder, sections).attach(object()) as hw:
        for _ in range(steps):
            for micro_step in range(MICRO_STEPS):
                hw.micro_step(float(micro_step + 1))
            hw.step(1.5)
    with Run.open(folder / "output") as run:
        return list(run.frames())


def printed(records: Iterable[logging.LogRecord]) -> list[str]:
    """The monitors' lines among what the logger healthwatch said."""
    mine = [record for record in records if record.name == "healthwatch" and record.levelno == logging.INFO]
    return [line for line in (record.getMessage() for record in mine) if line.startswith(("{", "step:["))]


def samples(frame: Frame, metric: str) -> dict[tuple[int | None, str], float]:
    """By micro-step (from 0) and the values of the labels."""
    return {
        (column.micro_step, ",".join(value for _, value in labels)): value
        for column in frame.columns
        if column.series.metric == metric
        for labels, value in zip(column.series.labels, column.values.tolist(), strict=True)
    }
