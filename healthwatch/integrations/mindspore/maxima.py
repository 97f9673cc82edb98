"""The largest attention logits of each forward pass, in whatever way the model keeps them.

A model that keeps the maximum of all passes since its last reset, from 0, never shows a negative one, nor that of a
single pass. There the buffer is lowered before a pass and set to what it would hold without us after it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from enum import Enum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from healthwatch.integrations.mindspore.calls import watch_calls
from healthwatch.integrations.mindspore.reading import Reader, Reading
from healthwatch.integrations.mindspore.taps import Tap
from healthwatch.monitors.layout import Stack
from healthwatch.monitors.pace import Pace

LOWEST = -np.inf
PART = "mindspore attention hook"
STEPS_ALIKE = 3  # with heads that a pass left as they were and none that fell, from which on a maximum is a running one
_RESETS = ("reset_max_attention_logit", "reset_parameter")  # of MindSpore Transformers, whose maxima are running ones


class Keeps(Enum):
    """What a class of cells keeps in its buffer."""

    RUNNING = "the maximum of all passes since somebody set it back"
    LAST = "the maximum of the last pass"
    UNKNOWN = "not seen yet"


@dataclass(slots=True)
class _Watched:
    tap: Tap
    kind: type
    seen: bool = False  # called at all: under `@jit` it never is
    ran: bool = False  # since the last reading
    replaced: bool = False  # a pass makes a new tensor instead of writing into the one that is there
    start: Any = None  # the buffer before the first pass since the last reading
    own: Any = None  # the maximum of the passes since the last reading, once the buffer is lowered
    held: Any = None  # inside a pass: what the buffer held before it was lowered
    entered: Any = None  # inside a pass: the tensor that was there

    def put(self, tensor: Any) -> None:
        if self.replaced:
            setattr(self.tap.cell, self.tap.attribute, tensor)
        else:
            kept: Any = self.tap.tensor()
            kept.copy_(tensor)


@dataclass(frozen=True, slots=True)
class Taken:
    """Of each layer: its maxima and, while it is not known what they are, what the buffer held before."""

    maxima: Reading
    before: Reading


class Maxima:
    """The logits of a model; `guard` is what nothing that raises gets out of."""

    def __init__(
        self, taps: Sequence[Tap], reader: Reader, pace: Pace, guard: Callable[[str], AbstractContextManager[Any]]
    ) -> None:
        self._reader, self._pace, self._guard = reader, pace, guard
        self._watched = [_Watched(tap, type(tap.cell)) for tap in taps]
        self._keeps = {each.kind: Keeps.UNKNOWN for each in self._watched}
        self._alike = dict.fromkeys(self._keeps, 0)  # steps
        self._training = False  # the model has been told that it is trained: other passes are evaluations
        self._lowered: dict[Any, Any] = {}

    def hook(self, model: Any) -> list[Callable[[], None]]:
        """Watch the passes of every layer; returns what ends that."""
        if any(hasattr(cell, _RESETS[0]) for _, cell in model.cells_and_names()):
            self._keeps = dict.fromkeys(self._keeps, Keeps.RUNNING)
        return [self._hook(each) for each in self._watched]

    def _hook(self, watched: _Watched) -> Callable[[], None]:
        if hasattr(watched.tap.cell, _RESETS[1]):
            self._keeps[watched.kind] = Keeps.RUNNING

        def before(_: Sequence[Any]) -> None:
            with self._guard(PART), self._pace.timed("logits"):
                self._begin_pass(watched)

        def after() -> None:
            with self._guard(PART), self._pace.timed("logits"):
                self._end_pass(watched)

        return watch_calls(watched.tap.cell, before, after)

    def _begin_pass(self, watched: _Watched) -> None:
        from mindspore.graph.api import _no_grad

        watched.seen, watched.entered, keeps = True, None, self._keeps[watched.kind]
        training = bool(getattr(watched.tap.cell, "training", True))
        self._training |= training
        tensor = watched.tap.tensor()
        if training is not self._training or not self._pace.due("logits"):
            return
        watched.ran = True
        if tensor is None or keeps is Keeps.LAST:
            return
        with _no_grad():
            watched.entered, held = tensor, self._copy(tensor)
            if watched.start is None:
                watched.start = held
            if keeps is Keeps.RUNNING:
                watched.held = held
                watched.put(self._low(tensor))
                watched.entered = watched.tap.tensor()

    def _end_pass(self, watched: _Watched) -> None:
        from mindspore import ops
        from mindspore.graph.api import _no_grad

        if watched.entered is None:
            return
        tensor, held = watched.tap.tensor(), watched.held
        watched.replaced |= tensor is not watched.entered
        watched.entered = watched.held = None
        if held is None:
            return
        with _no_grad():
            raised = self._copy(tensor)
            watched.put(ops.maximum(held, raised))
            watched.own = raised if watched.own is None else ops.maximum(watched.own, raised)

    def _low(self, tensor: Any) -> Any:
        from mindspore import Tensor

        key = tuple(tensor.shape), tensor.dtype
        if key not in self._lowered:
            self._lowered[key] = Tensor(np.full(tensor.shape, LOWEST, np.float32)).astype(tensor.dtype)
        return self._lowered[key]

    def _copy(self, tensor: Any) -> Any:
        """In one kernel, for a tensor and for a parameter."""
        from mindspore import ops

        return ops.maximum(tensor, self._low(tensor))

    def take(self) -> Taken:
        """What the passes since the last reading have left; nothing at a step at which logits are not measured."""
        due = self._pace.due("logits")
        with self._pace.timed("logits"):
            maxima = self._reader.copies([self._maximum(each) if due else None for each in self._watched])
            before = self._reader.copies([each.start if self._unknown(each) else None for each in self._watched])
        for each in self._watched:
            each.ran, each.start, each.own = False, None, None
        return Taken(maxima, before)

    def _unknown(self, watched: _Watched) -> bool:
        return self._keeps[watched.kind] is Keeps.UNKNOWN

    def _maximum(self, watched: _Watched) -> Any:
        if watched.own is not None:
            return watched.own
        return watched.tap.tensor() if watched.ran or not watched.seen else None

    # Once the reader has fetched

    def of_step(self, taken: Sequence[Taken]) -> list[Stack]:
        """By micro-step, the heads of each layer; none for a layer that did not run.

        A layer has none as well where a pass left a head as it was and it is not known yet whether that is its own.
        """
        unknown = [kind for kind, keeps in self._keeps.items() if keeps is Keeps.UNKNOWN]
        if not unknown and all((each.maxima.values != LOWEST).all() for each in taken):
            return [each.maxima.stack for each in taken]
        readings = [(each.maxima.stack.arrays(), each.before.stack.arrays()) for each in taken]
        for kind in unknown:
            self._learn(kind, [pair for maxima, before in readings for pair in self._pairs(kind, maxima, before)])
        known = [
            [_known(self._keeps[each.kind], *pair) for each, *pair in zip(self._watched, maxima, before, strict=True)]
            for maxima, before in readings
        ]
        return [Stack.of(layers) for layers in known]

    def _pairs(self, kind: type, maxima: Sequence[Any], before: Sequence[Any]) -> list[tuple[Any, Any]]:
        found = zip(self._watched, maxima, before, strict=True)
        return [(now, was) for each, now, was in found if each.kind is kind and now is not None and was is not None]

    def _learn(self, kind: type, passes: Sequence[tuple[NDArray[Any], NDArray[Any]]]) -> None:
        """A running maximum never falls in a pass, and stays as it is where the pass's own is lower."""
        passes = [(now, was) for now, was in passes if now.shape == was.shape]
        if any((now < was).any() for now, was in passes):
            self._keeps[kind] = Keeps.LAST
        elif any((now == was).any() for now, was in passes):
            self._alike[kind] += 1
            if self._alike[kind] == STEPS_ALIKE:
                self._keeps[kind] = Keeps.RUNNING


def _known(keeps: Keeps, maxima: NDArray[Any] | None, before: NDArray[Any] | None) -> NDArray[Any] | None:
    """`before` is None once it is known what the buffer keeps."""
    if keeps is Keeps.LAST or maxima is None:
        return maxima
    if before is not None and before.shape == maxima.shape:
        return None if (maxima == before).any() else maxima
    return raised(maxima)


def raised(array: NDArray[Any] | None) -> NDArray[Any] | None:
    """Without the rows of other ranks (context parallelism), which stay as they were lowered."""
    if array is None:
        return None
    found = array[array != LOWEST]
    return found if found.size else None
