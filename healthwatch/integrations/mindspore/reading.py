"""How values leave MindSpore: at once on a CPU, in a single copy at the end of the step on a device."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from healthwatch.monitors.layout import Stack
from healthwatch.monitors.norms import squared_sum

SMALL = 1 << 16  # values of a gradient, up to which launching a kernel costs more than its work
HELD = 1 << 23  # values of small gradients that wait, at most
SCALE = 2.0**-96  # of values whose squares run over in float32


@dataclass(slots=True)
class Reading:
    """Values on their way to the host; whole after the reader's `fetch`.

    `sizes` has one entry per tensor that was read, None for one that was not there.
    """

    sizes: tuple[int | None, ...]
    values: NDArray[np.float64] = field(default_factory=lambda: np.empty(0))
    order: NDArray[np.intp] | None = None  # of what crosses, where it is not that of the values
    scaled: NDArray[np.intp] | None = None  # where the sums of the same squares, times SCALE twice, lie in it

    @property
    def stack(self) -> Stack:
        return Stack(self.sizes, self.values)

    def scalar(self) -> float:
        return float(self.values[0])


class Reader(Protocol):
    """Takes values out of tensors without changing them; nothing that it returns aliases a tensor."""

    def square(self, gradient: Any) -> Any:
        """The sum of squares of one gradient, wherever it lies: for hooks that see gradients one by one."""
        ...

    def stack(self, squares: Sequence[Any]) -> Reading:
        """What `square` gave, one after the other; None is a gradient that was not there."""
        ...

    def squares(self, gradients: Sequence[Any]) -> Reading:
        """The sum of squares of each gradient."""
        ...

    def copies(self, tensors: Iterable[Any]) -> Reading:
        """The values of each tensor as they are now; a tensor may be None."""
        ...

    def fetch(self) -> None:
        """Make every reading so far whole."""
        ...


class HostReader:
    """For tensors that lie in the host's memory, where a copy per tensor is the cheapest of all ways."""

    def square(self, gradient: Any) -> float:
        return squared_sum(host_array(gradient))

    def stack(self, squares: Sequence[Any]) -> Reading:
        return Reading((len(squares),), np.array([each or 0.0 for each in squares], np.float64))

    def squares(self, gradients: Sequence[Any]) -> Reading:
        return self.stack([None if gradient is None else self.square(gradient) for gradient in gradients])

    def copies(self, tensors: Iterable[Any]) -> Reading:
        stack = Stack.of(None if tensor is None else host_array(tensor) for tensor in tensors)
        return Reading(stack.sizes, stack.values)

    def fetch(self) -> None:
        """Nothing is pending here."""


@dataclass(slots=True)
class _Small:
    """A small gradient, and where its sum of squares lies once it has been made."""

    gradient: Any
    sums: Any = None
    place: int = 0


class DeviceReader:
    """For tensors on a device: sums stay there, are stacked, and cross in one copy a step.

    They are float32 there: beside each goes one of the values scaled down, which is taken where the first has run over.
    """

    def __init__(self) -> None:
        self._pending: list[tuple[Reading, Any]] = []
        self._small: list[_Small] = []
        self._held = 0

    def square(self, gradient: Any) -> Any:
        """A sum for a large gradient; small ones wait for others of their shape, to be summed together."""
        if gradient.size > SMALL:
            from mindspore import ops

            values, half = _float32(gradient), _half_of_squares()
            return ops.stack([half(values), half(values * SCALE)]) * 2.0
        small = _Small(gradient)
        self._small.append(small)
        self._held += gradient.size
        if self._held > HELD:
            self._sum_small()
        return small

    def _sum_small(self) -> None:
        from mindspore import ops

        waiting, self._small, self._held = self._small, [], 0
        groups: dict[tuple[Any, ...], list[_Small]] = {}
        for each in waiting:
            groups.setdefault((tuple(each.gradient.shape), each.gradient.dtype), []).append(each)
        for group in groups.values():
            together = _float32(ops.stack([each.gradient for each in group])).reshape(len(group), -1)
            sums = ops.concat([ops.square(values).sum(axis=1) for values in (together, together * SCALE)])
            for place, each in enumerate(group):
                each.gradient, each.sums, each.place = None, sums, place

    def stack(self, squares: Sequence[Any]) -> Reading:
        """Sums lie in the order in which they were made; `order` brings them into that of `squares` on the host."""
        from mindspore import Tensor, float32, ops

        self._sum_small()
        starts: dict[int, int] = {}
        order, scaled = np.empty(len(squares), np.intp), np.empty(len(squares), np.intp)
        tensors: list[Any] = []
        size = 0
        for place, each in enumerate(squares):
            sums = Tensor([0.0, 0.0], float32) if each is None else each.sums if isinstance(each, _Small) else each
            if id(sums) not in starts:
                starts[id(sums)] = size
                tensors.append(sums)
                size += sums.size
            order[place] = starts[id(sums)] + (each.place if isinstance(each, _Small) else 0)
            scaled[place] = order[place] + sums.size // 2
        reading = Reading((len(squares),), order=order, scaled=scaled)
        return self._later(reading, ops.concat(tensors) if tensors else Tensor([], float32))

    def squares(self, gradients: Sequence[Any]) -> Reading:
        return self.stack([None if gradient is None else self.square(gradient) for gradient in gradients])

    def copies(self, tensors: Iterable[Any]) -> Reading:
        from mindspore import Tensor, float32, ops

        taken = [None if each is None else Tensor(each).astype(float32).reshape(-1) for each in tensors]
        reading = Reading(tuple(None if each is None else each.size for each in taken))
        present = [each for each in taken if each is not None]
        # Concatenation copies: what is read is the value of now, not that of the end of the step.
        return self._later(reading, ops.concat([*present, Tensor([0.0], float32)])[:-1]) if present else reading

    def fetch(self) -> None:
        from mindspore import ops

        pending, self._pending = self._pending, []
        if not pending:
            return
        host = ops.concat([tensor for _, tensor in pending]).asnumpy().astype(np.float64)
        start = 0
        for reading, tensor in pending:
            values = host[start : start + tensor.size]
            reading.values = values if reading.order is None else values[reading.order]
            if reading.scaled is not None:
                reading.values = np.where(np.isinf(reading.values), values[reading.scaled] / SCALE**2, reading.values)
            start += tensor.size

    def _later(self, reading: Reading, tensor: Any) -> Reading:
        self._pending.append((reading, tensor))
        return reading


def _float32(tensor: Any) -> Any:
    from mindspore import float32

    return tensor if tensor.dtype == float32 else tensor.astype(float32)


@cache
def _half_of_squares() -> Any:
    from mindspore import ops

    return ops.L2Loss()


def reader() -> Reader:
    """The reader for the device on which MindSpore computes."""
    from mindspore import context

    return HostReader() if context.get_context("device_target") == "CPU" else DeviceReader()


def host_array(value: Any) -> NDArray[Any]:
    """A tensor's values (bfloat16, which numpy has not, as float32), or any number or array as it is."""
    array = value.asnumpy() if hasattr(value, "asnumpy") else np.asarray(value)
    return array.astype(np.float32) if array.dtype.kind == "V" else array


def norm(squares: NDArray[np.float64]) -> float:
    """The norm over all parameters, from each one's sum of squares."""
    return math.sqrt(float(squares.sum()))
