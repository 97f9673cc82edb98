"""Calls of a cell, watched from outside."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any


def watch_calls(
    cell: Any, before: Callable[[Sequence[Any]], None], after: Callable[[], None] | None = None
) -> Callable[[], None]:
    """Call `before` with the arguments of every call of a cell, and `after` once it is through; returns what ends that.

    A forward hook would do so too, but under `@jit` MindSpore compiles hooks into the graph, and ours can't be
    compiled: the training would not start. A class that is called differently is not looked at there.
    """
    kind = type(cell)

    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        if self is not cell:  # a copy of it
            return kind.__call__(self, *args, **kwargs)
        before(args)
        try:
            return kind.__call__(self, *args, **kwargs)
        finally:
            if after is not None:
                after()

    watched = type(kind.__name__, (kind,), {"__call__": call, "__module__": kind.__module__})
    cell.__class__ = watched

    def undo() -> None:
        if type(cell) is watched:
            cell.__class__ = kind

    return undo
