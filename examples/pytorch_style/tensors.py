"""Just enough of a framework for the loop beside it, with the names that PyTorch uses."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


@dataclass
class Tensor:
    data: Array
    requires_grad: bool = False
    grad: Tensor | None = None
    _backward: Callable[[], None] | None = None

    def backward(self) -> None:
        if self._backward is not None:
            self._backward()

    def item(self) -> float:
        return float(self.data)

    def detach(self) -> Tensor:
        return Tensor(self.data)

    def cpu(self) -> Tensor:
        return self

    def numpy(self) -> Array:
        return self.data


class Linear:
    def __init__(self, inputs: int, outputs: int) -> None:
        random = np.random.default_rng(2)
        self.weight = Tensor(0.1 * random.standard_normal((inputs, outputs)), requires_grad=True)
        self.bias = Tensor(np.zeros(outputs), requires_grad=True)

    def named_parameters(self) -> Iterator[tuple[str, Tensor]]:
        yield "weight", self.weight
        yield "bias", self.bias

    def loss(self, inputs: Array, targets: Array) -> Tensor:
        """Mean squared error."""
        errors = inputs @ self.weight.data + self.bias.data - targets

        def backward() -> None:
            self.weight.grad = Tensor(2 * inputs.T @ errors / errors.size)
            self.bias.grad = Tensor(2 * errors.sum(axis=0) / errors.size)

        return Tensor(np.mean(np.square(errors)), _backward=backward)


class SGD:
    def __init__(self, model: Linear, lr: float) -> None:
        self.model, self.lr = model, lr

    def zero_grad(self) -> None:
        for _, parameter in self.model.named_parameters():
            parameter.grad = None

    def step(self) -> None:
        for _, parameter in self.model.named_parameters():
            if parameter.grad is not None:
                parameter.data -= self.lr * parameter.grad.data


def batches(number: int) -> Iterator[tuple[Array, Array]]:
    random = np.random.default_rng(3)
    truth = random.standard_normal((8, 4))
    for _ in range(number):
        inputs = random.standard_normal((32, 8))
        yield inputs, inputs @ truth + 0.3 * random.standard_normal((32, 4))
