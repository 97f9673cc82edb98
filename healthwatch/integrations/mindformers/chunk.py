"""One model of the trainer (one of several under virtual pipeline parallelism), read around each forward pass."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from healthwatch.integrations.mindspore.maxima import LOWEST, raised
from healthwatch.integrations.mindspore.reading import Reader, Reading
from healthwatch.integrations.mindspore.taps import Tap, find_logits, find_routers
from healthwatch.monitors.layout import Stack
from healthwatch.monitors.pace import Pace


class Chunk:
    """Counts of a micro-batch are what a counter gained in its forward pass, so that it does not matter who sets it
    back between two of them, that it grows for ever, or that the backward pass goes through the model again.

    The trainer's maxima start at 0: before the first pass of a step they are lowered, or negative ones were not seen.
    """

    def __init__(self, model: Any, top_k: int | None, reader: Reader, pace: Pace) -> None:
        self._model, self._reader, self._pace = model, reader, pace
        self.routers = find_routers(model, top_k)
        self.logits = find_logits(model)
        self._lowered: list[Any] = []
        self.begin_step()

    def begin_step(self) -> None:
        self._before: Reading | None = None
        self._passes: list[tuple[Reading, Reading]] = []
        self.highest: Reading | None = None

    def hook(self, guarded: Callable[[Callable[[], None]], Callable[..., None]]) -> list[Callable[[], None]]:
        """Read before and after each forward pass; returns what takes the hooks away."""
        if not self.routers.taps and not self.logits:
            return []
        before = self._model.register_forward_pre_hook(guarded(self._begin_pass))
        after = self._model.register_forward_hook(guarded(self._end_pass))
        return [before.remove, after.remove]

    def _begin_pass(self) -> None:
        if not getattr(self._model, "training", True):
            return
        if not self._passes and self.logits:
            with self._pace.timed("logits"):
                self._lower()
        self._before = self._counters()

    def _end_pass(self) -> None:
        if self._before is None:
            return
        self._passes.append((self._before, self._counters()))
        self._before = None
        if self._pace.due("logits"):
            with self._pace.timed("logits"):
                self.highest = self._reader.copies(tap.tensor() for tap in self.logits)

    def _counters(self) -> Reading:
        taps = self.routers.taps if self._pace.due("counters") else ()
        with self._pace.timed("counters"):
            return self._reader.copies(tap.tensor() for tap in taps)

    def _lower(self) -> None:
        from mindspore import Tensor
        from mindspore.graph.api import _no_grad

        with _no_grad():
            for place, tap in enumerate(self.logits):
                tensor: Any = tap.tensor()
                if len(self._lowered) <= place:
                    self._lowered.append(Tensor(np.full(tensor.shape, LOWEST, np.float32)).astype(tensor.dtype))
                tensor.copy_(self._lowered[place])

    # Once the reader has fetched

    @property
    def passes(self) -> int:
        return len(self._passes)

    def counts(self, micro_step: int) -> Stack:
        """By router; none for a micro-step that this chunk did not run."""
        if micro_step >= len(self._passes):
            return _nothing(self.routers.taps)
        before, after = (reading.stack for reading in self._passes[micro_step])
        return _gain(before, after) if after.sizes else _nothing(self.routers.taps)

    def maxima(self) -> Stack:
        """By layer: the highest logit of each head of this rank, none for a layer that did not run."""
        if self.highest is None:
            return _nothing(self.logits)
        if (self.highest.values != LOWEST).all():
            return self.highest.stack
        return Stack.of(raised(array) for array in self.highest.stack.arrays())


def labels_of(taps: tuple[Tap, ...]) -> list[Any]:
    return [tap.labels for tap in taps]


def _nothing(taps: Sequence[Tap]) -> Stack:
    return Stack((None,) * len(taps), np.empty(0))


def _gain(before: Stack, after: Stack) -> Stack:
    """What each counter gained; a pass that itself begins by setting it back leaves what it counted."""
    layout = after.layout
    if not layout.layers:
        return after
    if before.sizes != after.sizes:
        was = [
            each if each is not None and each.size == size else np.zeros(size or 0)
            for each, size in zip(before.arrays(), after.sizes, strict=True)
        ]
        before = Stack.of(was)
    gain = after.values - before.values
    fell = np.minimum.reduceat(gain, layout.starts) < 0
    if fell.any():
        gain = np.where(np.repeat(fell, layout.sizes), after.values, gain)
    return Stack(after.sizes, gain)
