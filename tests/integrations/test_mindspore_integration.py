"""A small mixture-of-experts network really trained by MindSpore, with the integration beside it."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from healthwatch.config import Config
from healthwatch.stream.frame import Frame
from healthwatch.stream.series import SeriesTable

ms = pytest.importorskip("mindspore", reason="needs the mindspore extra")
pytestmark = [pytest.mark.mindspore, pytest.mark.long]

from mindspore import Parameter, Tensor, nn, ops  # noqa: E402

from healthwatch.integrations.mindspore import MindSpore  # noqa: E402
from healthwatch.integrations.mindspore.reading import DeviceReader, HostReader  # noqa: E402
from healthwatch.integrations.mindspore.taps import find_logits, find_routers  # noqa: E402

EXPERTS, HEADS, MICRO_STEPS = 4, 2, 2


class Router(nn.Cell):
    """Counts in a tensor of its last pass, or in a parameter that grows."""

    def __init__(self, grows: bool) -> None:
        super().__init__()
        self.topk, self.grows = 2, grows
        self.weight = Parameter(Tensor(np.random.default_rng(1).normal(size=(8, EXPERTS)).astype(np.float32)))
        zeros = Tensor(np.zeros((1, EXPERTS), np.float32))
        self.tokens_per_expert = Parameter(zeros, requires_grad=False) if grows else zeros

    def construct(self, x: Tensor) -> Tensor:
        probabilities = ops.softmax(ops.matmul(x, self.weight), -1)
        weights, chosen = ops.topk(probabilities, self.topk, -1)
        counts = ops.one_hot(chosen, EXPERTS, Tensor(1.0), Tensor(0.0)).sum((0, 1)).reshape(1, EXPERTS)
        if self.grows:
            self.tokens_per_expert.copy_(self.tokens_per_expert + ops.stop_gradient(counts))
        else:
            self.tokens_per_expert = ops.stop_gradient(counts)
        return weights.sum(-1, keepdims=True)


class CoreAttention(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.max_logits_val = Tensor(np.zeros(HEADS, np.float32))

    def construct(self, x: Tensor) -> Tensor:
        self.max_logits_val = ops.stop_gradient(x.reshape(-1, HEADS, 4)).max(axis=(0, 2)) - 100.0
        return x


class Layer(nn.Cell):
    def __init__(self, grows: bool) -> None:
        super().__init__()
        self.core_attention, self.router = CoreAttention(), Router(grows)
        self.dense = nn.Dense(8, 8)

    def construct(self, x: Tensor) -> Tensor:
        return self.dense(self.core_attention(x)) * self.router(x)


class Decoder(nn.Cell):
    def __init__(self, grows: bool) -> None:
        super().__init__()
        self.layers = nn.CellList([Layer(grows), Layer(grows)])

    def construct(self, x: Tensor) -> Tensor:
        for layer in self.layers:
            x = x + layer(x)
        return x


class Net(nn.Cell):
    def __init__(self, grows: bool = False) -> None:
        super().__init__()
        self.decoder = Decoder(grows)

    def construct(self, x: Tensor, y: Tensor) -> Tensor:
        return ((self.decoder(x) - y) ** 2).mean()


class Loop:
    """A functional training loop and the samples that its monitors made of each step."""

    def __init__(self, reader: Any = None, grows: bool = False, optimizer: Any = None) -> None:
        ms.runtime.launch_blocking()
        ms.set_seed(3)
        self.net = Net(grows)
        self.params = self.net.trainable_params()
        self.optimizer = optimizer(self.params) if optimizer else nn.Adam(self.params, 1e-2)
        self.forward_backward = ms.value_and_grad(self.net, None, self.params)
        self.rng = np.random.default_rng(0)
        self.errors: list[BaseException] = []
        self.integration = MindSpore(self.guard, reader)
        config = Config(run="test", output=Path(), rules=(), digest="")
        self.monitors = self.integration.attach(self.net, self.optimizer, config, SeriesTable())
        self.steps = 0

    @contextmanager
    def guard(self, part: str) -> Iterator[None]:
        try:
            yield
        except Exception as error:
            self.errors.append(error)

    def batch(self) -> tuple[Tensor, Tensor]:
        return tuple(Tensor(self.rng.normal(size=(16, 8)).astype(np.float32)) for _ in range(2))

    def flush(self) -> dict[tuple[str, int | None], np.ndarray]:
        self.steps += 1
        frame = Frame(self.steps)
        for monitor in self.monitors:
            monitor.flush(frame)
        frame.close()
        return {(column.series.metric, column.micro_step): column.values for column in frame.columns}

    def gradients(self) -> tuple[Any, tuple[Any, ...]]:
        loss, grads = self.forward_backward(*self.batch())
        return loss, tuple(grads)

    def counters(self) -> np.ndarray:
        return np.concatenate([layer.router.tokens_per_expert.asnumpy().ravel() for layer in self.net.decoder.layers])

    def logits(self) -> np.ndarray:
        return np.concatenate([layer.core_attention.max_logits_val.asnumpy() for layer in self.net.decoder.layers])


def plain_norms(grads: Any) -> np.ndarray:
    return np.array([np.linalg.norm(grad.asnumpy().astype(np.float64)) for grad in grads])


def total(grads: Any) -> float:
    return float(np.linalg.norm(plain_norms(grads)))


def add(a: Any, b: Any) -> tuple[Any, ...]:
    return b if a is None else tuple(x + y for x, y in zip(a, b, strict=True))


@pytest.mark.parametrize("hands_sum", [True, False], ids=["the loop's sum", "own sum"])
def test_every_metric_of_a_functional_loop(hands_sum: bool) -> None:
    loop = Loop(HostReader())
    for _ in range(2):
        accumulated, micro, sums, losses, counts, logits = None, [], [], [], [], []
        for _ in range(MICRO_STEPS):
            loss, grads = loop.gradients()
            accumulated = add(accumulated, grads)
            loop.integration.micro_step(loss, grads, accumulated if hands_sum else None)
            micro.append(plain_norms(grads))
            sums.append(plain_norms(accumulated))
            losses.append(float(loss))
            counts.append(loop.counters().copy())
            logits.append(loop.logits().copy())
        mean = tuple(grad / MICRO_STEPS for grad in accumulated)
        loop.optimizer(mean)
        loop.integration.step(Tensor(sum(losses) / MICRO_STEPS))
        samples = loop.flush()
        for m in range(MICRO_STEPS):
            np.testing.assert_allclose(samples["micro_norm", m], micro[m], rtol=1e-6)
            increment = sums[m] - sums[m - 1] if m else sums[m]
            np.testing.assert_allclose(samples["local_norm", m], increment, rtol=1e-5, atol=1e-7)
            np.testing.assert_array_equal(samples["tokens_per_expert", m], counts[m])
            assert samples["local_loss", m] == losses[m]
        np.testing.assert_allclose(samples["device_norm", None], sums[-1], rtol=1e-6)
        np.testing.assert_allclose(samples["grad_norm", None], total(mean), rtol=1e-6)
        np.testing.assert_allclose(samples["max_attention_logit", None], np.max(logits, axis=0))
        assert samples["max_attention_logit", None].max() < 0, "negative maxima are seen"
        assert samples["lr", None] == pytest.approx(1e-2)
        assert samples["loss", None] == samples["device_loss", None] == pytest.approx(sum(losses) / MICRO_STEPS)
        assert 0 < samples["step_time", None] < 60
        np.testing.assert_array_equal(samples["router_topk", None], [2, 2])
    assert loop.errors == []


def test_all_trainable_parameters_have_a_norm_and_frozen_ones_have_none() -> None:
    loop = Loop()
    assert loop.integration._train_state.parameters == tuple(param.name for param in loop.params)
    frozen = Net()
    frozen.decoder.layers[0].dense.weight.requires_grad = False
    integration = MindSpore(loop.guard)
    config = Config(run="test", output=Path(), rules=(), digest="")
    integration.attach(frozen, nn.Adam(frozen.trainable_params(), 1e-3), config, SeriesTable())
    assert "decoder.layers.0.dense.weight" not in integration._train_state.parameters
    assert "decoder.layers.1.dense.weight" in integration._train_state.parameters
    integration.detach()


def test_the_hook_alone_gives_one_micro_step_before_the_update() -> None:
    loop = Loop()
    loss, grads = loop.gradients()
    counted = loop.counters().copy()
    loop.optimizer(grads)
    for layer in loop.net.decoder.layers:
        layer.router.tokens_per_expert = Tensor(np.zeros((1, EXPERTS), np.float32))
    loop.integration.step(loss)
    samples = loop.flush()
    np.testing.assert_allclose(samples["micro_norm", 0], plain_norms(grads), rtol=1e-6)
    np.testing.assert_allclose(samples["device_norm", None], plain_norms(grads), rtol=1e-6)
    np.testing.assert_allclose(samples["grad_norm", None], total(grads), rtol=1e-6)
    np.testing.assert_array_equal(samples["tokens_per_expert", 0], counted)
    assert ("local_loss", 0) not in samples


def test_a_skipped_update_still_has_every_metric() -> None:
    loop = Loop()
    loss, grads = loop.gradients()
    bad = tuple(grad * float("nan") for grad in grads)
    loop.integration.micro_step(loss * float("nan"), bad)
    loop.integration.step(float("nan"), grads=bad)
    samples = loop.flush()
    assert np.isnan(samples["micro_norm", 0]).all()
    assert np.isnan(samples["device_norm", None]).all()
    assert math.isnan(samples["grad_norm", None][0])
    assert math.isnan(samples["local_loss", 0][0])
    assert samples["lr", None] == pytest.approx(1e-2)


def test_counters_that_grow_give_the_counts_of_each_micro_batch() -> None:
    loop = Loop(grows=True)
    for _ in range(3):
        before, found = loop.counters().copy(), []
        for _ in range(MICRO_STEPS):
            loss, grads = loop.gradients()
            loop.integration.micro_step(loss, grads)
            found.append(loop.counters() - before)
            before = loop.counters().copy()
        loop.optimizer(grads)
        loop.integration.step(loss)
        samples = loop.flush()
        for m in range(MICRO_STEPS):
            np.testing.assert_array_equal(samples["tokens_per_expert", m], found[m])
            assert found[m].sum() == 2 * 16 * 2, "two layers, 16 tokens, two experts each"


def counts_of(router: Router) -> np.ndarray:
    return router.tokens_per_expert.asnumpy().ravel().copy()


@pytest.mark.parametrize("grows", [True, False], ids=["grows", "last pass"])
@pytest.mark.parametrize("reset", [False, True], ids=["never reset", "reset by the step"])
@pytest.mark.parametrize("device", [False, True], ids=["host", "device"])
def test_a_layer_that_the_backward_pass_runs_again_is_counted_once(grows: bool, reset: bool, device: bool) -> None:
    loop = Loop(DeviceReader() if device else None, grows=grows)
    routed: list[np.ndarray] = []
    for layer in loop.net.decoder.layers:
        layer.recompute()
        layer.router.register_forward_hook(
            lambda cell, *_: routed.append(cell.tokens_per_expert.asnumpy().ravel().copy())
        )
    runs = 0
    for _ in range(3):
        expected = []
        for _ in range(MICRO_STEPS):
            before = loop.counters().copy() if grows else np.zeros(2 * EXPERTS)
            routed.clear()
            loss, grads = loop.gradients()
            runs += len(routed)
            expected.append(np.concatenate(routed[:2]) - before)  # of the forward pass: the others follow it
            loop.integration.micro_step(loss, grads)
        loop.optimizer(grads)
        loop.integration.step(loss)
        if reset and grows:
            for layer in loop.net.decoder.layers:
                layer.router.tokens_per_expert.set_data(Tensor(np.zeros((1, EXPERTS), np.float32)))
        samples = loop.flush()
        for m in range(MICRO_STEPS):
            np.testing.assert_array_equal(samples["tokens_per_expert", m], expected[m])
            assert expected[m].sum() == 2 * 16 * 2
    assert runs == 2 * 2 * 3 * MICRO_STEPS, "each layer ran twice"
    assert loop.errors == []


def test_a_training_step_cell_is_seen_through_the_hook() -> None:
    loop = Loop()
    cell = nn.TrainOneStepCell(loop.net, loop.optimizer)
    loss = cell(*loop.batch())
    loop.integration.step(loss)
    samples = loop.flush()
    assert samples["loss", None] == pytest.approx(float(loss))
    assert samples["grad_norm", None][0] > 0
    assert samples["tokens_per_expert", 0].sum() == 2 * 16 * 2


def test_float16_gradients_and_huge_ones_have_the_right_norm() -> None:
    loop = Loop()
    _, grads = loop.gradients()
    half = tuple(Tensor(np.full(grad.shape, 60000, np.float16)) for grad in grads)
    loop.integration.micro_step(None, half)
    huge = tuple(Tensor(np.full(grad.shape, 1e38, np.float32)) for grad in grads)
    loop.integration.micro_step(None, huge, accumulated=huge)
    loop.integration.step(None, grads=huge)
    samples = loop.flush()
    sizes = np.array([math.prod(grad.shape) for grad in grads], np.float64)
    np.testing.assert_allclose(samples["micro_norm", 0], 60000 * np.sqrt(sizes), rtol=1e-3)
    np.testing.assert_allclose(samples["micro_norm", 1], 1e38 * np.sqrt(sizes), rtol=1e-6)
    np.testing.assert_allclose(samples["grad_norm", None], 1e38 * math.sqrt(sizes.sum()), rtol=1e-6)


def test_bfloat16_gradients_are_read() -> None:
    loop = Loop()
    _, grads = loop.gradients()
    loop.integration.micro_step(None, tuple(grad.astype(ms.bfloat16) for grad in grads))
    loop.integration.step(None)
    np.testing.assert_allclose(loop.flush()["micro_norm", 0], plain_norms(grads), rtol=1e-2)


def test_what_is_kept_is_no_alias_of_a_tensor() -> None:
    loop = Loop()
    _, grads = loop.gradients()
    expected = plain_norms(grads)
    loop.integration.micro_step(None, grads)
    for grad in grads:
        grad.asnumpy()[...] = 7.0
    _, more = loop.gradients()
    loop.integration.micro_step(None, more)
    loop.integration.step(None)
    samples = loop.flush()
    np.testing.assert_allclose(samples["micro_norm", 0], expected, rtol=1e-6)
    assert samples["device_norm", None].max() < expected.max() + plain_norms(more).max() + 1e-3


def test_another_number_of_gradients_raises_and_the_rest_is_kept() -> None:
    loop = Loop()
    loss, grads = loop.gradients()
    with pytest.raises(ValueError, match=r"gradients were given for \d+ trainable parameters"):
        loop.integration.micro_step(loss, grads[:-1])
    loop.integration.step(loss)
    samples = loop.flush()
    assert samples["local_loss", 0] == float(loss)
    assert ("tokens_per_expert", 0) in samples
    assert ("micro_norm", 0) not in samples


def test_a_step_that_is_handed_nonsense_keeps_the_rest_and_the_next_one_is_whole() -> None:
    loop = Loop()
    loss, grads = loop.gradients()
    loop.integration.micro_step(loss, grads)
    with pytest.raises(ValueError, match="a loss is one number, this one has 2"):
        loop.integration.step(np.array([1.0, 2.0]), grads=grads[:-1])
    samples = loop.flush()
    assert ("loss", None) not in samples
    assert ("grad_norm", None) not in samples
    np.testing.assert_allclose(samples["micro_norm", 0], plain_norms(grads), rtol=1e-6)
    loop.integration.micro_step(loss, grads)
    loop.integration.step(loss, grads=grads)
    samples = loop.flush()
    assert ("micro_norm", 1) not in samples
    np.testing.assert_allclose(samples["grad_norm", None], total(grads), rtol=1e-6)


def test_an_error_in_the_hook_does_not_reach_the_optimizer() -> None:
    loop = Loop()
    _, grads = loop.gradients()
    loop.integration._train_state.parameters = ("only one",)
    before = loop.params[0].asnumpy().copy()
    loop.optimizer(grads)
    assert [type(error) for error in loop.errors] == [ValueError]
    assert not np.array_equal(before, loop.params[0].asnumpy()), "the update was made"


def test_after_detach_nothing_is_seen_any_more() -> None:
    loop = Loop()
    loop.integration.detach()
    loop.integration.detach()
    assert len(loop.optimizer._forward_pre_hook) == 0
    loss, grads = loop.gradients()
    loop.optimizer(grads)
    loop.integration.step(loss)
    assert ("grad_norm", None) not in loop.flush()


@pytest.mark.parametrize(
    ("make", "rates"),
    [
        (lambda params: nn.SGD(params, 0.25), [0.25, 0.25, 0.25]),
        (lambda params: nn.Adam(params, [0.1, 0.2, 0.3, 0.4]), [0.1, 0.2, 0.3]),
        (lambda params: nn.Adam([{"params": params, "lr": 0.5}], 0.1), [0.5, 0.5, 0.5]),
        (lambda params: nn.Momentum(params, nn.CosineDecayLR(0.0, 1.0, 4), 0.9), [1.0, 0.853553, 0.5]),
        (lambda params: ms.mint.optim.SGD(params, lr=0.125), [0.125, 0.125, 0.125]),
    ],
    ids=["fixed", "list", "group", "schedule", "mint"],
)
def test_the_rate_is_the_one_of_this_update(make: Any, rates: list[float]) -> None:
    loop = Loop(optimizer=make)
    for rate in rates:
        loss, grads = loop.gradients()
        loop.integration.micro_step(loss, grads)
        loop.optimizer(grads)
        loop.integration.step(loss)
        assert loop.flush()["lr", None] == pytest.approx(rate, rel=1e-4)
    assert loop.errors == []


def test_reading_the_rate_of_a_skipped_update_does_not_move_the_schedule() -> None:
    loop = Loop(optimizer=lambda params: nn.Adam(params, [0.1, 0.2, 0.3, 0.4]))
    for _ in range(3):
        loop.integration.step(1.0)
        assert loop.flush()["lr", None] == pytest.approx(0.1)


class CopySpy:
    """Counts the copies from device to host."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.copies = 0
        original = ms.Tensor.asnumpy

        def counted(tensor: Any) -> Any:
            self.copies += 1
            return original(tensor)

        monkeypatch.setattr(ms.Tensor, "asnumpy", counted)


def test_on_a_device_everything_crosses_in_one_copy_a_step(monkeypatch: pytest.MonkeyPatch) -> None:
    loop = Loop(DeviceReader())
    for _ in range(2):
        accumulated, micro, counts = None, [], []
        given = []
        for _ in range(MICRO_STEPS):
            loss, grads = loop.gradients()
            accumulated = add(accumulated, grads)
            given.append((loss, grads, accumulated))
            micro.append(plain_norms(grads))
            counts.append(loop.counters().copy())
            with monkeypatch.context() as patch:
                spy = CopySpy(patch)
                loop.integration.micro_step(loss, grads, accumulated)
                assert spy.copies == 0
        with monkeypatch.context() as patch:
            spy = CopySpy(patch)
            loop.optimizer(accumulated)
            loop.integration.step(loss, grads=accumulated)
            assert spy.copies == 1
        samples = loop.flush()
        for m in range(MICRO_STEPS):
            np.testing.assert_allclose(samples["micro_norm", m], micro[m], rtol=1e-5)
            np.testing.assert_array_equal(samples["tokens_per_expert", m], counts[m])
            np.testing.assert_allclose(samples["local_loss", m], float(given[m][0]), rtol=1e-6)
        np.testing.assert_allclose(samples["grad_norm", None], total(accumulated), rtol=1e-5)
        np.testing.assert_allclose(samples["device_norm", None], plain_norms(accumulated), rtol=1e-5)
        assert samples["lr", None] == pytest.approx(1e-2)


def test_on_a_device_counters_are_those_of_the_micro_step() -> None:
    loop = Loop(DeviceReader(), grows=True)
    found, before = [], loop.counters().copy()
    for _ in range(MICRO_STEPS):
        loss, grads = loop.gradients()
        loop.integration.micro_step(loss, grads)
        found.append(loop.counters() - before)
        before = loop.counters().copy()
    loop.integration.step(loss)
    samples = loop.flush()
    for m in range(MICRO_STEPS):
        np.testing.assert_array_equal(samples["tokens_per_expert", m], found[m])


def test_the_reader_follows_the_device() -> None:
    from healthwatch.integrations.mindspore.reading import reader

    assert isinstance(reader(), HostReader)


def test_a_model_without_experts_or_logits_has_only_its_gradients() -> None:
    net = nn.Dense(4, 2)
    assert find_routers(net).taps == ()
    assert find_logits(net) == ()


def test_the_number_of_experts_a_token_goes_to_is_found_around_the_router() -> None:
    net = Net()
    assert find_routers(net).topk == (2, 2)
    for layer in net.decoder.layers:
        del layer.router.topk
    assert find_routers(net, topk=6).topk == (6, 6)
    net.decoder.num_experts_per_tok = 4
    assert find_routers(net, topk=6).topk == (4, 4)
    assert [tap.labels for tap in find_routers(net).taps] == [
        {"block": "decoder", "layer": "0"},
        {"block": "decoder", "layer": "1"},
    ]


def test_two_routers_of_one_layer_are_told_apart() -> None:
    net = Net()
    net.decoder.layers[0].second = Router(False)
    labels = [tap.labels for tap in find_routers(net).taps]
    assert labels[0]["cell"] == "decoder.layers.0.router"
    assert labels[1]["cell"] == "decoder.layers.0.second"
    assert "cell" not in labels[2]
