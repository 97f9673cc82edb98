"""The faults that the demo plants. They touch data, weights and gradients, and nothing else."""

from __future__ import annotations

from dataclasses import dataclass
from time import perf_counter
from typing import Any, TypeAlias

import numpy as np
from mindspore import Parameter, Tensor, nn, ops
from numpy.typing import NDArray

Gradients: TypeAlias = tuple[Tensor, ...]

NEVER = range(0)

INPUT_TOKEN, LABEL_TOKEN = 7, 200
BIASED_EXPERTS, BIAS = [3, 5], 20.0
GROWING_STEPS, GROWTH = 10, 1.4
SLOW_LAYER, SLOW_SIZE = 1, 1 << 20
SLOW_STEPS = 5.0  # usual steps that one forward pass takes longer, whatever else the machine does
SECOND = 1  # the micro-batch that is hit, counted from 0


@dataclass(frozen=True, slots=True)
class Plan:
    """The steps at which each fault is at work. Weights and optimizer are put back after those that move them."""

    saved_at: tuple[int, ...] = ()
    one_token: range = NEVER  # the second micro-batch is one token throughout
    router_bias: range = NEVER  # layer 0 prefers two experts
    hot_attention: range = NEVER  # queries and keys of layer 0 grow for ten steps, and stay
    nonfinite: range = NEVER  # loss and gradients of the second micro-batch are NaN
    slow_from: int | None = None  # an operator in one layer's experts holds up every forward pass from there on


NOTHING = Plan()
PLANTED = Plan(
    saved_at=(150, 211, 319),
    one_token=range(151, 154),
    router_bias=range(211, 271),
    hot_attention=range(320, 335),
    nonfinite=range(380, 381),
)


class Faults:
    """What the plan does to one training."""

    def __init__(self, plan: Plan, model: nn.Cell, optimizer: nn.Optimizer) -> None:
        self.plan, self.model = plan, model
        self.weights = {parameter.name: parameter for parameter in model.trainable_params()}
        self.state: list[Parameter] = [*self.weights.values(), *optimizer.get_parameters()]
        self.saved: list[NDArray[Any]] = []
        self.begun: list[float] = []  # when each step began, seconds

    def before_step(self, step: int) -> None:
        plan = self.plan
        self.begun.append(perf_counter())
        if step in plan.saved_at:
            self.saved = [parameter.asnumpy().copy() for parameter in self.state]
        if step in (plan.one_token.stop, plan.router_bias.stop, plan.hot_attention.stop):
            self.restore()
        if step in plan.router_bias[:1]:
            self.bias_router()
        if step in plan.hot_attention[:GROWING_STEPS]:
            self.scale_queries_and_keys()
        if step == plan.slow_from:
            self.slow_down()

    def batch(self, step: int, micro_step: int, tokens: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
        if step in self.plan.one_token and micro_step == SECOND:
            return filled_like(tokens, INPUT_TOKEN), filled_like(labels, LABEL_TOKEN)
        return tokens, labels

    def gradients(self, step: int, micro_step: int, loss: Tensor, grads: Gradients) -> tuple[Tensor, Gradients]:
        if step in self.plan.nonfinite and micro_step == SECOND:
            return loss * float("nan"), tuple(grad * float("nan") for grad in grads)
        return loss, grads

    def restore(self) -> None:
        for parameter, value in zip(self.state, self.saved, strict=True):
            parameter.set_data(Tensor(value))

    def bias_router(self) -> None:
        bias = self.weights["decoder.layers.0.mlp.router.bias"]
        value = bias.asnumpy().copy()
        value[BIASED_EXPERTS] += BIAS
        bias.set_data(Tensor(value))

    def scale_queries_and_keys(self) -> None:
        """The rows of `linear_qkv` are the queries', the keys' and the values', a third each."""
        weight = self.weights["decoder.layers.0.self_attention.linear_qkv.weight"]
        value = weight.asnumpy().copy()
        value[: 2 * len(value) // 3] *= GROWTH
        weight.set_data(Tensor(value))

    def slow_down(self) -> None:
        """Every forward pass of the layer's experts waits for numbers that nobody needs."""
        idle = Tensor(np.zeros(SLOW_SIZE, np.float32))
        held = SLOW_STEPS * float(np.median(np.diff(self.begun)))

        def wait(*_: Any) -> None:
            until = perf_counter() + held
            while perf_counter() < until:
                ops.erfinv(idle).asnumpy()

        self.model.decoder.layers[SLOW_LAYER].mlp.experts.register_forward_hook(wait)


def filled_like(tokens: Tensor, token: int) -> Tensor:
    return Tensor(np.full(tokens.shape, token, np.int32))
