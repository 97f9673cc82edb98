"""Losses and gradient norms, by parameter and by micro-step."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from healthwatch.stream.frame import Frame
    from healthwatch.stream.series import Series, SeriesTable

Squares = NDArray[np.float64]  # one sum of squares per parameter


@dataclass(frozen=True, slots=True)
class MicroBatch:
    """What one micro-step gave: sums of squares of its own gradient and of the gradient accumulated so far.

    Both have one value per trainable parameter, in the order in which the monitor was given the names.
    """

    squares: Squares | None = None
    accumulated: Squares | None = None
    loss: float | None = None


@dataclass(frozen=True, slots=True)
class StepEnd:
    """What is known once the optimizer has run; `step_time` is in seconds.

    `reduced` holds the sums of squares of the gradient that all ranks have agreed on, where there are several.
    """

    loss: float | None = None
    device_loss: float | None = None
    grad_norm: float | None = None
    lr: float | None = None
    step_time: float | None = None
    loss_scale: float | None = None
    reduced: Squares | None = None


NORMS = ("micro_norm", "local_norm", "device_norm", "device_norm_global")
STEP_METRICS = ("loss", "device_loss", "grad_norm", "lr", "step_time", "loss_scale")


class TrainState:
    """The `train_state` monitor, over all trainable parameters whatever is printed of them.

    - `micro_norm{param}`: L2 norm of the micro-batch's own gradient.
    - `local_norm{param}`: by how much the micro-batch changed the norm of the accumulated gradient. It is the whole
      norm at micro-step 0 and tends to shrink after it.
    - `device_norm{param}`: norm of the gradient accumulated over the step.
    - `device_norm_global{param}`: norm of the gradient reduced over the ranks.
    - `local_loss` by micro-step; `loss`, `device_loss`, `grad_norm`, `lr`, `step_time` by step.
    """

    def __init__(self, parameters: Sequence[str]) -> None:
        self.parameters = tuple(parameters)
        self._micro_batches: list[MicroBatch] = []
        self._end = StepEnd()

    def register(self, table: SeriesTable) -> None:
        params = [{"param": name} for name in self.parameters]
        self._norms = {name: table.register(name, params) for name in NORMS}
        self._scalars = {name: table.register(name, [{}]) for name in ("local_loss", *STEP_METRICS)}

    def micro_step(self, batch: MicroBatch) -> None:
        self._micro_batches.append(batch)

    def step(self, end: StepEnd) -> None:
        self._end = end

    def flush(self, frame: Frame) -> None:
        self._flush_norms(frame)
        for micro_step, batch in enumerate(self._micro_batches):
            self._add_scalar(frame, "local_loss", batch.loss, micro_step)
        for name in STEP_METRICS:
            self._add_scalar(frame, name, getattr(self._end, name))
        self._micro_batches, self._end = [], StepEnd()

    def _flush_norms(self, frame: Frame) -> None:
        if not self.parameters:
            return
        previous: Squares | None = None
        for micro_step, batch in enumerate(self._micro_batches):
            if batch.squares is not None:
                frame.add(self._norms["micro_norm"], np.sqrt(batch.squares), micro_step=micro_step)
            if batch.accumulated is not None:
                norm = np.sqrt(batch.accumulated)
                frame.add(self._norms["local_norm"], _increment(norm, previous), micro_step=micro_step)
                previous = norm
        if previous is not None:
            frame.add(self._norms["device_norm"], previous)
        if self._end.reduced is not None:
            frame.add(self._norms["device_norm_global"], np.sqrt(self._end.reduced))

    def _add_scalar(self, frame: Frame, name: str, value: float | None, micro_step: int | None = None) -> None:
        if value is not None:
            series: Series = self._scalars[name]
            frame.add(series, np.array([value], np.float64), micro_step=micro_step)


def _increment(norm: Squares, previous: Squares | None) -> Squares:
    if previous is None:
        return norm
    with np.errstate(invalid="ignore"):  # infinity less infinity is NaN, and told as such
        return norm - previous
