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


@dataclass(slots=True)
class Reading:
    """Values on their way to the host; whole after the reader's `fetch`.

    `sizes` has one entry per tensor that was read, None for one that was not there.
    """

    sizes: tuple[int | None, ...]
    values: NDArray[np.float64] = field(default_factory=lambda: np.empty(0))
    order: NDArray[np.intp] | None = None  # of what crosses, where it is not that of the values

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

    Sums of squares are float32 there, so that a norm above 1.8e19 is read as infinity.
    """

    def __init__(self) -> None:
        self._pending: list[tuple[Reading, Any]] = []
        self._small: list[_Small] = []
        self._held = 0

    def square(self, gradient: Any) -> Any:
        """One kernel for a large gradient; small ones wait for others of their shape, to be summed by one kernel."""
        if gradient.size > SMALL:
            return _half_of_squares()(_float32(gradient)) * 2.0
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
            sums = ops.square(together).sum(axis=1)
            for place, each in enumerate(group):
                each.gradient, each.sums, each.place = None, sums, place

    def stack(self, squares: Sequence[Any]) -> Reading:
        """Sums lie in the order in which they were made; `order` brings them into that of `squares` on the host."""
        from mindspore import Tensor, float32, ops

        self._sum_small()
        parts: dict[int, tuple[Any, int]] = {}
        order, size = np.empty(len(squares), np.intp), 0
        single: list[Any] = []
        for each in squares:
            if isinstance(each, _Small) and id(each.sums) not in parts:
                parts[id(each.sums)] = each.sums, size
                size += each.sums.size
        for place, each in enumerate(squares):
            if isinstance(each, _Small):
                order[place] = parts[id(each.sums)][1] + each.place
            else:
                order[place] = size + len(single)
                single.append(Tensor(0.0, float32) if each is None else each)
        tensors = [made for made, _ in parts.values()] + ([ops.stack(single)] if single else [])
        return self._later(
            Reading((len(squares),), order=order), ops.concat(tensors) if tensors else Tensor([], float32)
        )

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
