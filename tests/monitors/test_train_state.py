"""Losses and norms by micro-step (reference rows 28-33)."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from healthwatch.monitors.train_state import MicroBatch, StepEnd, TrainState


@pytest.fixture
def state() -> TrainState:
    return TrainState(["a", "b"])


@pytest.fixture
def flush(state: TrainState, flushing: Any) -> Any:
    return flushing(state)


def batch(own: list[float], accumulated: list[float] | None = None, loss: float | None = None) -> MicroBatch:
    """From norms, not squares."""
    squares = np.array(own, np.float64) ** 2
    return MicroBatch(squares, None if accumulated is None else np.array(accumulated, np.float64) ** 2, loss)


def test_rows_29_to_33_local_norm_is_the_increment_of_the_accumulated_norm(state: TrainState, flush: Any) -> None:
    state.micro_step(batch([3, 4], [3, 4]))
    state.micro_step(batch([2, 2], [5, 3]))
    state.micro_step(batch([1, 1], [5.5, 3.5]))
    samples = flush()
    assert samples["local_norm", 0] == {("a",): 3, ("b",): 4}
    assert samples["local_norm", 1] == {("a",): 2, ("b",): -1}
    assert samples["local_norm", 2] == {("a",): 0.5, ("b",): 0.5}
    assert samples["device_norm", None] == {("a",): 5.5, ("b",): 3.5}
    assert samples["micro_norm", 1] == {("a",): 2, ("b",): 2}


def test_the_next_step_starts_afresh(state: TrainState, flush: Any) -> None:
    state.micro_step(batch([3, 4], [3, 4], loss=1.0))
    state.step(StepEnd(loss=1.0))
    flush()
    state.micro_step(batch([1, 1], [1, 1]))
    samples = flush()
    assert samples["local_norm", 0] == {("a",): 1, ("b",): 1}
    assert ("loss", None) not in samples
    assert ("local_loss", 0) not in samples


def test_without_the_accumulated_gradient_there_is_no_local_norm(state: TrainState, flush: Any) -> None:
    state.micro_step(batch([3, 4]))
    assert list(flush()) == [("micro_norm", 0)]


def test_losses_and_what_the_step_ends_with(state: TrainState, flush: Any) -> None:
    state.micro_step(MicroBatch(loss=0.5))
    state.micro_step(MicroBatch(loss=0.25))
    state.step(StepEnd(loss=0.75, device_loss=0.7, grad_norm=1.5, lr=1e-3, step_time=0.2))
    samples = flush()
    assert samples["local_loss", 0] == {(): 0.5}
    assert samples["local_loss", 1] == {(): 0.25}
    step = {name: value[()] for (name, micro_step), value in samples.items() if micro_step is None}
    assert step == {"loss": 0.75, "device_loss": 0.7, "grad_norm": 1.5, "lr": 1e-3, "step_time": 0.2}


def test_nan_and_infinity_are_samples_like_any_other(state: TrainState, flush: Any) -> None:
    state.micro_step(batch([math.nan, math.inf], [math.nan, math.inf], loss=math.nan))
    state.micro_step(batch([1, 1], [math.nan, math.inf], loss=math.inf))
    samples = flush()
    assert math.isnan(samples["micro_norm", 0]["a",])
    assert samples["micro_norm", 0]["b",] == math.inf
    assert samples["micro_norm", 1] == {("a",): 1, ("b",): 1}
    assert samples["device_norm", None]["b",] == math.inf
    assert math.isnan(samples["local_norm", 1]["b",]), "infinity less infinity"
    assert math.isnan(samples["local_loss", 0][()])
    assert samples["local_loss", 1][()] == math.inf


def test_a_model_without_trainable_parameters_still_has_a_loss(flushing: Any) -> None:
    state = TrainState([])
    flush = flushing(state)
    state.micro_step(MicroBatch(np.zeros(0), np.zeros(0), 2.0))
    assert flush() == {("local_loss", 0): {(): 2.0}}


def test_an_empty_step_gives_nothing(flush: Any) -> None:
    assert flush() == {}
