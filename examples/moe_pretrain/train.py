"""A training loop with healthwatch beside it: `python -m examples.moe_pretrain.train --help`."""

from __future__ import annotations

import argparse
import math
import operator
from collections.abc import Callable
from pathlib import Path

import mindspore as ms
import numpy as np
from mindspore import Tensor, nn

import healthwatch
from examples.moe_pretrain.faults import NOTHING, PLANTED, Faults, Plan
from examples.moe_pretrain.model import MoEModel

CONFIG = Path(__file__).with_name("train.yaml")
STEPS = 440
BATCH = 4
MICRO_BATCHES = 2
LEARNING_RATE = 1e-3


def sequences(rng: np.random.Generator, batch: int, length: int, vocabulary: int) -> tuple[Tensor, Tensor]:
    """Arithmetic sequences modulo the vocabulary, and the same moved on by one token."""
    stride = rng.integers(1, 8, (batch, 1))
    start = rng.integers(0, vocabulary, (batch, 1))
    tokens = ((start + stride * np.arange(length + 1)) % vocabulary).astype(np.int32)
    return Tensor(tokens[:, :-1]), Tensor(tokens[:, 1:])


def train(
    plan: Plan, progress: Callable[[int, float], object], config: str | Path = CONFIG, steps: int = STEPS
) -> None:
    """Train on synthetic data; `progress` is called with each step and its loss."""
    ms.runtime.launch_blocking()
    ms.runtime.dispatch_threads_num(1)  # several would wait for each other by spinning
    ms.set_seed(0)
    rng = np.random.default_rng(0)
    model = MoEModel()
    parameters = model.trainable_params()
    optimizer = nn.Adam(parameters, LEARNING_RATE)
    forward_backward = ms.value_and_grad(model, None, parameters, has_aux=True)
    faults = Faults(plan, model, optimizer)

    hw = healthwatch.load(config).attach(model, optimizer)
    for step in range(1, steps + 1):
        faults.before_step(step)
        total: tuple[Tensor, ...] = ()
        losses = []
        for micro_step in range(MICRO_BATCHES):
            batch = sequences(rng, BATCH, model.shape.sequence, model.shape.vocabulary)
            tokens, labels = faults.batch(step, micro_step, *batch)
            (_, loss), grads = forward_backward(tokens, labels)
            loss, grads = faults.gradients(step, micro_step, loss, grads)
            total = tuple(map(operator.add, total, grads)) if total else grads
            losses.append(float(loss))
            hw.micro_step(loss, grads, accumulated=total)
        mean = tuple(grad / MICRO_BATCHES for grad in total)
        step_loss = sum(losses) / MICRO_BATCHES
        if math.isfinite(step_loss):
            optimizer(mean)
        hw.step(step_loss, grads=mean)
        progress(step, step_loss)
    hw.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--config", type=Path, default=CONFIG)
    parser.add_argument("--steps", type=int, default=STEPS)
    parser.add_argument("--no-faults", action="store_true", help="a healthy run: nothing is planted")
    parser.add_argument("--slow-from", type=int, metavar="STEP", help="one slow operator from there on, nothing else")
    options = parser.parse_args()
    plan = NOTHING if options.no_faults else PLANTED
    if options.slow_from is not None:
        plan = Plan(slow_from=options.slow_from)
    train(plan, lambda step, loss: print(step, round(loss, 4)), options.config, options.steps)


if __name__ == "__main__":
    main()
