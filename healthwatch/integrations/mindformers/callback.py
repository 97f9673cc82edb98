"""The callback that puts a MindSpore Transformers training under watch."""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import yaml
from mindformers.pynative.callback.callback import TrainerCallback
from mindformers.tools.register import MindFormerModuleType, MindFormerRegister

from healthwatch import yamlfile
from healthwatch.integrations.mindformers.integration import Ending, MindFormers
from healthwatch.integrations.mindformers.scalars import tracker
from healthwatch.integrations.mindspore.optimizer import learning_rate
from healthwatch.integrations.mindspore.stopping import ending_by
from healthwatch.integrations.mindspore.taps import find_logits
from healthwatch.session import Guard, Session, load

SECTIONS = ("monitor", "callbacks", "profiler", "optimizer", "model", "healthwatch")
LOGGER = logging.getLogger("healthwatch")
LOGITS = "max_attention_logit"


@MindFormerRegister.register(MindFormerModuleType.CALLBACK)
class HealthWatch(TrainerCallback):  # type: ignore[misc]
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
        self._handlers: list[logging.Handler] = []
        self.session: Session | None = None if config is None else load(Path(config), self._find)

    @property
    def type(self) -> str:
        """The trainer asks this of every callback before it builds the model, to see whether attention logits are to
        be tracked; they are if a rule asks for them.
        """
        return "MaxLogitsMonitor" if self._wants_logits() else "HealthWatch"

    def on_train_begin(self, args: Any, state: Any, **kwargs: Any) -> None:
        if self.session is None:
            self.session = load(_sections(args), self._find)
        with self.session.guard("log"):
            self._handlers = _share_handlers()
        self.session.attach(kwargs["model"], kwargs.get("optimizer"), first_step=int(state.global_step) + 1)
        if self._wants_logits() and not _tracks(kwargs["model"]):
            message = "rules ask for attention logits, which this model does not track"
            self.session.guard.say(f"{message}: add - type: MaxLogitsMonitor to the callbacks", logging.WARNING)

    def on_step_end(self, args: Any, state: Any, **kwargs: Any) -> None:  # noqa: ARG002 - the trainer's signature
        session, integration = self.session, self._integration
        if session is None or integration is None:
            return
        with session.guard("mindformers"):
            integration.ending = _ending(state, tracker(), kwargs)
        with ending_by(session, partial(_end_behind, state)):
            session.step(kwargs.get("loss"), step=int(state.global_step))

    def on_train_end(self, args: Any, state: Any, **kwargs: Any) -> None:  # noqa: ARG002 - the trainer's signature
        if self.session is not None:
            self.session.close()
        for handler in self._handlers:
            LOGGER.removeHandler(handler)
        self._handlers = []

    def _find(self, _model: Any, guard: Guard) -> MindFormers:
        self._integration = MindFormers(guard)
        return self._integration

    def _wants_logits(self) -> bool:
        session = self.session
        if session is None or session.config.disabled:
            return False
        return any(LOGITS in rule.expression.text for rule in session.rules)


def _end_behind(state: Any) -> None:
    """The trainer's loop runs while its step is below this number: it saves its checkpoint and ends."""
    state.max_steps = int(state.global_step)


def _share_handlers() -> list[logging.Handler]:
    """Let our logger write where the trainer's does, unless it has been given handlers of its own."""
    from mindformers.tools.logger import get_logger

    if LOGGER.hasHandlers():
        return []
    if LOGGER.level == logging.NOTSET:
        LOGGER.setLevel(logging.INFO)
    shared = list(get_logger().handlers)
    for handler in shared:
        LOGGER.addHandler(handler)
    return shared


def _sections(args: Any) -> yamlfile.Document:
    """What healthwatch reads of the configuration that the trainer was given, as a document of its own."""
    given = args.to_dict()
    data = {name: given[name] for name in SECTIONS if given.get(name) is not None}
    return yamlfile.parse(yaml.safe_dump(_plain(data), sort_keys=False).encode(), "configuration of the trainer")


def _plain(value: Any) -> Any:
    """Without what is no YAML: classes and tensors of the model's section."""
    if isinstance(value, Mapping):
        return {str(key): _plain(each) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(each) for each in value]
    return value if value is None or isinstance(value, (bool, int, float, str)) else str(value)


def _ending(state: Any, tracked: Mapping[str, Any], kwargs: Mapping[str, Any]) -> Ending:
    """Numbers that LossCallback has published spare a copy; it prints, and so publishes, at its interval alone."""
    loss, grad_norm = tracked.get("loss", kwargs.get("loss")), tracked.get("grad-norm", kwargs.get("grad_norm"))
    rate = tracked.get("learning-rate")
    return Ending(state, loss, grad_norm, learning_rate(kwargs.get("optimizer")) if rate is None else rate, tracked)


def _tracks(models: Any) -> bool:
    return any(find_logits(model) for model in models)
