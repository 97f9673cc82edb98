"""Negative maxima in loops of every shape, whatever a model keeps in its buffer and whoever sets it back.

Beside each training runs its twin without healthwatch: the buffers and losses of the two never differ.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from contextlib import nullcontext
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

ms = pytest.importorskip("mindspore", reason="needs the mindspore extra")

from mindspore import Parameter, Tensor, nn, ops  # noqa: E402
from mindspore.graph.api import _no_grad  # noqa: E402

from healthwatch.config import Config  # noqa: E402
from healthwatch.integrations.mindspore import MindSpore  # noqa: E402
from healthwatch.integrations.mindspore.reading import DeviceReader, HostReader  # noqa: E402
from healthwatch.recording import Run  # noqa: E402
from healthwatch.stream import Frame, SeriesTable  # noqa: E402

pytestmark = [pytest.mark.mindspore, pytest.mark.long]

HEADS, LAYERS, STEPS, MICRO_STEPS = 2, 2, 8, 2
LEARNT = 4  # the first step at which every layer's own maximum is known, where nothing says what the buffer keeps


@pytest.fixture(autouse=True, scope="module")
def _blocking():
    ms.set_context(mode=ms.PYNATIVE_MODE, device_target="CPU")
    ms.runtime.launch_blocking()


class Attention(nn.Cell):
    """`keeps`: in a new tensor, in a parameter, or written into the tensor; of all passes or of the last one.

    `true` is what each pass's own maxima were. Of layer 0 one head is positive; all others are below 0.
    """

    def __init__(self, keeps: str, layer: int) -> None:
        super().__init__()
        self.keeps, self.true = keeps, []
        zeros = Tensor(np.zeros(HEADS, np.float32))
        self.max_logits_val = Parameter(zeros, requires_grad=False) if "parameter" in keeps else zeros
        weight = np.random.default_rng(layer).standard_normal((8, 8)).astype(np.float32)
        self.weight = Parameter(Tensor(weight), name="weight")
        self.lowered_by = Tensor(np.array([0.0 if layer == 0 else 90.0, 100.0], np.float32))

    def construct(self, inputs):
        logits = ops.matmul(inputs, self.weight)
        highest = ops.stop_gradient(logits).reshape(-1, HEADS, 4).max(axis=(0, 2)) - self.lowered_by
        if "running" in self.keeps:
            highest = ops.maximum(self.max_logits_val, highest)
        if "parameter" in self.keeps:
            ops.assign(self.max_logits_val, highest)
        elif "inside" in self.keeps:
            with _no_grad():
                self.max_logits_val.copy_(highest)
        else:
            self.max_logits_val = highest
        return logits


class Resettable(Attention):
    """As MindSpore Transformers has it."""

    def reset_parameter(self) -> None:
        self.max_logits_val = Tensor(np.zeros(HEADS, np.float32))


class Net(nn.Cell):
    def __init__(self, keeps: str) -> None:
        super().__init__()
        kind = Resettable if "resettable" in keeps else Attention
        self.layers = nn.CellList([kind(keeps, layer) for layer in range(LAYERS)])

    def construct(self, inputs, targets):
        for layer in self.layers:
            inputs = layer(inputs)
        return ((inputs.sum(-1) - targets) ** 2).mean()

    def buffers(self) -> np.ndarray:
        return np.concatenate([layer.max_logits_val.asnumpy().copy() for layer in self.layers])

    def reset(self) -> None:
        for layer in self.layers:
            if hasattr(layer, "reset_parameter"):
                layer.reset_parameter()
            elif isinstance(layer.max_logits_val, Parameter):
                layer.max_logits_val.set_data(Tensor(np.zeros(HEADS, np.float32)))
            else:
                layer.max_logits_val = Tensor(np.zeros(HEADS, np.float32))


def batches(count: int) -> list[tuple[Tensor, Tensor]]:
    random = np.random.default_rng(7)
    shapes = ((6, 8), (6,))
    return [tuple(Tensor(random.standard_normal(shape).astype(np.float32)) for shape in shapes) for _ in range(count)]


class Watched:
    """A model under watch; `seen` is what came of each step: by (layer, head), where there is a sample."""

    def __init__(self, net: Any, optimizer: Any, model: Any = None, device: bool = False) -> None:
        self.net, self.seen, self.true = net, [], []
        self.integration = MindSpore(lambda _: nullcontext(), DeviceReader() if device else HostReader())
        config = Config(run="", output=Path(), rules=(), digest="")
        self.monitors = self.integration.attach(model or net, optimizer, config, SeriesTable())

    def step(self, loss: Any) -> None:
        self.integration.step(loss)
        frame = Frame(len(self.seen) + 1)
        for monitor in self.monitors:
            monitor.flush(frame)
        frame.close()
        found = {}
        for column in frame.columns:
            if column.series.metric == "max_attention_logit":
                for pairs, value in zip(column.series.labels, column.values.tolist(), strict=True):
                    labels = dict(pairs)
                    found[int(labels["layer"]), int(labels["head"])] = value
        self.seen.append(found)


def measure(net: Net, by_step: list[dict[tuple[int, int], float]], passes: int) -> None:
    """Every sample is the largest of the step's own passes."""
    for step, found in enumerate(by_step):
        for (layer, head), value in found.items():
            expected = max(each[head] for each in net.layers[layer].true[step * passes : (step + 1) * passes])
            assert value == pytest.approx(expected, rel=1e-6), (step, layer, head)


def note_truth(net: Net) -> None:
    """The truth of each pass, by an independent way: from what goes into the layer."""
    for layer in net.layers:

        def note(cell: Any, inputs: Any, output: Any) -> None:
            values = output.asnumpy().reshape(-1, HEADS, 4).max(axis=(0, 2)) - cell.lowered_by.asnumpy()
            cell.true.append(values)

        layer.register_forward_hook(note)


def functional(net: Net, watched: Watched | None, reset: str) -> tuple[list[float], list[np.ndarray]]:
    """Losses, and what stands in the buffers after each micro-batch and each step."""
    optimizer = nn.SGD(net.trainable_params(), 1e-4) if watched is None else watched.integration._optimizer
    forward_backward = ms.value_and_grad(net, None, net.trainable_params())
    losses, buffers = [], []
    data = iter(batches(STEPS * MICRO_STEPS))
    for _ in range(STEPS):
        total: Any = None
        for _ in range(MICRO_STEPS):
            loss, grads = forward_backward(*next(data))
            total = grads if total is None else tuple(a + b for a, b in zip(total, grads, strict=True))
            if watched is not None:
                watched.integration.micro_step(loss, grads, total)
            buffers.append(net.buffers())
        if reset == "before the update":
            net.reset()
        optimizer(total)
        if reset == "before our step":
            net.reset()
        if watched is not None:
            watched.step(loss)
        if reset == "after our step":
            net.reset()
        losses.append(float(loss))
        buffers.append(net.buffers())
    return losses, buffers


RESETS = ["never", "before the update", "before our step", "after our step"]
LAST = ["last", "last parameter", "last inside"]
RUNNING = ["running", "running parameter", "running inside", "running resettable"]


@pytest.mark.row(69)
@pytest.mark.parametrize(
    ("keeps", "reset", "device"),
    [
        *((keeps, reset, False) for keeps in RUNNING for reset in RESETS),
        *((keeps, "never", False) for keeps in LAST),
        *((keeps, "before the update", True) for keeps in ("running", "running resettable", "last")),
    ],
)
def test_a_functional_loop(keeps: str, reset: str, device: bool) -> None:
    net, twin = Net(keeps), Net(keeps)
    note_truth(net)
    watched = Watched(net, nn.SGD(net.trainable_params(), 1e-4), device=device)
    losses, buffers = functional(net, watched, reset)
    assert (losses, [each.tolist() for each in buffers]) == (
        (alone := functional(twin, None, reset))[0],
        [each.tolist() for each in alone[1]],
    ), "nothing that the model sees is changed"
    measure(net, watched.seen, MICRO_STEPS)
    known = 1 if "last" in keeps or "resettable" in keeps else LEARNT
    for step, found in enumerate(watched.seen, start=1):
        assert step < known or len(found) == LAYERS * HEADS, f"step {step}: {found}"
    assert watched.seen[-1][1, 1] < -50


@pytest.mark.row(69)
@pytest.mark.parametrize("keeps", ["running", "running resettable", "last"])
def test_a_training_step_cell(keeps: str) -> None:
    nets = [Net(keeps), Net(keeps)]
    cells = [nn.TrainOneStepCell(net, nn.SGD(net.trainable_params(), 1e-4)) for net in nets]
    note_truth(nets[0])
    watched = Watched(nets[0], cells[0].optimizer, model=cells[0])
    for inputs in batches(STEPS):
        losses = [float(cell(*inputs)) for cell in cells]
        watched.step(losses[0])
        assert losses[0] == losses[1]
        assert nets[0].buffers().tolist() == nets[1].buffers().tolist()
    measure(nets[0], watched.seen, 1)
    assert len(watched.seen[-1]) == LAYERS * HEADS
    assert watched.seen[-1][1, 1] < -50


@pytest.mark.parametrize("keeps", ["running", "running resettable", "last"])
def test_on_a_device_no_pass_crosses_to_the_host_and_a_step_does_once(
    keeps: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    net = Net(keeps)
    watched = Watched(net, nn.SGD(net.trainable_params(), 1e-4), device=True)
    forward_backward = ms.value_and_grad(net, None, net.trainable_params())
    crossings: list[int] = []
    real = ms.Tensor.asnumpy
    monkeypatch.setattr(ms.Tensor, "asnumpy", lambda tensor: crossings.append(1) or real(tensor))
    for inputs in batches(5):
        loss, grads = forward_backward(*inputs)
        watched.integration._optimizer(grads)
        assert crossings == []
        watched.step(loss)
        assert len(crossings) == 1
        crossings.clear()
    assert watched.seen[-1][1, 1] < -50


class Resets(ms.train.Callback):
    def __init__(self, net: Net) -> None:
        super().__init__()
        self.net = net

    def on_train_step_end(self, run_context: Any) -> None:
        self.net.reset()


@pytest.mark.row(69)
@pytest.mark.parametrize("place", [0, 1, None], ids=["reset before us", "reset behind us", "never reset"])
def test_model_train(tmp_path: Path, place: int | None) -> None:
    from healthwatch.integrations.mindspore.callback import HealthWatch

    config = tmp_path / "train.yaml"
    config.write_text(yaml.safe_dump({"healthwatch": {"output": str(tmp_path / "output"), "budget": "100%"}}))
    net = Net("running")
    note_truth(net)
    rows = [tuple(each.asnumpy() for each in pair) for pair in batches(STEPS)]
    data = ms.dataset.GeneratorDataset(rows, ["inputs", "targets"], shuffle=False)
    callbacks: list[Any] = [HealthWatch(config)]
    if place is not None:
        callbacks.insert(place, Resets(net))
    ms.train.Model(net, optimizer=nn.SGD(net.trainable_params(), 1e-4)).train(1, data, callbacks=callbacks)
    with Run.open(tmp_path / "output") as run:
        seen = [samples(frame) for frame in run.frames()]
    assert len(seen) == STEPS
    measure(net, seen, 1)
    assert len(seen[-1]) == LAYERS * HEADS
    assert seen[-1][1, 1] < -50


def samples(frame: Frame) -> dict[tuple[int, int], float]:
    return {
        (int(dict(pairs)["layer"]), int(dict(pairs)["head"])): value
        for column in frame.columns
        if column.series.metric == "max_attention_logit"
        for pairs, value in zip(column.series.labels, column.values.tolist(), strict=True)
    }


def evaluate(net: Net, inputs: tuple[Tensor, Tensor]) -> None:
    net.set_train(False)
    net(inputs[0] * 1000, inputs[1])
    net.set_train(True)


@pytest.mark.parametrize("keeps", ["running resettable", "last"])
def test_an_evaluation_between_two_steps_is_none_of_either(keeps: str) -> None:
    net = Net(keeps)
    net.set_train(True)
    watched = Watched(net, nn.SGD(net.trainable_params(), 1e-4))
    forward_backward = ms.value_and_grad(net, None, net.trainable_params())
    for inputs in batches(3):
        loss, grads = forward_backward(*inputs)
        watched.integration._optimizer(grads)
        watched.step(loss)
        evaluate(net, inputs)
    highest = [max(found.values()) for found in watched.seen]
    assert len(highest) == 3
    assert max(highest) < 50


@pytest.mark.parametrize("spoil", ["_begin_pass", "_end_pass"])
def test_what_goes_wrong_in_here_leaves_the_pass_alone(monkeypatch: pytest.MonkeyPatch, spoil: str) -> None:
    from healthwatch.integrations.mindspore.maxima import Maxima
    from healthwatch.session import Guard

    def broken(*_: Any) -> None:
        raise RuntimeError("planted")

    monkeypatch.setattr(Maxima, spoil, broken)
    guard, net, inputs = Guard(), Net("running resettable"), batches(1)[0]
    alone = float(Net("running resettable")(*inputs))
    integration = MindSpore(guard, HostReader())
    config = Config(run="", output=Path(), rules=(), digest="")
    integration.attach(net, None, config, SeriesTable())
    assert float(net(*inputs)) == alone
    assert guard.failures["mindspore attention hook"] == LAYERS


def test_a_forward_pass_in_a_graph_runs_as_without_us() -> None:
    nets = [Net("running parameter"), Net("running parameter")]
    watched = Watched(nets[0], None)
    inputs = batches(1)[0]

    def graph(net: Net) -> Callable[..., Any]:
        @ms.jit
        def forward(*given):
            return net(*given)

        return forward

    losses = [float(graph(net)(*inputs)) for net in nets]
    watched.step(losses[0])
    assert losses[0] == pytest.approx(losses[1], rel=1e-6)
    assert watched.seen[0][1, 1] == 0, "as the model shows it"
    assert watched.seen[0][0, 0] > 0


def test_a_copy_of_the_model_is_not_watched() -> None:
    """Weights averaged over steps are often held in one."""
    net, inputs = Net("running resettable"), batches(1)[0]
    watched = Watched(net, None)
    twin = copy.deepcopy(net)
    twin.reset()
    assert float(twin(inputs[0] * 1000, inputs[1])) > 0
    loss = net(*inputs)
    watched.step(loss)
    assert max(watched.seen[0].values()) < 50


def test_after_detach_nothing_is_watched() -> None:
    net = Net("running")
    kinds = [type(layer) for layer in net.layers]
    watched = Watched(net, None)
    assert all(type(layer) is not kind for layer, kind in zip(net.layers, kinds, strict=True))
    watched.integration.detach()
    assert [type(layer) for layer in net.layers] == kinds
    assert all(a is b for a, b in pairwise(kinds))
