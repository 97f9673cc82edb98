"""What monitoring costs a step: ours against the trainer's own monitor, and from expert counters to verdicts.

    python benchmarks/monitors.py [--runs 5]

The first table needs MindSpore; all but its last row need MindSpore Transformers and the shims that let it run
on a CPU, and are measured by the interpreter of `.venv-mindformers` where that exists. Every figure is the median of
interleaved runs; what counts are the ratios.
"""

from __future__ import annotations

import argparse
import logging
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import MappingProxyType, SimpleNamespace
from typing import Any

import numpy as np
import yaml

from healthwatch.config import Config
from healthwatch.engine import Engine
from healthwatch.monitors import Monitor
from healthwatch.monitors.layout import Stack
from healthwatch.monitors.moe import TokensPerExpert
from healthwatch.monitors.pace import Pace
from healthwatch.recording import Run
from healthwatch.rulefile import load_rules
from healthwatch.session import load
from healthwatch.session.meter import PARTS
from healthwatch.stream import Frame, SeriesTable

ROOT = Path(__file__).resolve().parents[1]
SHIMS = ROOT.parent / "shared" / "mindformers-cpu"
TRAINER = ROOT / ".venv-mindformers" / "bin" / "python"

PARAMETERS, SIDE, MICRO_BATCHES = 1000, 64, 2
LAYERS, EXPERTS, TOP_K = 60, 256, 8
WARM = 60  # steps, until windows are full
CPU_TARGET, DEVICE_TARGET, MOE_TARGET = 1 / 5, 1 / 3, 2.0  # ratios; milliseconds


class Parameter:
    """Of a parameter a monitor asks a name and a hook; the gradient comes from the benchmark."""

    requires_grad = True

    def __init__(self, name: str) -> None:
        self.name = name
        self.hooks: list[Callable[[Any], Any]] = []
        self.grad: Any = None

    def register_hook(self, hook: Callable[[Any], Any]) -> Any:
        self.hooks.append(hook)
        return SimpleNamespace(remove=lambda: self.hooks.remove(hook))


class Model:
    def __init__(self) -> None:
        self.parameters = [Parameter(f"layers.{place // 10}.weight{place % 10}") for place in range(PARAMETERS)]

    def trainable_params(self) -> list[Parameter]:
        return self.parameters

    def cells_and_names(self) -> list[Any]:
        return []

    def backward(self, gradients: list[Any]) -> None:
        """What the framework does at the end of a backward pass: call the hooks, keep the gradient."""
        for parameter, gradient in zip(self.parameters, gradients, strict=True):
            for hook in parameter.hooks:
                hook(gradient)
            parameter.grad = gradient


class Optimizer:
    """It updates nothing: measured is what is done before an update."""

    def __init__(self, parameters: list[Parameter]) -> None:
        self.parameters = parameters

    def __call__(self, gradients: list[Any]) -> None:
        pass


def gradients() -> list[Any]:
    from mindspore import Tensor

    random = np.random.default_rng(0)
    return [Tensor(random.standard_normal((SIDE, SIDE)).astype(np.float32)) for _ in range(PARAMETERS)]


def theirs() -> Callable[[list[Any]], None]:
    """A step under the trainer's TrainStateMonitor, all norms and losses on."""
    sys.path.insert(0, str(SHIMS))
    os.environ.setdefault("LOG_MF_PATH", str(ROOT / "output" / "bench-log"))
    import_module("cpu_compat")  # before mindformers
    from mindformers.pynative.tools.monitor import TrainStateMonitor
    from mindformers.tools.logger import get_logger

    get_logger().setLevel(logging.ERROR)  # measured is what is computed, not what is printed
    switches = SimpleNamespace(local_norm=True, local_loss=True, device_norm=True, device_loss=True)
    model = Model()
    monitor = TrainStateMonitor(SimpleNamespace(monitor=SimpleNamespace(train_state=switches)), model=model)

    def step(grads: list[Any]) -> None:
        monitor.reset()
        for micro_step in range(MICRO_BATCHES):
            model.backward(grads)
            monitor.record("local_loss", 1.5, {"micro_step": micro_step})
        monitor.record("device_loss", 1.5)
        monitor.record("device_norm")
        monitor.flush(1)

    return step


def ours(device: bool) -> Callable[[list[Any]], None]:
    """A step under healthwatch in that trainer: true norms by micro-batch and accumulated ones, to a closed frame."""
    from healthwatch.integrations.mindformers.integration import Ending, MindFormers
    from healthwatch.integrations.mindspore.reading import DeviceReader, HostReader
    from healthwatch.session import Guard

    integration = MindFormers(Guard(), DeviceReader() if device else HostReader())
    model = Model()
    table = SeriesTable()
    config = Config(run="", output=Path(), rules=(), digest="")
    monitors = integration.attach([model], None, config, table)

    def step(grads: list[Any]) -> None:
        for _ in range(MICRO_BATCHES):
            model.backward(grads)
            integration._recorded(None, "local_loss", 1.5)
        integration.ending = Ending(None, 1.5, 2.0, 1e-3)
        integration.step(1.5)
        frame = Frame(1)
        for monitor in monitors:
            monitor.flush(frame)
        frame.close()

    return step


def loop() -> Callable[[list[Any]], None]:
    """A step of a functional loop, which hands over the sums itself."""
    from healthwatch.integrations.mindspore import MindSpore
    from healthwatch.session import Guard

    integration, model, table = MindSpore(Guard()), Model(), SeriesTable()
    optimizer = Optimizer(model.parameters)
    monitors = integration.attach(model, optimizer, Config(run="", output=Path(), rules=(), digest=""), table)

    def step(grads: list[Any]) -> None:
        for micro_step in range(MICRO_BATCHES):
            integration.micro_step(1.5, grads, grads if micro_step == 0 else list(grads))
        optimizer(grads)
        integration.step(1.5)
        frame = Frame(1)
        for monitor in monitors:
            monitor.flush(frame)
        frame.close()

    return step


def interleaved(steps: dict[str, Callable[[], None]], runs: int) -> dict[str, float]:
    """Median milliseconds of each, run in turns after one turn that does not count."""
    taken: dict[str, list[float]] = {name: [] for name in steps}
    for turn in range(runs + 1):
        for name, step in steps.items():
            began = time.perf_counter()
            step()
            if turn:
                taken[name].append((time.perf_counter() - began) * 1000)
    return {name: float(np.median(each)) for name, each in taken.items()}


def host_copies(step: Callable[[], None]) -> int:
    """How often a tensor crosses to the host in one step."""
    from mindspore import Tensor

    crossings, real = [], Tensor.asnumpy

    def spy(self: Any) -> Any:
        crossings.append(self)
        return real(self)

    Tensor.asnumpy = spy
    try:
        step()
    finally:
        Tensor.asnumpy = real
    return len(crossings)


def compare_monitors(runs: int) -> None:
    import mindspore

    mindspore.set_context(mode=mindspore.PYNATIVE_MODE, device_target="CPU")
    with suppress(AttributeError):
        mindspore.runtime.launch_blocking()
    steps: dict[str, Callable[[list[Any]], None]] = {}
    has_trainer = find_spec("mindformers") is not None and SHIMS.is_dir()
    if has_trainer:
        steps["trainer's own monitor"] = theirs()
        steps["healthwatch in the trainer, CPU"] = ours(device=False)
        steps["healthwatch in the trainer, device path"] = ours(device=True)
    steps["healthwatch in a functional loop, CPU"] = loop()
    grads = gradients()
    taken = interleaved({name: lambda step=step: step(grads) for name, step in steps.items()}, runs)  # type: ignore[misc]
    reference = taken.get("trainer's own monitor")
    print(f"added per step, {PARAMETERS:,} parameters of {SIDE}x{SIDE}, {MICRO_BATCHES} micro-batches:")
    targets = {"healthwatch in the trainer, CPU": CPU_TARGET, "healthwatch in the trainer, device path": DEVICE_TARGET}
    for name, milliseconds in taken.items():
        ratio = f"{milliseconds / reference:6.3f}" if reference else "     -"
        target = f"  target {targets[name]:.3f}" if name in targets else ""
        print(f"  {name:<42}{milliseconds:9.1f} ms  ratio {ratio}{target}")
    if has_trainer:
        step = steps["healthwatch in the trainer, device path"]
        print(f"  host copies a step on the device path: {host_copies(lambda: step(grads))}  target 1")


class Routers:
    """The routers of a model whose counters grow for ever, watched as an integration watches them."""

    profiler: Any = None
    printed: tuple[str, ...] = ()
    logit_names: Mapping[Any, str] = MappingProxyType({})
    loss_scale: Any = None

    def __init__(self) -> None:
        self.pace = Pace(())
        self.counters = np.zeros((LAYERS, EXPERTS), np.float32)
        self.monitor = TokensPerExpert(
            [{"block": "decoder", "layer": str(each)} for each in range(LAYERS)], [TOP_K] * LAYERS
        )
        self._random = np.random.default_rng(0)

    def forward(self) -> None:
        self.counters += self._random.poisson(512, (LAYERS, EXPERTS))

    def attach(self, model: Any, optimizer: Any, config: Config, table: SeriesTable) -> Sequence[Monitor]:
        del model, optimizer, config
        self.monitor.register(table)
        return [self.monitor]

    def micro_step(self, loss: Any, grads: Any, accumulated: Any = None) -> None:
        del loss, grads, accumulated
        self.monitor.micro_step(Stack.of(self.counters))

    def step(self, loss: Any, grads: Any = None) -> None:
        """Nothing is known at the end of a step alone."""

    def detach(self) -> None:
        """There is no hook."""


def experts(runs: int) -> None:
    """From counters to verdicts under the shipped pack, monitor and engine alone and in a session."""
    steps = WARM + 20 * runs
    for micro_steps in (1, MICRO_BATCHES):
        print(f"experts, {LAYERS} layers x {EXPERTS}, {micro_steps} micro-steps, shipped pack:")
        alone = experts_alone(steps, micro_steps)
        session = experts_in_a_session(steps, micro_steps)
        rows = {**alone, "a step, from counters to verdicts": sum(alone.values())}
        rows |= {f"in a session: {part}": taken for part, taken in session.items()}
        rows["in a session: counters to verdicts"] = session["monitor"] + session["engine"]
        for name, milliseconds in rows.items():
            target = f"               target {MOE_TARGET:.1f}" if "to verdicts" in name and "step," in name else ""
            print(f"  {name:<42}{milliseconds:9.2f} ms{target}")


def experts_alone(steps: int, micro_steps: int) -> dict[str, float]:
    table, routers = SeriesTable(), Routers()
    routers.monitor.register(table)
    engine = Engine(load_rules(["builtin:moe"]).rules, table)
    parts: dict[str, list[float]] = {"monitor: counters to frame": [], "engine: frame to verdicts": []}
    for step in range(1, steps + 1):
        taken = 0.0
        for _ in range(micro_steps):
            routers.forward()
            began = time.perf_counter()
            routers.micro_step(None, None)
            taken += time.perf_counter() - began
        began = time.perf_counter()
        frame = Frame(step)
        routers.monitor.flush(frame)
        frame.close()
        closed = time.perf_counter()
        engine.step(frame)
        parts["monitor: counters to frame"].append((taken + closed - began) * 1000)
        parts["engine: frame to verdicts"].append((time.perf_counter() - closed) * 1000)
    return {name: float(np.median(taken[WARM:])) for name, taken in parts.items()}


def experts_in_a_session(steps: int, micro_steps: int) -> dict[str, float]:
    """What a training pays, as healthwatch measures itself: everything is recorded, too."""
    routers = Routers()
    with tempfile.TemporaryDirectory() as folder:
        config = Path(folder) / "train.yaml"
        ours = {"output": f"{folder}/output", "rules": ["builtin:moe"], "budget": "100%"}
        config.write_text(yaml.safe_dump({"healthwatch": ours}))
        with load(config, lambda _model, _guard: routers).attach(routers) as hw:
            for _ in range(steps):
                for _ in range(micro_steps):
                    routers.forward()
                    hw.micro_step()
                hw.step(2.0)
        with Run.open(Path(folder) / "output") as run:
            taken = [
                column.values * 1000
                for frame in run.frames()
                for column in frame.columns
                if column.series.metric == "healthwatch_seconds"
            ]
    return dict(zip(PARTS, np.median(taken[WARM:], axis=0).tolist(), strict=True))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--only", choices=["monitors", "experts"])
    chosen = parser.parse_args()
    if chosen.only != "experts":
        if find_spec("mindformers") is None and TRAINER.exists() and SHIMS.is_dir():
            subprocess.run([str(TRAINER), __file__, "--runs", str(chosen.runs), "--only", "monitors"], check=True)
        elif find_spec("mindspore") is not None:
            compare_monitors(chosen.runs)
        else:
            print("monitors: needs MindSpore")
    if chosen.only != "monitors":
        experts(chosen.runs)


if __name__ == "__main__":
    main()
