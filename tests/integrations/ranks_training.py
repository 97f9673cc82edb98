"""A data-parallel training for `msrun`: `ranks_training.py CONFIG FOLDER`.

Each rank keeps its own gradients in FOLDER. Rank 0 leaves healthwatch out at steps 4 and 5. The loss of rank 1 leaps
at step 8, where its rules stop it.
"""

from __future__ import annotations

import sys
from pathlib import Path

import mindspore
import numpy as np
from mindspore import Tensor, nn, ops
from mindspore.communication import get_group_size, get_rank, init

import healthwatch

STEPS, LEAP, LEFT_OUT = 20, 8, (4, 5)


def main() -> None:
    mindspore.set_context(mode=mindspore.PYNATIVE_MODE)
    mindspore.set_device("CPU")
    mindspore.runtime.launch_blocking()
    mindspore.runtime.dispatch_threads_num(1)
    init()
    rank, ranks = get_rank(), get_group_size()
    add = ops.AllReduce()
    mindspore.set_seed(1)
    net = nn.SequentialCell(nn.Dense(16, 16), nn.ReLU(), nn.Dense(16, 1))
    optimizer = nn.Adam(net.trainable_params(), 1e-3)
    forward_backward = mindspore.value_and_grad(lambda x: (net(x) ** 2).mean(), None, net.trainable_params())
    random = np.random.default_rng(rank)
    with healthwatch.load(sys.argv[1]).attach(net, optimizer) as hw:
        for step in range(1, STEPS + 1):
            loss, grads = forward_backward(Tensor(random.normal(size=(8, 16)).astype(np.float32)))
            np.savez(Path(sys.argv[2]) / f"{rank}-{step}.npz", *(grad.asnumpy() for grad in grads))
            mean = tuple(add(grad) / ranks for grad in grads)
            watched = rank == 1 or step not in LEFT_OUT
            if watched:
                hw.micro_step(loss, grads, accumulated=grads)
            optimizer(mean)
            if watched:
                hw.step(float(loss) + (100.0 if (rank, step) == (1, LEAP) else 0.0), step=step)


if __name__ == "__main__":
    main()
