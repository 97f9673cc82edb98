"""Two trainings by the real trainer, with everything that can go wrong planted in them."""

from __future__ import annotations

import json
import logging
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import mindspore
import numpy as np
import tiny
import yaml
from mindformers.pynative.callback.callback import TrainerCallback
from mindspore import Tensor
from mindspore.graph.api import _no_grad
from training_outcome import (
    BROKEN,
    CALM,
    COLLAPSE,
    DENSE_STEPS,
    DIVERGE,
    EXPERTS,
    LOGITS,
    MOE_STEPS,
    NAN,
    TOP_K,
    Training,
)

from healthwatch.integrations.mindformers import HealthWatch
from healthwatch.recording import Run
from healthwatch.session import Session

LADDERS = {
    "critical": [{"log": "error"}, {"profile": {"steps": 2}}],
    "warning": [{"log": "warning"}],
    "last": [{"stop": True}],
}
STOPPING = {
    "groups": [
        {
            "name": "end",
            "rules": [{"alert": "LastStep", "expr": f"attempt_step == {DENSE_STEPS}", "escalation": "last"}],
        }
    ]
}
CAPTURE = {"max_captures": 9, "cooldown": 5, "min_free_disk": "1MiB"}


class Faults(TrainerCallback):
    """Does something at the beginning of given steps."""

    def __init__(self, plan: dict[int, Callable[[Any, Any], None]]) -> None:
        self.plan = plan
        self.steps_done = 0

    def on_step_begin(self, args: Any, state: Any, **kwargs: Any) -> None:
        act = self.plan.get(state.global_step + 1)
        if act is not None:
            act(kwargs["model"][0], kwargs["optimizer"])

    def on_step_end(self, args: Any, state: Any, **kwargs: Any) -> None:
        self.steps_done = state.global_step


class Beside(TrainerCallback):
    """What healthwatch has measured itself of step 3, read just before it is fed; and whether the end is told."""

    def __init__(self) -> None:
        self.measured: list[dict[str, float]] = []  # by micro-batch: sums of squares, 0 where none was computed
        self.ended_at = 0
        self.watch: Any = None

    def on_step_end(self, args: Any, state: Any, **kwargs: Any) -> None:
        if state.global_step == 3:
            integration = self.watch._integration
            names = integration._train_state.parameters
            for batch in integration._micro_batches:
                self.measured.append(dict(zip(names, batch.squares.values.tolist(), strict=True)))

    def on_train_end(self, args: Any, state: Any, **kwargs: Any) -> None:
        self.ended_at = state.global_step


def parameter(model: Any, name: str) -> Any:
    return next(each for each in model.get_parameters() if each.name.endswith(name))


def scale(parameter: Any, factor: float) -> None:
    with _no_grad():
        parameter.copy_(parameter * factor)


def write_config(folder: Path, rules: dict[str, Any] | None = None, **sections: Any) -> Path:
    ours: dict[str, Any] = {
        "run": folder.name,
        "output": str(folder / "output"),
        "escalation": LADDERS,
        "capture": CAPTURE,
        "rules": [f"builtin:{pack}" for pack in ("loss", "gradients", "attention", "moe")],
    }
    if rules is not None:
        (folder / "rules.yaml").write_text(yaml.safe_dump(rules))
        ours["rules"].append("rules.yaml")
    path = folder / "train.yaml"
    path.write_text(yaml.safe_dump({**sections, "healthwatch": ours}))
    return path


def outcome(folder: Path, session: Session, steps_done: int) -> Training:
    captures = analysed(folder / "output")
    log = "".join(path.read_text() for path in sorted((folder.parent / "log").rglob("info.log*")))
    with Run.open(folder / "output") as run:
        return Training(session, list(run.frames()), run.transitions(), captures, log, steps_done, folder)


def healthwatch(*arguments: str) -> str:
    from click.testing import CliRunner

    from healthwatch.cli import group

    done = CliRunner().invoke(group, arguments)
    assert done.exit_code == 0, done.output
    return done.stdout


def analysed(output: Path) -> list[dict[str, Any]]:
    """The captures that `healthwatch captures` lists, once none is at work: an analysis may outlive its training."""
    deadline = time.monotonic() + 240
    while True:
        rows: list[dict[str, Any]] = json.loads(healthwatch("captures", str(output), "--output", "json"))
        if not any(row["state"] == "finishing" for row in rows):
            return rows
        assert time.monotonic() < deadline, rows
        time.sleep(0.5)


def clear_log(scratch: Path) -> None:
    for path in (scratch / "log").rglob("*.log"):
        path.write_text("")


@contextmanager
def without_root_handlers() -> Iterator[None]:
    """As in a training of its own: pytest's handlers are those of somebody who has set up logging himself."""
    root = logging.getLogger()
    kept, root.handlers = root.handlers, []
    try:
        yield
    finally:
        root.handlers = kept


def run_dense(scratch: Path) -> Training:
    """Through the constructor. The trainer prints its own norms and losses, and profiles steps 5 and 6 itself; one of
    our rules stops it.
    """
    clear_log(scratch)
    folder = scratch / "dense"
    folder.mkdir()
    config = tiny.base_cfg(
        steps=DENSE_STEPS + 20,  # a rule stops it before
        gbs=4,
        lbs=2,
        lr=5e-3,
        model=tiny.qwen3(),
        monitor={"train_state": {"local_norm": ["layers.0"], "local_loss": True, "device_norm": "embedding"}},
        profiler={
            "enable_profiling": True,
            "start_step": 5,
            "end_step": 6,
            "with_stack": False,
            "output_path": str(folder / "profile"),
        },
    )

    def grow(model: Any, _: Any) -> None:
        for name in ("layers.1.self_attention.q_layernorm.weight", "layers.1.self_attention.k_layernorm.weight"):
            scale(parameter(model, name), 8.0)

    def shrink(model: Any, _: Any) -> None:
        for name in ("layers.1.self_attention.q_layernorm.weight", "layers.1.self_attention.k_layernorm.weight"):
            scale(parameter(model, name), 1 / 8)

    def diverge(_: Any, optimizer: Any) -> None:
        optimizer.get_lr = lambda: Tensor(3.0, mindspore.float32)

    def poison(model: Any, _: Any) -> None:
        scale(parameter(model, "layers.0.mlp.linear_fc1.weight"), float("nan"))

    faults = Faults({LOGITS: grow, CALM: shrink, DIVERGE: diverge, NAN: poison})
    watch = HealthWatch(write_config(folder, STOPPING))
    beside = Beside()
    beside.watch = watch
    with without_root_handlers():
        tiny.trainer(config, callbacks=[faults, beside, watch], data=tiny.dataset(n=256)).train()
    found = outcome(folder, watch.session, faults.steps_done)
    found.measured, found.ended_at = beside.measured, beside.ended_at
    return found


def run_moe(scratch: Path) -> Training:
    """Through the YAML: `auto_register`, and our section inside the trainer's own configuration."""
    clear_log(scratch)
    folder = scratch / "moe"
    folder.mkdir()
    ours = yaml.safe_load(write_config(folder).read_text())["healthwatch"]
    config = tiny.base_cfg(
        steps=MOE_STEPS,
        gbs=4,
        lbs=2,
        lr=1e-3,
        model=tiny.deepseek3(experts=EXPERTS, topk=TOP_K, aux=0.01),
        monitor={"moe_monitor": {"save_tokens_per_expert_interval": 2}},
        callbacks=[
            {"type": "MaxLogitsMonitor"},
            {"type": "HealthWatch", "auto_register": "healthwatch_callback.HealthWatch"},
        ],
        healthwatch=ours,
    )
    routed = Routed()
    faults = Faults({COLLAPSE: collapse, BROKEN: lambda *_: break_healthwatch(trainer)})
    os.environ["REGISTER_PATH"] = register_path()
    trainer = tiny.trainer(config, callbacks=[faults, routed], data=tiny.dataset(n=256))
    with without_root_handlers():
        trainer.train()
    watch = the_watch(trainer)
    found = outcome(folder, watch.session, faults.steps_done)
    found.routed = routed.counts
    return found


def register_path() -> str:
    return healthwatch("mindformers-path").strip()


def the_watch(trainer: Any) -> Any:
    return next(each for each in trainer.callback_handler.callbacks if type(each).__name__ == "HealthWatch")


class Routed(TrainerCallback):
    """What the router of each MoE layer itself says of each pass."""

    def __init__(self) -> None:
        self.counts: list[np.ndarray] = []

    def on_train_begin(self, args: Any, state: Any, **kwargs: Any) -> None:
        for _, cell in kwargs["model"][0].cells_and_names():
            if hasattr(cell, "tokens_per_expert"):
                cell.router.register_forward_hook(self._note)

    def _note(self, _: Any, __: Any, result: Any) -> None:
        self.counts.append(result[2].asnumpy().copy())


def collapse(model: Any, _: Any) -> None:
    """Layer 2 sends every token to experts 0 and 1."""
    for name, cell in model.cells_and_names():
        if name.endswith("layers.2.mlp"):
            with _no_grad():
                cell.expert_bias.copy_(Tensor(np.array([100, 100, 0, 0], np.float32)))


def break_healthwatch(trainer: Any) -> None:
    def broken(*_: Any, **__: Any) -> None:
        raise RuntimeError("planted in healthwatch")

    integration = the_watch(trainer)._integration
    integration._square = broken
    integration._feed = broken
