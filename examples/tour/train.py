"""A stand-in for any training loop: `python train.py`. Its loss falls; bad data is planted at step 200."""

from __future__ import annotations

import logging
import math
import random

import healthwatch


def main() -> None:
    logging.basicConfig(level=logging.INFO, format="%(levelname)s %(message)s")
    noise = random.Random(0)
    with healthwatch.load("train.yaml").attach() as hw:
        for step in range(1, 301):
            loss = 1.5 + 4.0 * math.exp(-step / 30) + noise.gauss(0, 0.02)
            if 200 <= step < 206:
                loss *= 2.5
            hw.log(queue_depth=3 if 120 <= step < 140 else 8)
            hw.step(loss)


if __name__ == "__main__":
    main()
