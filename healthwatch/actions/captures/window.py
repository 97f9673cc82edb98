"""The static window of the config's `profiler` section."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from healthwatch.config import ProfilerSection


@dataclass(frozen=True, slots=True)
class StaticWindow:
    """Steps `first` to `last`, recorded below `folder`."""

    first: int
    last: int
    folder: Path

    def __str__(self) -> str:
        return f"static window of steps {self.first} to {self.last}"

    def due(self, step: int) -> bool:
        """Whether that step belongs to it."""
        return self.first <= step <= self.last

    def overlaps(self, first: int, last: int) -> bool:
        return self.first <= last and first <= self.last


def static_window(section: ProfilerSection, rank: int) -> StaticWindow | None:
    """None where it is switched off or this rank is not to be profiled.

    Traces go to `output_path/rank_<r>`, without an `output_path` to `profile/rank_<r>` below the working directory.
    """
    if not section.enable_profiling:
        return None
    if section.profiler_rank is not None and rank not in section.profiler_rank:
        return None
    base = Path(section.output_path) if section.output_path else Path.cwd() / "profile"
    return StaticWindow(section.start_step, section.end_step, base / f"rank_{rank}")
