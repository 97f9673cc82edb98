"""A loop that knows no framework: whatever it logs is watched.

    python -m examples.plain_python.train

Least squares by gradient descent. At step 300 one batch is corrupt, and its loss is no number.
"""

from __future__ import annotations

import logging
import sys
from pathlib import Path

import numpy as np

import healthwatch

STEPS, CORRUPT = 400, 300


def train(config: Path, steps: int = STEPS) -> None:
    random = np.random.default_rng(1)
    truth, weights = random.standard_normal(8), np.zeros(8)
    with healthwatch.load(config).attach() as hw:
        for step in range(1, steps + 1):
            inputs = random.standard_normal((64, 8))
            targets = inputs @ truth + 0.1 * random.standard_normal(64)
            if step == CORRUPT:
                targets[7] = np.nan
            errors = inputs @ weights - targets
            gradient = 2 * inputs.T @ errors / len(errors)
            if np.isfinite(gradient).all():
                weights -= 0.05 * gradient
            hw.log(grad_norm=float(np.linalg.norm(gradient)), lr=0.05)
            hw.log_values("micro_norm", np.abs(gradient), PARAMETERS, 0)
            hw.step(float(np.mean(errors**2)))


PARAMETERS = [{"param": f"weight.{place}"} for place in range(8)]


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO, format="%(message)s", stream=sys.stdout)
    train(Path(__file__).with_name("train.yaml"))
