"""Where there is no profiler: whoever asks is refused, and hears why."""

from __future__ import annotations

from pathlib import Path

from healthwatch.config import Config, ProfilerSection

WHY = "there is no profiler here: no model of a framework that has one is attached"


class NoProfiler:
    """Never started; what is left of it is what a profiler says of itself."""

    concurrent_stop = takes_window = True
    trace_pattern = "no trace"  # what an earlier attempt has left is not taken for one

    def busy(self, steps: int) -> bool:  # noqa: ARG002
        return True

    def start(self, folder: Path, steps: int, settings: ProfilerSection) -> None:  # noqa: ARG002
        raise RuntimeError(WHY)

    def step(self) -> None:
        raise RuntimeError(WHY)

    def stop(self) -> None:
        raise RuntimeError(WHY)

    def trace(self, folder: Path) -> Path | None:  # noqa: ARG002
        raise RuntimeError(WHY)

    def abandon(self, folder: Path) -> None:
        """Nothing is analysed."""


def remark(config: Config) -> str:
    """What of a config asks in vain where there is no profiler; empty where nothing does."""
    asking = any(step.action == "profile" for ladder in config.escalation.values() for step in ladder)
    lost = ["ladders that ask for a profile get none"] if asking else []
    lost += ["there is no healthy reference"] if config.capture.reference_at is not None else []
    lost += ["the window of the profiler section is not recorded"] if config.profiler.enable_profiling else []
    return f"no profiler here: {', '.join(lost)}" if lost else ""
