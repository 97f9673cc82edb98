"""Binds the monitors to the models and the optimizer of a MindSpore Transformers trainer."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import wraps
from itertools import chain
from typing import TYPE_CHECKING, Any

from healthwatch.integrations.mindformers.chunk import Chunk, labels_of
from healthwatch.integrations.mindformers.scalars import Scalars
from healthwatch.integrations.mindspore.integration import Guard
from healthwatch.integrations.mindspore.optimizer import parameter_names
from healthwatch.integrations.mindspore.profiler import MindSporeProfiler
from healthwatch.integrations.mindspore.ranks import rank
from healthwatch.integrations.mindspore.reading import Reader, Reading, reader
from healthwatch.integrations.mindspore.taps import Tap, names
from healthwatch.monitors.layout import Stack
from healthwatch.monitors.max_logits import MaxLogits
from healthwatch.monitors.moe import TokensPerExpert
from healthwatch.monitors.pace import Pace
from healthwatch.monitors.train_state import MicroBatch, StepEnd, TrainState
from healthwatch.stream import LabelSet

if TYPE_CHECKING:
    from healthwatch.config import Config
    from healthwatch.monitors import Monitor
    from healthwatch.stream.series import SeriesTable

PART = "mindformers hook"


@dataclass(slots=True)
class _MicroBatch:
    """What was read of one micro-batch, not yet fetched."""

    squares: Reading | None  # None where norms are not measured at this step
    known: Mapping[int, float]  # squares that the trainer's own monitor has measured, by place
    accumulated: Reading | None  # None where it is the micro-batch itself
    loss: Reading | None

    def values(self) -> MicroBatch:
        loss = None if self.loss is None else self.loss.scalar()
        if self.squares is None:
            return MicroBatch(loss=loss)
        squares = self.squares.values
        squares[list(self.known)] = list(self.known.values())
        accumulated = squares if self.accumulated is None else self.accumulated.values
        return MicroBatch(squares, accumulated, loss)


@dataclass(slots=True)
class Ending:
    """What the trainer hands its callbacks at the end of a step."""

    state: Any
    loss: Any
    grad_norm: Any
    rate: Any
    tracked: Mapping[str, Any] = field(default_factory=dict)


class MindFormers:
    """Reads gradients by a hook on each parameter, counters and logits around each forward pass, losses as the trainer
    records them for its own monitors, whether or not one of those is on.

    Nothing is fetched from a device before the step ends. `guard` wraps every hook: an exception in one of them
    would end the training.
    """

    def __init__(self, guard: Guard, read: Reader | None = None) -> None:
        self._guard, self._read = guard, read
        self._squares: list[Any] = []
        self._known: dict[int, float] = {}
        self._micro_batches: list[_MicroBatch] = []
        self._undo: list[Callable[[], None]] = []
        self.ending: Ending | None = None
        self.printed: frozenset[str] = frozenset({"train_state", "max_logits"})
        self.logit_names: Mapping[LabelSet, str] = {}
        self.pace = Pace(("norms", "counters", "logits"))
        self.loss_scale: Any = None  # the trainer does not scale its loss
        self.profiler = MindSporeProfiler(takes_window=False)  # the trainer has one of its own

    @property
    def rank(self) -> int | None:
        """Of this process in its job; None where communication is not initialised."""
        return rank()

    def attach(self, model: Any, optimizer: Any | None, config: Config, table: SeriesTable) -> Sequence[Monitor]:
        """`model` is the trainer's list of models; everything that can be measured is found here, and hooked."""
        self._reader: Reader = self._read or reader()
        self._models = list(model)
        self._parameters = [each for each in self._owner(optimizer) if each.requires_grad]
        self._train_state = TrainState(parameter_names(None, _Parameters(self._parameters)))
        self._chunks = [Chunk(each, config.top_k, self._reader, self.pace) for each in self._models]
        self._scalars = Scalars()
        monitors: list[Monitor] = [self._train_state, self._scalars]
        taps = tuple(chain.from_iterable(each.routers.taps for each in self._chunks))
        if taps:
            top_k = list(chain.from_iterable(each.routers.topk for each in self._chunks))
            self._moe = TokensPerExpert(labels_of(taps), top_k)
            monitors.append(self._moe)
        logits: tuple[Tap, ...] = tuple(chain.from_iterable(each.logits for each in self._chunks))
        self.logit_names = names(logits)
        if logits:
            self._max_logits = MaxLogits(labels_of(logits), config.qk_clip_threshold)
            monitors.append(self._max_logits)
        self._has_tokens, self._has_logits = bool(taps), bool(logits)
        for monitor in monitors:
            monitor.register(table)
        self._theirs: Any = None
        self._begin_step()
        self._hook()
        self._step_began = time.perf_counter()
        return monitors

    def _owner(self, optimizer: Any | None) -> Sequence[Any]:
        if optimizer is not None:
            return list(optimizer.parameters)
        return [each for model in self._models for each in model.trainable_params()]

    def micro_step(self, loss: Any, grads: Any, accumulated: Any = None) -> None:
        """The trainer's own loop says when a micro-batch is over; nobody else needs to."""

    def step(self, loss: Any, grads: Any = None) -> None:  # noqa: ARG002 - they are gone by now
        """The step is over; `ending` says what the trainer knows of it."""
        if self._known or any(each is not None for each in self._squares):
            self._take(None)  # a pipeline schedule records no loss of a micro-batch
        ending = self.ending or Ending(None, loss, None, None)
        self.ending = None
        named = {"loss": ending.loss, "grad_norm": ending.grad_norm, "lr": ending.rate}
        pending = {name: self._reader.copies([value]) for name, value in named.items() if hasattr(value, "asnumpy")}
        self._reader.fetch()
        known = {name: float(value) for name, value in named.items() if isinstance(value, (int, float))}
        self._feed(ending, known | {name: reading.scalar() for name, reading in pending.items()})
        self._begin_step()

    def detach(self) -> None:
        """Take every hook away; safe to call more than once."""
        undo, self._undo = self._undo, []
        for each in undo:
            each()

    # Hooks

    def _hook(self) -> None:
        for place, parameter in enumerate(self._parameters):
            self._undo.append(parameter.register_hook(self._gradient_hook(place)).remove)
        for chunk in self._chunks:
            self._undo += chunk.hook(self._guarded)
        self._undo.append(on_record(self._models, self._recorded))

    def _guarded(self, do: Callable[[], None]) -> Callable[..., None]:
        def hook(*_: Any) -> None:
            with self._guard(PART):
                do()

        return hook

    def _gradient_hook(self, place: int) -> Callable[[Any], Any]:
        guard, name = self._guard, self._parameters[place].name

        def hook(gradient: Any) -> Any:
            with guard(PART):
                self._square(place, name, gradient)
            return gradient

        return hook

    def _square(self, place: int, name: str, gradient: Any) -> None:
        if self._norms_due:
            with self.pace.timed("norms"):
                self._measure(place, name, gradient)

    def _measure(self, place: int, name: str, gradient: Any) -> None:
        if hasattr(gradient, "to_local"):
            gradient = gradient.to_local()
        else:
            known = measured(self._theirs, name, len(self._micro_batches))
            if known is not None:
                self._known[place] = known
                return
        self._squares[place] = self._reader.square(gradient)

    def _recorded(self, monitor: Any, key: str, value: Any) -> None:
        """What the trainer records for its monitors: a local loss is the end of a micro-batch."""
        with self._guard(PART):
            if key == "moe_tpe_step_begin":
                self._theirs = getattr(monitor, "_monitors", {}).get("train_state")
            elif key == "local_loss":
                self._take(value)
            elif key == "moe_tpe":
                self.printed |= {"moe_monitor"}  # some versions never record it, and so print nothing

    def _take(self, loss: Any) -> None:
        """The micro-batch's own squares; those of the sum so far, where there is more in it than the micro-batch."""
        taken = None if loss is None else self._reader.copies([loss])
        if not self._norms_due:
            self._micro_batches.append(_MicroBatch(None, {}, None, taken))
            return
        with self.pace.timed("norms"):
            squares, known = self._reader.stack(self._squares), self._known
            self._squares, self._known = [None] * len(self._parameters), {}
            accumulated = self._reader.squares(self._gradients()) if self._micro_batches else None
        self._micro_batches.append(_MicroBatch(squares, known, accumulated, taken))

    def _gradients(self) -> list[Any]:
        """As they lie on the parameters, where the trainer accumulates them."""
        found = [getattr(each, "main_grad", None) for each in self._parameters]
        grads = [each.grad if main is None else main for each, main in zip(self._parameters, found, strict=True)]
        return [grad.to_local() if hasattr(grad, "to_local") else grad for grad in grads]

    # The end of a step

    def _begin_step(self) -> None:
        self._squares, self._known, self._micro_batches = [None] * len(self._parameters), {}, []
        self._norms_due = self.pace.due("norms")
        for chunk in self._chunks:
            chunk.begin_step()

    def _feed(self, ending: Ending, scalars: Mapping[str, float]) -> None:
        for batch in self._micro_batches:
            self._train_state.micro_step(batch.values())
        if self._has_tokens:
            for micro_step in range(max(each.passes for each in self._chunks)):
                self._moe.counted(Stack.together([each.counts(micro_step) for each in self._chunks]))
        if self._has_logits:
            self._max_logits.micro_step(Stack.together([each.maxima() for each in self._chunks]))
        now = time.perf_counter()
        took, self._step_began = now - self._step_began, now
        loss = scalars.get("loss")
        self._train_state.step(StepEnd(loss, loss, scalars.get("grad_norm"), scalars.get("lr"), took))
        if ending.state is not None:
            self._scalars.take(ending.tracked, ending.state)


@dataclass(frozen=True, slots=True)
class _Parameters:
    parameters: Sequence[Any]


def measured(monitor: Any, name: str, micro_step: int) -> float | None:
    """The sum of squares that the trainer's own monitor has just measured of a gradient, where it measures that one.

    It sums in float32: where that has run over or under, it is as if it had not.
    """
    norms = getattr(monitor, "_hook_local_norms", {}).get(name, ())
    if len(norms) != micro_step + 1:
        return None
    square = float(norms[-1]) ** 2
    return square if 0 < square < math.inf else None


def on_record(models: Sequence[Any], tell: Callable[[Any, str, Any], None]) -> Callable[[], None]:
    """Call `tell` with whatever the trainer of these models records for its monitors; returns what ends it.

    The trainer hands its callbacks no monitor before the first step is over, hence the class is wrapped.
    """
    from mindformers.pynative.tools.monitor import MonitorGroup

    inner = MonitorGroup.record

    @wraps(inner)
    def record(self: Any, key: str, value: Any = None, context: Any = None) -> Any:
        result = inner(self, key, value, context)
        if _is_of(self, models):
            tell(self, key, value)
        return result

    def undo() -> None:
        if MonitorGroup.record is record:
            MonitorGroup.record = inner

    MonitorGroup.record = record
    return undo


def _is_of(monitor: Any, models: Sequence[Any]) -> bool:
    """Whether a monitor is that of these models; where it does not say, it is taken to be."""
    bound = getattr(monitor, "_model", None)
    if bound is None:
        return True
    own = bound if isinstance(bound, (list, tuple)) else [bound]
    return any(each is model for each in own for model in models)
