"""Counts of one micro-batch, whatever the model does with its counter."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from healthwatch.monitors.layout import Stack
from healthwatch.monitors.moe import Counters, TokensPerExpert

DECODER = [{"block": "decoder", "layer": "0"}, {"block": "decoder", "layer": "2"}]
MTP = {"block": "mtp", "mtp_idx": "0", "layer": "0"}


def test_labels_of_decoder_and_mtp_are_kept_apart(flushing: Any) -> None:
    moe = TokensPerExpert([DECODER[0], MTP], [2, None])
    flush = flushing(moe)
    moe.micro_step(Stack.of([np.array([[3, 1]]), np.array([4, 0], np.float32)]))
    samples = flush()
    assert samples["tokens_per_expert", 0] == {
        ("decoder", "0", "0"): 3,
        ("decoder", "1", "0"): 1,
        ("mtp", "0", "0", "0"): 4,
        ("mtp", "1", "0", "0"): 0,
    }
    assert samples["router_topk", None] == {("decoder", "0"): 2}


def test_every_micro_step_is_a_column_and_topk_comes_once_a_step(flushing: Any) -> None:
    moe = TokensPerExpert(DECODER, [2, 4])
    flush = flushing(moe)
    for counts in ([1, 7], [6, 2]):
        moe.micro_step(Stack.of([np.array(counts), np.array(counts[::-1])]))
    samples = flush()
    assert samples["tokens_per_expert", 0]["decoder", "1", "0"] == 7
    assert samples["tokens_per_expert", 1]["decoder", "1", "0"] == 2
    assert samples["router_topk", None] == {("decoder", "0"): 2, ("decoder", "2"): 4}
    assert flush() == {}


def test_a_layer_that_has_no_counter_yet_is_absent(flushing: Any) -> None:
    moe = TokensPerExpert(DECODER, [None, None])
    flush = flushing(moe)
    moe.micro_step(Stack.of([None, None]))
    assert flush() == {}
    moe.micro_step(Stack.of([None, np.array([1, 2])]))
    assert set(flush()["tokens_per_expert", 0]) == {("decoder", "0", "2"), ("decoder", "1", "2")}
    moe.micro_step(Stack.of([np.array([5, 6]), np.array([2, 1])]))
    assert set(flush()["tokens_per_expert", 0].values()) == {5, 6, 2, 1}


def test_layers_of_different_width(flushing: Any) -> None:
    moe = TokensPerExpert(DECODER, [1, 1])
    flush = flushing(moe)
    moe.micro_step(Stack.of([np.array([1, 2]), np.array([3, 4, 5])]))
    assert list(flush()["tokens_per_expert", 0].values()) == [1, 2, 3, 4, 5]


def read(counters: Counters, reading: np.ndarray, inside_step: bool) -> np.ndarray:
    return counters.read(Stack.of([reading]), inside_step).values


Kind = Literal["last pass", "grows", "reset each step", "reset now and then"]


class Model:
    """One layer's counter, kept in one of the ways that trainers keep it."""

    def __init__(self, kind: Kind, experts: int) -> None:
        self.kind, self.counter = kind, np.zeros(experts)

    def forward(self, counts: np.ndarray) -> np.ndarray:
        self.counter = counts.copy() if self.kind == "last pass" else self.counter + counts
        return self.counter

    def step_end(self, step: int) -> None:
        if self.kind == "reset each step" or (self.kind == "reset now and then" and step % 10 == 9):
            self.counter = np.zeros_like(self.counter)


@settings(deadline=None)
@given(
    kind=st.sampled_from(["last pass", "grows", "reset each step", "reset now and then"]),
    seed=st.integers(0, 2**32 - 1),
    experts=st.integers(2, 16),
    micro_steps=st.integers(1, 4),
)
def test_the_counts_of_each_micro_batch_are_found(kind: Kind, seed: int, experts: int, micro_steps: int) -> None:
    """Batches of one size, as a training has them, split over the experts in any way, all to one included."""
    rng = np.random.default_rng(seed)
    model, counters = Model(kind, experts), Counters(1)
    for step in range(25):
        sharpness = rng.choice([0.05, 1.0, 50.0])
        for micro_step in range(micro_steps):
            counts = rng.multinomial(64, rng.dirichlet(np.full(experts, sharpness))).astype(float)
            found = read(counters, model.forward(counts), inside_step=micro_step > 0)
            np.testing.assert_array_equal(found, counts, err_msg=f"step {step}, micro-step {micro_step}")
        model.step_end(step)


def test_a_saturated_router_gives_the_same_counts_again_and_again() -> None:
    counts = np.array([64.0, 0, 64, 0])
    last_pass, growing = Counters(1), Counters(1)
    for step in range(5):
        for micro_step in range(2):
            found = read(last_pass, counts, inside_step=micro_step > 0)
            np.testing.assert_array_equal(found, counts)
            found = read(growing, counts * (2 * step + micro_step + 1), inside_step=micro_step > 0)
            np.testing.assert_array_equal(found, counts)


def test_a_resumed_counter_is_not_counted_again() -> None:
    counters = Counters(1, Stack.of([np.array([1000.0, 3000.0])]))
    found = read(counters, np.array([1004.0, 3001.0]), inside_step=False)
    np.testing.assert_array_equal(found, [4, 1])


def test_a_counter_that_holds_the_last_pass_may_see_batches_of_any_size() -> None:
    counters = Counters(1)
    sizes = [(4, 4), (8, 2), (3, 3), (2, 8), (9, 9), (5, 5), (50, 60), (61, 60), (70, 80)]
    found = [read(counters, np.array(size, float), place % 2 == 1) for place, size in enumerate(sizes)]
    np.testing.assert_array_equal(found, sizes)


@pytest.mark.parametrize("dtype", [np.float32, np.int32, np.int64, np.float16])
def test_counters_of_any_type(dtype: type) -> None:
    found = read(Counters(1), np.array([[1, 2]], dtype), inside_step=False)
    assert found.dtype == np.float64
    np.testing.assert_array_equal(found, [1, 2])


@settings(deadline=None)
@given(
    kinds=st.lists(st.sampled_from(["last pass", "grows", "reset each step", "reset now and then"]), max_size=4),
    seed=st.integers(0, 2**32 - 1),
)
def test_layers_side_by_side_are_counted_as_each_alone(kinds: list[Kind], seed: int) -> None:
    """Whichever of them have no counter at a reading, and whatever their widths."""
    rng = np.random.default_rng(seed)
    models = [Model(kind, int(rng.integers(2, 6))) for kind in kinds]
    together, alone = Counters(len(models)), [Counters(1) for _ in models]
    for step in range(12):
        for micro_step in range(2):
            readings: list[np.ndarray | None] = []
            for model in models:
                size = model.counter.size
                reading = model.forward(rng.multinomial(9, rng.dirichlet(np.ones(size))).astype(float))
                readings.append(reading.copy() if rng.random() < 0.8 else None)
            found = together.read(Stack.of(readings), micro_step > 0).arrays()
            for ours, counters, reading in zip(found, alone, readings, strict=True):
                expected = counters.read(Stack.of([reading]), micro_step > 0).arrays()[0]
                assert (ours is None) == (expected is None)
                np.testing.assert_array_equal(ours, expected)
        for model in models:
            model.step_end(step)
