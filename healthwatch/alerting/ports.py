"""What the layers above implement: the profiler of a framework and the outbox of a run."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Protocol

from healthwatch.alerting.model import Notice


class Profiler(Protocol):
    """A framework's profiler. One object serves all captures of a process."""

    def busy(self) -> bool:
        """Whether somebody else's profiler is active; asked before anything is constructed."""
        ...

    def start(self, folder: Path, steps: int, settings: dict[str, Any]) -> None:
        """Begin recording the next `steps` steps into `folder`; raises where recording did not start."""
        ...

    def step(self) -> None:
        """A step has ended inside the window."""
        ...

    def stop(self) -> None:
        """End the window; the analysis may go on in another process."""
        ...

    def trace(self, folder: Path) -> Path | None:
        """The finished trace below `folder`, None while there is none."""
        ...


class Outbox(Protocol):
    """Notices that must reach their receiver, kept in the same transaction as the transitions behind them."""

    def put(self, notice: Notice) -> None: ...

    def accepted(self, notice_id: str, time: float) -> None: ...

    def pending(self) -> list[Notice]: ...
