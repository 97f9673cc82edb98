"""Starts a training of the demo in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
OUTPUT = "output/moe_pretrain"
LIMIT = 2400  # seconds: ten times what a quiet machine needs


@dataclass(frozen=True)
class Finished:
    """A training that ran in a process of its own; `folder` is its output folder."""

    folder: Path
    returncode: int
    printed: str

    @property
    def recording(self) -> Path:
        return self.folder / "rank_0.sqlite"


def start(folder: Path, module: str, *arguments: str, **environment: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", f"examples.moe_pretrain.{module}", *arguments],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(REPOSITORY), **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def finish(process: subprocess.Popen[str], folder: Path) -> Finished:
    try:
        printed, _ = process.communicate(timeout=LIMIT)
    finally:
        process.kill()
    return Finished(folder / OUTPUT, process.returncode, printed)
