"""What the layers above implement: the profiler of a framework and the outbox of a run."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

from healthwatch.alerting.model import Acceptance, Notice, Untold
from healthwatch.config import ProfilerSection


class Profiler(Protocol):
    """A framework's profiler. One object serves all captures of a process, one window at a time."""

    @property
    def concurrent_stop(self) -> bool:
        """Whether `stop` may run beside the training, on a thread of its own."""
        ...

    @property
    def takes_window(self) -> bool:
        """Whether the config's static window is left to us: a trainer that has its own records it itself."""
        ...

    @property
    def trace_pattern(self) -> str:
        """Where traces lie below the folder of their window, as a pattern of `Path.glob`."""
        ...

    def busy(self, steps: int) -> bool:
        """Whether a profiler is active, or somebody else's will be within `steps` steps; constructs nothing."""
        ...

    def start(self, folder: Path, steps: int, settings: ProfilerSection) -> None:
        """Begin recording the next `steps` steps into `folder`; raises where recording did not start."""
        ...

    def step(self) -> None:
        """A step has ended inside the window; must not take long, not even for the last one."""
        ...

    def stop(self) -> None:
        """End the window, early or not; the analysis may go on in another process. Raises where it did not end."""
        ...

    def trace(self, folder: Path) -> Path | None:
        """The finished trace below `folder`, None while it is analysed; raises if there will be none."""
        ...

    def abandon(self, folder: Path) -> None:
        """End an analysis that takes too long."""
        ...


class Outbox(Protocol):
    """Notices that must reach their receiver, kept in the same transaction as the transitions behind them."""

    def put(self, notice: Notice) -> None: ...

    def accepted(self, acceptance: Acceptance) -> None: ...

    def pending(self) -> list[Untold]: ...
