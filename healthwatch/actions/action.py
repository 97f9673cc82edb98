"""What an action is. Built-in ones and those of plug-ins come through one door: entry points `healthwatch.actions`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.metadata import EntryPoint, entry_points
from typing import TYPE_CHECKING, Any, Protocol

from healthwatch.alerting.model import Intent, Notice
from healthwatch.config import Config
from healthwatch.config.escalation import ACTION_GROUP, BUILTIN_ACTIONS
from healthwatch.diagnostics import Diagnostic
from healthwatch.rulefile import Rule

if TYPE_CHECKING:
    from healthwatch.actions.profile import Captures


@dataclass(frozen=True, slots=True)
class Site:
    """What an action finds in the process that it runs in.

    `tell(part, message)` logs the first problem of a part and counts them all; `post(notice)` puts a message into the
    outbox, to be sent once the step is recorded; `stop(reason)` ends the training at the end of this step.
    """

    config: Config
    rank: int
    rules: Mapping[str, Rule]
    captures: Captures | None
    tell: Callable[[str, str], Any]
    post: Callable[[Notice], None]
    stop: Callable[[str], None]


class Performer(Protocol):
    """An action at work in one process. It is called on the training's own thread: it must not wait."""

    def perform(self, intent: Intent) -> None: ...

    def close(self, timeout: float) -> None:
        """The run ends: finish or leave what is under way, within `timeout` seconds."""
        ...


class Action(Protocol):
    """What an entry point names, under the word that a ladder calls it by.

    `order` is None for an action that comes once the step is recorded. Others come before, the lowest first: their
    work is part of what is recorded.
    """

    @property
    def order(self) -> int | None: ...

    def check(self, argument: Any) -> str:
        """What is wrong with what a ladder says behind the action's name; empty where nothing is."""
        ...

    def open(self, site: Site) -> Performer: ...


@dataclass(frozen=True, slots=True)
class Once:
    """A performer without anything to close."""

    perform: Callable[[Intent], None]

    def close(self, timeout: float) -> None:
        """Nothing is under way."""


def find(name: str) -> Action:
    """The action of a name.

    Raises:
        LookupError: nobody offers it.
        Exception: whatever a plug-in raises when it is imported.
    """
    offered = _offered().get(name)
    if offered is None:
        raise LookupError(f"no action is called {name!r}")
    action: Action = offered.load()
    return action


def _offered() -> dict[str, EntryPoint]:
    """Built-in names can't be taken over."""
    return {entry.name: entry for entry in (*entry_points(group=ACTION_GROUP), *BUILTIN)}


BUILTIN = tuple(
    EntryPoint(name, f"healthwatch.actions.builtin:{name.upper()}", ACTION_GROUP) for name in BUILTIN_ACTIONS
)


def check(config: Config) -> list[Diagnostic]:
    """Problems of the ladders' actions: one that can't be loaded, an argument that it can't use."""
    found = []
    for ladder, steps in config.escalation.items():
        for step in steps:
            try:
                problem = find(step.action).check(step.argument)
            except Exception as error:  # a plug-in's own code
                problem = f"it can't be loaded ({type(error).__name__}: {error})"
            if problem:
                message = f'ladder "{ladder}": {step.action}: {problem}'
                found.append(Diagnostic("HW604", "error", message, step.span))  # its line may hold a credential
    return found
