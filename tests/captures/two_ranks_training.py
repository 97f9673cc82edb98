"""A data-parallel training for `msrun`: `two_ranks_training.py CONFIG`. The loss of rank 0 leaps at step 8."""

from __future__ import annotations

import sys

import mindspore
import numpy as np
from mindspore import Tensor, nn, ops
from mindspore.communication import get_group_size, get_rank, init

import healthwatch

STEPS, LEAP = 13, 8
OVER = "the training is over"


def main() -> None:
    mindspore.set_context(mode=mindspore.PYNATIVE_MODE)
    mindspore.set_device("CPU")
    mindspore.runtime.launch_blocking()
    mindspore.runtime.dispatch_threads_num(1)
    init()
    rank, ranks = get_rank(), get_group_size()
    add = ops.AllReduce()
    net = nn.SequentialCell(nn.Dense(16, 16), nn.ReLU(), nn.Dense(16, 1))
    optimizer = nn.Adam(net.trainable_params(), 1e-3)
    forward_backward = mindspore.value_and_grad(lambda x: (net(x) ** 2).mean(), None, net.trainable_params())
    x = Tensor(np.random.default_rng(rank).normal(size=(8, 16)).astype(np.float32))
    with healthwatch.load(sys.argv[1]).attach(net, optimizer) as hw:
        for step in range(1, STEPS + 1):
            loss, grads = forward_backward(x)
            mean = tuple(add(grad) / ranks for grad in grads)
            optimizer(mean)
            hw.step(float(loss) + (100.0 if (rank, step) == (0, LEAP) else 0.0), grads=mean)
    print(OVER, flush=True)
    add(Tensor(np.ones(1, np.float32))).asnumpy()  # MindSpore may crash as it leaves its cluster: both are here first


if __name__ == "__main__":
    main()
