"""The callback that puts a MindSpore Transformers training under watch."""

from __future__ import annotations

import logging
import os
import tempfile
from pathlib import Path
from typing import Any

import yaml
from mindformers.pynative.callback.callback import TrainerCallback
from mindformers.tools.register import MindFormerModuleType, MindFormerRegister

from healthwatch.integrations.mindformers.integration import Ending, MindFormers
from healthwatch.integrations.mindformers.scalars import tracker
from healthwatch.session import Guard, Session, load

SECTIONS = ("monitor", "callbacks", "profiler", "optimizer", "model", "healthwatch")
LOGITS = "max_attention_logit"


@MindFormerRegister.register(MindFormerModuleType.CALLBACK)
class HealthWatch(TrainerCallback):
    """Watches a training from its first step to its last; after the first step nothing in here can end it.

    Args:
        config: the training YAML with the `healthwatch` section. Without it that section is taken from the
            configuration that the trainer was given.

    Raises:
        healthwatch.diagnostics.Invalid: the configuration can't be used; before step 1, with all its problems.
    """

    def __init__(self, config: str | os.PathLike[str] | None = None) -> None:
        super().__init__()
        self._integration: MindFormers | None = None
        self.session: Session | None = None if config is None else load(config, self._find)

    @property
    def type(self) -> str:
        """The trainer asks this of every callback before it builds the model, to see whether attention logits are to
        be tracked; they are if a rule asks for them.
        """
        return "MaxLogitsMonitor" if self._wants_logits() else "HealthWatch"

    def on_train_begin(self, args: Any, state: Any, **kwargs: Any) -> None:
        if self.session is None:
            self.session = _load(args, self._find)
        self.session.attach(kwargs["model"], kwargs.get("optimizer"), first_step=int(state.global_step) + 1)
        self._resets = not _others(self, kwargs)
        if self._wants_logits() and not _tracked(kwargs["model"]):
            message = "rules ask for attention logits, which this model does not track"
            self.session.guard.say(f"{message}: add - type: MaxLogitsMonitor to the callbacks", logging.WARNING)

    def on_step_end(self, args: Any, state: Any, **kwargs: Any) -> None:  # noqa: ARG002 - the trainer's signature
        session, integration = self.session, self._integration
        if session is None or integration is None:
            return
        with session.guard("mindformers"):
            rate = _rate(kwargs, state)
            integration.ending = Ending(state, kwargs.get("loss"), kwargs.get("grad_norm"), rate, tracker())
        session.step(kwargs.get("loss"), step=int(state.global_step))
        with session.guard("mindformers"):
            self._reset_logits(kwargs["model"])

    def on_train_end(self, args: Any, state: Any, **kwargs: Any) -> None:  # noqa: ARG002 - the trainer's signature
        if self.session is not None:
            self.session.close()

    def _find(self, _model: Any, guard: Guard) -> MindFormers:
        self._integration = MindFormers(guard)
        return self._integration

    def _wants_logits(self) -> bool:
        session = self.session
        if session is None or session.config.disabled:
            return False
        return any(LOGITS in rule.expression.text for rule in session.rules)
