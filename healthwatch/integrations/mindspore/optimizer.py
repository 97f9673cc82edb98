"""What an optimizer knows: its parameters, the learning rate in force, and the gradient that it is handed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any


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
    """Call `tell` with the gradients of every update, before it is made; returns what takes the hook away."""

    def hook(_cell: Any, args: tuple[Any, ...]) -> None:
        if args and isinstance(args[0], (tuple, list)):
            tell(args[0])

    handle = optimizer.register_forward_pre_hook(hook)
    remove: Callable[[], None] = handle.remove
    return remove
