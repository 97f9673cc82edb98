"""Trainings by `mindspore.train.Model`: a callback that needs no line in the loop, since there is none."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from mindspore.train import Callback

import healthwatch
from healthwatch.integrations.mindspore.stopping import ending_by
from healthwatch.session import Session


class HealthWatch(Callback):  # type: ignore[misc]
    """Watches `Model.train(epochs, dataset, callbacks=[HealthWatch("train.yaml")])` at every step.

    The model's data must not be sunk (`dataset_sink_mode=False`, the default): a sunk epoch is one step to a callback,
    and to us.

    Raises:
        healthwatch.diagnostics.Invalid: the configuration can't be used.
    """

    def __init__(self, config: str | os.PathLike[str]) -> None:
        super().__init__()
        self.session: Session = healthwatch.load(Path(config))
        self._before: int | None = None  # steps of the epochs that `initial_epoch` leaves out, which MindSpore forgets

    def on_train_epoch_begin(self, run_context: Any) -> None:
        if self._before is None:
            params = run_context.original_args()
            taken = int(params.cur_step_num)
            self._before = max((int(params.cur_epoch_num) - 1) * int(params.batch_num) - taken, 0)
            self.session.attach(params.train_network, params.optimizer, first_step=self._before + taken + 1)

    def on_train_step_end(self, run_context: Any) -> None:
        params = run_context.original_args()
        with ending_by(self.session, run_context.request_stop):
            self.session.step(_loss(params.net_outputs), step=int(params.cur_step_num) + (self._before or 0))

    def __exit__(self, *raised: Any) -> None:
        """MindSpore leaves a callback so where an exception ends the training, without `on_train_end`."""
        if raised and raised[1] is not None:
            self.session.close(raised[1])

    def on_train_end(self, run_context: Any) -> None:  # noqa: ARG002 - MindSpore's signature
        self.session.close()


def _loss(outputs: Any) -> Any:
    """The first of them: with a dynamic loss scale the overflow flag and the scale come behind it."""
    return outputs[0] if isinstance(outputs, (tuple, list)) else outputs
