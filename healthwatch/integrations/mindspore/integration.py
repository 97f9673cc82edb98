"""Binds the monitors to a MindSpore model and optimizer."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from healthwatch.integrations.mindspore.maxima import Maxima, Taken
from healthwatch.integrations.mindspore.optimizer import learning_rate, loss_scale, on_gradients, parameter_names
from healthwatch.integrations.mindspore.passes import Counted, Passes
from healthwatch.integrations.mindspore.profiler import MindSporeProfiler
from healthwatch.integrations.mindspore.ranks import rank, ranks
from healthwatch.integrations.mindspore.reading import HostReader, Reader, Reading, host_array, norm, reader
from healthwatch.integrations.mindspore.taps import Routers, find_logits, find_routers, names
from healthwatch.monitors.max_logits import MaxLogits
from healthwatch.monitors.moe import TokensPerExpert
from healthwatch.monitors.pace import Pace
from healthwatch.monitors.train_state import MicroBatch, StepEnd, TrainState
from healthwatch.stream import LabelSet

if TYPE_CHECKING:
    from healthwatch.config import Config
    from healthwatch.monitors import Monitor
    from healthwatch.stream.series import SeriesTable

LOGGER = logging.getLogger("healthwatch")

STEPS_WITHOUT_GRADIENTS = 2  # after which it is said that none come

Guard: TypeAlias = Callable[[str], AbstractContextManager[Any]]
"""Given the name of a part, a context in which nothing that raises gets out."""


@dataclass(slots=True)
class _MicroBatch:
    """What was read at one micro-step, not yet fetched."""

    counters: Counted
    logits: Taken
    loss: Reading | None = None
    own: bool = False  # the loop has handed its gradients, measured or not
    squares: Reading | None = None
    accumulated: Reading | None = None


class MindSpore:
    """Reads what the loop hands over and what the model and the optimizer show, and feeds the monitors at each step.

    Nothing is read from the device before the step ends. `guard` wraps the hook that MindSpore calls inside the
    optimizer: an exception there would end the training.
    """

    def __init__(self, guard: Guard, read: Reader | None = None) -> None:
        self._guard = guard
        self._read = read
        self._undo: list[Callable[[], None]] = []
        self.profiler = MindSporeProfiler()
        self.printed: frozenset[str] = frozenset()  # nobody else prints in such a loop
        self.logit_names: Mapping[LabelSet, str] = {}
        self.pace = Pace(("norms", "logits"))
        self.loss_scale: Any = None  # of the step under way, where the loop says so: a number, a tensor, or a scaler
        self._update_alone = False  # the only micro-batch is the optimizer's: the loop may yet call it its own

    @property
    def rank(self) -> int | None:
        """Of this process in its job; None where communication is not initialised."""
        return rank()

    def attach(self, model: Any, optimizer: Any | None, config: Config, table: SeriesTable) -> Sequence[Monitor]:
        """Find the counters and logits of the model, hook the optimizer, and register every series known by now."""
        self._reader: Reader = self._read or reader()
        self._optimizer = optimizer
        self._routers: Routers = find_routers(model, config.top_k)
        logits = find_logits(model)
        self.logit_names = names(logits)
        self._passes = Passes(self._routers.taps, self._reader, self._guard)
        self._maxima = Maxima(logits, self._reader, self.pace, self._guard)
        self._known_scale = loss_scale(model, optimizer)
        self._train_state = TrainState(parameter_names(model, optimizer))
        monitors: list[Monitor] = [self._train_state]
        if self._routers.taps:
            initial = HostReader().copies(tap.tensor() for tap in self._routers.taps).stack
            labels = [tap.labels for tap in self._routers.taps]
            self._moe = TokensPerExpert(labels, self._routers.topk, initial)
            monitors.append(self._moe)
            self._undo.append(self._passes.hook(model))
        self._max_logits = MaxLogits([tap.labels for tap in logits], config.qk_clip_threshold)
        if logits:
            monitors.append(self._max_logits)
            self._undo += self._maxima.hook(model)
        for monitor in monitors:
            monitor.register(table)
        if optimizer is not None:
            self._undo.append(on_gradients(optimizer, self._guarded_optimizer_step))
        self.profiler.prepare()
        self._own_sum: list[NDArray[Any]] | None = None
        self._loop_hands_gradient = self._gradients_seen = False
        self._steps = 0
        self._begin_step()
        self._step_began = time.perf_counter()
        return monitors

    def micro_step(self, loss: Any, grads: Sequence[Any] | None, accumulated: Sequence[Any] | None = None) -> None:
        """One micro-batch: its loss and its own gradients in the order of the optimizer's parameters.

        `accumulated` is the sum of the gradients of the step so far, this one included. Without it the sum is kept
        here, on a CPU alone: on a device it would take the memory of the gradients once more, and `local_norm` and
        `device_norm` are then left out. Raises ValueError for another number of gradients than of parameters; what
        else was given has been taken by then.
        """
        batch = self._micro_batches[0] if self._update_alone else self._take()
        self._update_alone = False
        batch.loss = self._loss(loss)
        if grads is not None:
            self._check(grads)
            batch.own = True
            if self.pace.due("norms"):
                with self.pace.timed("norms"):
                    batch.squares = self._reader.squares(grads)
                    batch.accumulated = self._accumulated(grads, accumulated, batch.squares)

    def step(self, loss: Any, grads: Sequence[Any] | None = None) -> None:
        """The step is over: `grads` is the gradient of the update, in place of what the optimizer's hook saw.

        Raises ValueError as `micro_step` does, once everything else has gone to the monitors.
        """
        problems: list[ValueError] = []
        try:
            own = self._collect(problems, self._loss, loss)
            if self._updated:  # a loop that skips an update may hand over its gradient at that step alone
                self._loop_hands_gradient = grads is not None
            handed = self._handed if grads is None else self._collect(problems, self._update_squares, grads)
            if not self._micro_batches:
                self._take()
            if len(self._micro_batches) == 1 and not self._micro_batches[0].own:
                only = self._micro_batches[0]  # the gradient of the update is that of the only micro-batch
                only.squares = only.accumulated = handed
            rate = self._rate if self._rate is not None else self._read_rate()
            scale = self._read_scale()
            self._reader.fetch()
            self._feed(own, handed, rate, scale)
            self._notice_what_never_comes()
        finally:
            self._begin_step()
        if problems:
            raise problems[0]

    def detach(self) -> None:
        """Take the hooks away; safe to call more than once."""
        undo, self._undo = self._undo, []
        for each in undo:
            each()

    def _begin_step(self) -> None:
        self._micro_batches: list[_MicroBatch] = []
        self._update_alone = self._updated = False
        self._handed: Reading | None = None
        self._rate: Reading | None = None
        self._own_sum = None
        self.loss_scale = None

    def _notice_what_never_comes(self) -> None:
        """Under `@jit` hooks are silent, and so would everything be that hangs on a gradient."""
        self._steps += 1
        if self._steps == STEPS_WITHOUT_GRADIENTS and not self._gradients_seen:
            who = type(self._optimizer).__name__ if self._optimizer is not None else "no optimizer"
            LOGGER.warning(
                "no gradient was seen in %d steps (%s): micro_norm, local_norm, device_norm, grad_norm have no data; "
                "an optimizer is not called where the whole step runs under @jit: hand the gradients to "
                "micro_step(loss, grads) or step(loss, grads) (told once)",
                self._steps,
                who,
            )

    def _read_scale(self) -> Reading | None:
        scale = self._known_scale if self.loss_scale is None else self.loss_scale
        scale = getattr(scale, "scale_value", scale)
        return None if scale is None else self._reader.copies([scale])

    def _guarded_optimizer_step(self, grads: Sequence[Any]) -> None:
        with self._guard("mindspore optimizer hook"):
            if self._update_alone:  # nobody closed the step of the last update
                self._micro_batches = []
            if not self._micro_batches:
                self._take()
                self._update_alone = True
            self._rate, self._updated = self._read_rate(), True
            if not self._loop_hands_gradient:
                self._handed = self._update_squares(grads)

    def _take(self) -> _MicroBatch:
        """Read counters and logits now: before the update, and before anybody sets them back."""
        batch = _MicroBatch(self._passes.take(), self._maxima.take())
        self._micro_batches.append(batch)
        return batch

    def _read_rate(self) -> Reading | None:
        rate = learning_rate(self._optimizer)
        return None if rate is None else self._reader.copies([rate])

    def _loss(self, loss: Any) -> Reading | None:
        if loss is None:
            return None
        reading = self._reader.copies([loss])
        if reading.sizes != (1,):
            raise ValueError(f"a loss is one number, this one has {reading.sizes[0]}")
        return reading

    @staticmethod
    def _collect(problems: list[ValueError], read: Callable[[Any], Reading | None], value: Any) -> Reading | None:
        """What `read` makes of a value, or None and one problem more."""
        try:
            return read(value)
        except ValueError as error:
            problems.append(error)
            return None

    def _check(self, grads: Sequence[Any]) -> None:
        wanted = len(self._train_state.parameters)
        if len(grads) != wanted:
            raise ValueError(f"{len(grads)} gradients were given for {wanted} trainable parameters")
        self._gradients_seen = True

    def _update_squares(self, grads: Sequence[Any]) -> Reading:
        """At every step, however rarely norms are measured: of a gradient that is not finite each step must tell."""
        self._check(grads)
        return self._reader.squares(grads)

    def _accumulated(self, grads: Sequence[Any], accumulated: Sequence[Any] | None, squares: Reading) -> Reading | None:
        if accumulated is not None:
            if accumulated is grads:
                return squares
            self._check(accumulated)
            return self._reader.squares(accumulated)
        if not isinstance(self._reader, HostReader):
            return None
        if self._own_sum is None:
            self._own_sum = [_summable(host_array(grad)) for grad in grads]
            return squares
        with np.errstate(over="ignore", invalid="ignore"):
            for total, grad in zip(self._own_sum, grads, strict=True):
                np.add(total, host_array(grad), out=total)
        return self._reader.squares(self._own_sum)

    def _feed(self, loss: Reading | None, handed: Reading | None, rate: Reading | None, scale: Reading | None) -> None:
        factor = 1.0 if scale is None else scale.scalar() ** -2  # sums of squares were multiplied by the scale's square
        for batch in self._micro_batches:
            squares, accumulated = _values(batch.squares, factor), _values(batch.accumulated, factor)
            self._train_state.micro_step(MicroBatch(squares, accumulated, _scalar(batch.loss)))
            if self._routers.taps:
                before = batch.counters.before
                self._moe.micro_step(batch.counters.now.stack, None if before is None else before.stack)
        for maxima in self._maxima.of_step([batch.logits for batch in self._micro_batches]):
            self._max_logits.micro_step(maxima)
        now = time.perf_counter()
        took, self._step_began = now - self._step_began, now
        update = _values(handed, factor)
        end = StepEnd(
            loss=_scalar(loss),
            device_loss=_scalar(loss),
            grad_norm=None if update is None else norm(update),
            lr=_scalar(rate),
            step_time=took,
            loss_scale=_scalar(scale),
            reduced=update if ranks() > 1 else None,
        )
        self._train_state.step(end)


def _summable(gradient: NDArray[Any]) -> NDArray[Any]:
    """A copy to which others can be added: float16 has no room for a sum."""
    return gradient.astype(np.promote_types(gradient.dtype, np.float32))


def _values(reading: Reading | None, factor: float) -> NDArray[np.float64] | None:
    return None if reading is None else reading.values * factor


def _scalar(reading: Reading | None) -> float | None:
    return None if reading is None else reading.scalar()
