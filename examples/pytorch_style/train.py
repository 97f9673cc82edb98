"""A loop in the style of PyTorch: `zero_grad`, `backward`, `step`.

    python -m examples.pytorch_style.train

With PyTorch `model`, `optimizer` and `loss` are its own; here some lines of numpy stand in for them, so that the
example runs anywhere. At step 250 the learning rate is set far too high.
"""

from __future__ import annotations

import logging
import sys
from pathlib import Path

import healthwatch
from examples.pytorch_style.tensors import SGD, Linear, batches
from examples.pytorch_style.watch import GradientNorms

STEPS, TOO_HIGH = 300, 250


def train(config: Path, steps: int = STEPS) -> None:
    model = Linear(8, 4)
    optimizer = SGD(model, lr=0.05)
    with healthwatch.load(config).attach() as hw:
        norms = GradientNorms(hw, model)
        for step, (inputs, targets) in enumerate(batches(steps), 1):
            if step == TOO_HIGH:
                optimizer.lr = 3.0
            optimizer.zero_grad()
            loss = model.loss(inputs, targets)
            loss.backward()
            norms.log()
            optimizer.step()
            hw.log(lr=optimizer.lr)
            hw.step(loss.item())


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO, format="%(message)s", stream=sys.stdout)
    train(Path(__file__).with_name("train.yaml"))
