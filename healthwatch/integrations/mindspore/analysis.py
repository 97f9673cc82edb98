"""Turns what a window has recorded into a trace, outside the training process.

MindSpore's own way is to fork the training process, which holds every thread of it for as long as its page tables
take to copy, and may copy a lock that is held. On a CPU the analysis needs nothing but files, so it runs in a fresh
interpreter instead.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

_PROGRAM = "from healthwatch.integrations.mindspore.analysis import main; main()"
_NICENESS = 10


class Analysis(Protocol):
    """The making of one trace."""

    def running(self) -> bool:
        """Whether it goes on; begins it where it has not begun."""
        ...

    def end(self) -> None:
        """End it at once."""
        ...


@dataclass(slots=True)
class FreshAnalysis:
    """In an interpreter of its own, started when it is first asked after; its output goes to `analysis.log`.

    `arguments` are those that MindSpore would hand to its own analysis process.
    """

    folder: Path
    arguments: Mapping[str, Any]
    process: subprocess.Popen[bytes] | None = None

    def running(self) -> bool:
        if self.process is None:
            self.process = self._start()
        return self.process.poll() is None

    def end(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait()

    def _start(self) -> subprocess.Popen[bytes]:
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(each for each in sys.path if each)}
        with (self.folder / "analysis.log").open("wb") as log:
            return subprocess.Popen(
                [sys.executable, "-c", _PROGRAM, json.dumps(self.arguments)],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                env=environment,
            )


@dataclass(slots=True)
class ForkedAnalysis:
    """MindSpore's own child processes, which it has started by itself."""

    processes: Sequence[Any]

    def running(self) -> bool:
        return any(process.is_alive() for process in self.processes)

    def end(self) -> None:
        for process in self.processes:
            process.terminate()


def main() -> None:
    """Analyse what a CPU has recorded; the arguments come as JSON on the command line."""
    os.nice(_NICENESS)
    from mindspore.profiler.analysis.time_converter import TimeConverter
    from mindspore.profiler.common.log import ProfilerLogger
    from mindspore.profiler.platform.cpu_profiler import CPUProfilerAnalysis

    arguments = json.loads(sys.argv[1])
    ProfilerLogger.init(arguments["ascend_ms_dir"])
    TimeConverter.init_parameters(freq=100.0, cntvct=0, localtime_diff=0)
    CPUProfilerAnalysis._run_tasks(**arguments)
