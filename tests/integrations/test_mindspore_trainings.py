"""Loops of other shapes: scaled losses, cells, Model.train, and a step that hides everything in a graph."""

from __future__ import annotations

import logging
import threading
from contextlib import nullcontext
from pathlib import Path

import numpy as np
import pytest
import yaml

ms = pytest.importorskip("mindspore", reason="needs the mindspore extra")

from mindspore import Tensor, nn  # noqa: E402

from healthwatch.config import Config  # noqa: E402
from healthwatch.integrations.mindspore import MindSpore  # noqa: E402
from healthwatch.recording import Run  # noqa: E402
from healthwatch.stream import Frame, SeriesTable  # noqa: E402

pytestmark = pytest.mark.mindspore
RANDOM = np.random.default_rng(0)


@pytest.fixture(autouse=True, scope="module")
def _blocking():
    ms.set_context(mode=ms.PYNATIVE_MODE, device_target="CPU")
    ms.runtime.launch_blocking()


class WithLoss(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.dense = nn.Dense(4, 1)

    def construct(self, inputs, targets):
        return ((self.dense(inputs) - targets) ** 2).mean()


def batch() -> tuple[Tensor, Tensor]:
    return (
        Tensor(RANDOM.standard_normal((8, 4)).astype(np.float32)),
        Tensor(RANDOM.standard_normal((8, 1)).astype(np.float32)),
    )


class Watched:
    def __init__(self, model, optimizer) -> None:
        self.integration = MindSpore(lambda part: nullcontext())
        config = Config(run="", output=Path(), rules=(), digest="")
        self.monitors = self.integration.attach(model, optimizer, config, SeriesTable())

    def step(self, loss=None, grads=None) -> dict[str, np.ndarray]:
        self.integration.step(loss, grads)
        frame = Frame(1)
        for monitor in self.monitors:
            monitor.flush(frame)
        frame.close()
        return {column.series.metric: column.values for column in frame.columns}


def norms(grads) -> np.ndarray:
    return np.array([np.linalg.norm(grad.asnumpy()) for grad in grads])


def test_gradients_of_a_cell_that_scales_its_loss_are_unscaled():
    net, inputs = WithLoss(), batch()
    grads = ms.value_and_grad(net, None, net.trainable_params())(*inputs)[1]
    optimizer = nn.SGD(net.trainable_params(), 0.1)
    cell = nn.TrainOneStepCell(net, optimizer, sens=1024.0)
    watched = Watched(cell, optimizer)
    loss = cell(*inputs)
    found = watched.step(loss)
    np.testing.assert_allclose(found["micro_norm"], norms(grads), rtol=1e-5)
    np.testing.assert_allclose(found["grad_norm"], np.linalg.norm(norms(grads)), rtol=1e-5)
    assert found["loss_scale"] == 1024
    assert found["loss"] == pytest.approx(float(loss))


def test_gradients_that_the_optimizer_divides_are_unscaled():
    net, inputs = WithLoss(), batch()
    grads = ms.value_and_grad(net, None, net.trainable_params())(*inputs)[1]
    optimizer = nn.Momentum(net.trainable_params(), 0.1, 0.9, loss_scale=64.0)
    watched = Watched(net, optimizer)
    optimizer(tuple(grad * 64 for grad in grads))
    np.testing.assert_allclose(watched.step()["device_norm"], norms(grads), rtol=1e-5)


@pytest.mark.parametrize("scale", [8.0, Tensor(8.0, ms.float32), "scaler"])
def test_a_loop_says_its_scale_itself(scale):
    net, inputs = WithLoss(), batch()
    grads = ms.value_and_grad(net, None, net.trainable_params())(*inputs)[1]
    watched = Watched(net, nn.SGD(net.trainable_params(), 0.1))
    scaler = ms.amp.DynamicLossScaler(scale_value=8, scale_factor=2, scale_window=50)
    watched.integration.loss_scale = scaler if scale == "scaler" else scale
    found = watched.step(None, tuple(grad * 8 for grad in grads))
    np.testing.assert_allclose(found["micro_norm"], norms(grads), rtol=1e-5)
    assert found["loss_scale"] == 8
    assert "loss_scale" not in watched.step(None, grads)  # it is said at each step


def test_a_step_in_a_graph_is_told_once_with_what_is_missing(caplog):
    net = WithLoss()
    optimizer = nn.SGD(net.trainable_params(), 0.1)
    forward_backward = ms.value_and_grad(net, None, net.trainable_params())

    @ms.jit
    def step(inputs, targets):
        loss, grads = forward_backward(inputs, targets)
        optimizer(grads)
        return loss

    watched = Watched(net, optimizer)
    with caplog.at_level(logging.WARNING, "healthwatch"):
        for _ in range(4):
            found = watched.step(step(*batch()))
    assert "grad_norm" not in found
    (line,) = [record.getMessage() for record in caplog.records]
    assert "SGD" in line
    assert "@jit" in line
    assert "grad_norm" in line


def test_a_loop_in_which_gradients_are_seen_is_told_nothing(caplog):
    net = WithLoss()
    cell = nn.TrainOneStepCell(net, nn.SGD(net.trainable_params(), 0.1))
    watched = Watched(cell, cell.optimizer)
    with caplog.at_level(logging.WARNING, "healthwatch"):
        for _ in range(4):
            watched.step(cell(*batch()))
    assert caplog.records == []


def test_model_train_is_watched_by_a_callback(tmp_path):
    from healthwatch.integrations.mindspore.callback import HealthWatch

    config = tmp_path / "train.yaml"
    ours = {"output": str(tmp_path / "output"), "rules": ["builtin:loss"]}
    config.write_text(yaml.safe_dump({"healthwatch": ours}))

    def rows():
        for step in range(6):
            inputs, targets = (each.asnumpy() for each in batch())
            yield inputs, targets * (np.nan if step == 4 else 1)

    data = ms.dataset.GeneratorDataset(list(rows()), ["inputs", "targets"], shuffle=False)
    net = nn.Dense(4, 1)
    model = ms.train.Model(net, nn.MSELoss(), nn.SGD(net.trainable_params(), 0.01))
    model.train(1, data, callbacks=[HealthWatch(config)])
    with Run.open(tmp_path / "output") as run:
        frames = list(run.frames())
        fired = [(each.rule, each.now.step) for each in run.transitions() if each.reason == "fired"]
        ended = run.attempts()[-1].reason
    assert [frame.step for frame in frames] == [1, 2, 3, 4, 5, 6]
    metrics = {column.series.metric for column in frames[0].columns}
    assert metrics >= {"loss", "grad_norm", "micro_norm", "device_norm", "lr"}
    assert fired[0] == ("LossNonFinite", 5)
    assert ended == "end"


def test_an_error_that_ends_model_train_is_seen(tmp_path):
    """MindSpore calls no `on_train_end` then; the error reaches the script as it was raised."""
    from healthwatch.integrations.mindspore.callback import HealthWatch

    config = tmp_path / "train.yaml"
    ours = {"output": str(tmp_path / "output"), "rules": ["builtin:run"]}
    config.write_text(yaml.safe_dump({"healthwatch": ours}))
    error = OSError("the disk of the checkpoints is full")

    class Checkpoints(ms.train.Callback):
        def on_train_step_end(self, run_context):
            if run_context.original_args().cur_step_num == 3:
                raise error

    data = ms.dataset.GeneratorDataset([[each.asnumpy() for each in batch()] for _ in range(6)], ["x", "y"])
    net = nn.Dense(4, 1)
    model = ms.train.Model(net, nn.MSELoss(), nn.SGD(net.trainable_params(), 0.01))
    with pytest.raises(OSError, match="the disk of the checkpoints is full") as raised:
        model.train(1, data, callbacks=[HealthWatch(config), Checkpoints()])
    assert raised.value is error
    with Run.open(tmp_path / "output") as run:
        assert [(each.rule, each.now.step, each.reason) for each in run.transitions()] == [("RunFailed", 4, "fired")]
        assert run.attempts()[-1].reason == "OSError"


def test_over_budget_norms_become_rarer_and_a_gradient_that_is_not_finite_is_seen_at_its_step_all_the_same(
    tmp_path, caplog
):
    """A real loop of two micro-batches with many parameters, whose norms are far over a budget of 0.1 %."""
    import healthwatch

    config = tmp_path / "train.yaml"
    ours = {"output": str(tmp_path / "output"), "budget": "0.1%", "rules": ["builtin:gradients"]}
    config.write_text(yaml.safe_dump({"healthwatch": ours}))
    net = nn.SequentialCell([nn.Dense(4, 4) for _ in range(8)])
    optimizer = nn.SGD(net.trainable_params(), 1e-4)
    forward_backward = ms.value_and_grad(lambda inputs: (net(inputs) ** 2).mean(), None, net.trainable_params())
    losses, planted = [], 0
    with caplog.at_level(logging.WARNING, "healthwatch"), healthwatch.load(config).attach(net, optimizer) as hw:
        for step in range(1, 181):
            total = None
            for _ in range(2):
                loss, grads = forward_backward(batch()[0])
                total = grads if total is None else tuple(a + b for a, b in zip(total, grads, strict=True))
                hw.micro_step(loss, grads, accumulated=total)
            if not planted and not hw._integration.pace.due("norms") and step > 150:
                planted = step
                total = (total[0] * np.nan, *total[1:])
            if step == planted:
                hw.step(loss, grads=total)  # the update is skipped
            else:
                optimizer(total)
                hw.step(loss)
            losses.append(float(loss))
        assert hw.guard.failures == {}
    said = [each.getMessage() for each in caplog.records if "of the step time" in each.getMessage()]
    assert said[0].endswith("norms are measured at every other step from now on")
    assert np.isfinite(losses).all()
    with Run.open(tmp_path / "output") as run:
        measured = {frame.step: {each.series.metric for each in frame.columns} for frame in run.frames()}
        fired = [(each.rule, each.now.step) for each in run.transitions() if each.reason == "fired"]
    assert "micro_norm" not in measured[planted], "a step at which norms are not measured"
    assert all("grad_norm" in metrics and "loss" in metrics for metrics in measured.values())
    assert all("micro_norm" in measured[step] for step in range(1, 111))
    assert sum("micro_norm" in measured[step] for step in range(111, 161)) == 25
    assert fired == [("GradNormNonFinite", planted)]


def test_switched_off_no_hook_and_no_thread_exists(tmp_path, monkeypatch):
    import healthwatch

    monkeypatch.setenv("HEALTHWATCH_DISABLED", "1")
    net = WithLoss()
    net.max_logits_val = Tensor(np.zeros(2, np.float32))
    net.tokens_per_expert = Tensor(np.zeros(2, np.float32))
    cell = nn.TrainOneStepCell(net, nn.SGD(net.trainable_params(), 0.1))
    cell(*batch())
    parts = [cell, *(each for _, each in cell.cells_and_names()), cell.optimizer]
    kinds, threads = [type(each) for each in parts], set(threading.enumerate())
    with healthwatch.load(tmp_path / "train.yaml").attach(cell, cell.optimizer) as hw:
        for _ in range(3):
            hw.micro_step(cell(*batch()))
            hw.step(1.0)
        assert [type(each) for each in parts] == kinds
        assert set(threading.enumerate()) == threads
        for each in parts:
            assert not each._forward_pre_hook
            assert not each._forward_hook
        assert not any(each.hooks() for each in net.trainable_params())
    assert list(tmp_path.iterdir()) == []


class Ended(ms.train.Callback):
    """Another callback, behind ours: what it sees of the end."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[str] = []

    def on_train_step_end(self, run_context):
        self.seen.append(f"step {run_context.original_args().cur_step_num}")

    def on_train_end(self, run_context):
        self.seen.append("train end")


def test_an_update_before_the_micro_batch_is_handed_in_and_steps_that_are_left_out(tmp_path):
    """The update's own reading of the model is that micro-batch's, not one more."""
    import healthwatch

    config = tmp_path / "train.yaml"
    config.write_text(yaml.safe_dump({"healthwatch": {"output": str(tmp_path / "output"), "budget": "100%"}}))
    net = WithLoss()
    optimizer = nn.SGD(net.trainable_params(), 0.01)
    forward_backward = ms.value_and_grad(net, None, net.trainable_params())
    expected = {}
    with healthwatch.load(config).attach(net, optimizer) as hw:
        for step in range(1, 9):
            loss, grads = forward_backward(*batch())
            optimizer(grads)
            if step not in (4, 5):
                expected[step] = norms(grads)
                hw.micro_step(loss, grads)
                hw.step(loss, step=step)
        assert hw.guard.failures == {}
    with Run.open(tmp_path / "output") as run:
        frames = list(run.frames())
    assert [frame.step for frame in frames] == list(expected)
    assert {frame.micro_steps for frame in frames} == {1}
    for frame in frames:
        for metric in ("micro_norm", "device_norm"):
            (column,) = [each for each in frame.columns if each.series.metric == metric]
            np.testing.assert_allclose(column.values, expected[frame.step], rtol=1e-5)


def test_a_model_that_goes_on_at_a_later_epoch_goes_on_with_its_steps(tmp_path, caplog):
    from healthwatch.integrations.mindspore.callback import HealthWatch

    config = tmp_path / "train.yaml"
    config.write_text(yaml.safe_dump({"healthwatch": {"output": str(tmp_path / "output"), "rules": ["builtin:loss"]}}))
    rows = [tuple(each.asnumpy() for each in batch()) for _ in range(4)]
    data = ms.dataset.GeneratorDataset(rows, ["inputs", "targets"], shuffle=False)
    net = nn.Dense(4, 1)
    model = ms.train.Model(net, nn.MSELoss(), nn.SGD(net.trainable_params(), 0.01))
    model.train(2, data, callbacks=[HealthWatch(config)])
    with caplog.at_level(logging.INFO, "healthwatch"):
        model.train(4, data, callbacks=[HealthWatch(config)], initial_epoch=2)
    with Run.open(tmp_path / "output") as run:
        assert [(frame.attempt, frame.step) for frame in run.frames()] == [(1 + (n > 8), n) for n in range(1, 17)]
    assert any("attempt 2 after step 8:" in each.getMessage() for each in caplog.records)
    assert not any("goes back" in each.getMessage() for each in caplog.records)


def test_stop_ends_model_train_behind_the_step_as_the_model_ends_itself(tmp_path, caplog):
    from healthwatch.integrations.mindspore.callback import HealthWatch

    ours = {
        "output": str(tmp_path / "output"),
        "rules": ["builtin:loss"],
        "escalation": {"critical": [{"stop": True}]},
    }
    config = tmp_path / "train.yaml"
    config.write_text(yaml.safe_dump({"healthwatch": ours}))
    rows = [tuple(each.asnumpy() for each in batch()) for _ in range(8)]
    rows[2] = rows[2][0] * np.nan, rows[2][1]
    data = ms.dataset.GeneratorDataset(rows, ["inputs", "targets"], shuffle=False)
    net = nn.Dense(4, 1)
    ended = Ended()
    model = ms.train.Model(net, nn.MSELoss(), nn.SGD(net.trainable_params(), 0.01))
    with caplog.at_level(logging.WARNING, "healthwatch"):
        model.train(2, data, callbacks=[HealthWatch(config), ended])
    assert ended.seen == ["step 1", "step 2", "step 3", "train end"]
    assert any("healthwatch stopped the training: LossNonFinite" in each.getMessage() for each in caplog.records)
    with Run.open(tmp_path / "output") as run:
        assert run.steps == (1, 3)
        assert run.attempts()[-1].reason == "stopped"
