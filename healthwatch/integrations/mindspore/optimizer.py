"""What an optimizer knows: its parameters, the learning rate in force, and the gradient that it is handed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from healthwatch.integrations.mindspore.calls import watch_calls


def parameter_names(model: Any, optimizer: Any | None) -> tuple[str, ...]:
    """Names of the trainable parameters in the order of their gradients; a name that comes again is numbered."""
    parameters = optimizer.parameters if optimizer is not None else model.trainable_params()
    names: list[str] = []
    times: dict[str, int] = {}
    for parameter in parameters:
        if parameter.requires_grad:
            times[parameter.name] = times.get(parameter.name, 0) + 1
            again = times[parameter.name]
            names.append(parameter.name if again == 1 else f"{parameter.name}#{again}")
    return tuple(names)


def learning_rate(optimizer: Any | None) -> Any | None:
    """The rate of the coming update, of the first group where there are several; a number or a tensor."""
    if optimizer is None:
        return None
    groups = getattr(optimizer, "param_groups", None)
    if groups:
        return groups[0]["lr"]
    rate = optimizer.get_lr() if hasattr(optimizer, "get_lr") else getattr(optimizer, "learning_rate", None)
    return rate[0] if isinstance(rate, (tuple, list)) else rate


def on_gradients(optimizer: Any, tell: Callable[[Sequence[Any]], None]) -> Callable[[], None]:
    """Call `tell` with the gradients of every update, before it is made; returns what ends that."""

    def before(arguments: Sequence[Any]) -> None:
        if arguments and isinstance(arguments[0], (tuple, list)):
            tell(arguments[0])

    return watch_calls(optimizer, before)


def loss_scale(model: Any, optimizer: Any | None) -> Any | None:
    """By what the gradients that the optimizer is handed are multiplied: it divides by that itself, or the cell around
    it (`nn.TrainOneStepCell(sens=...)`) lets it be. None where neither says so.
    """
    for owner, name in ((model, "sens"), (optimizer, "loss_scale")):
        scale = getattr(owner, name, None)
        if isinstance(scale, (int, float)) and not isinstance(scale, bool) and scale not in (0, 1):
            return scale
    return None
