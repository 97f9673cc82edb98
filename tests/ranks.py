"""A training on two ranks."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path

LIMIT = 300  # seconds


def two_ranks(folder: Path, program: Path, *arguments: Path) -> subprocess.CompletedProcess[str]:
    """Run a program under `msrun` in a folder; what its workers print is added to what `msrun` does."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [
        *("msrun", "--worker_num=2", "--local_worker_num=2", "--master_addr=127.0.0.1", f"--master_port={port}"),
        *("--join=True", f"--log_dir={folder / 'log'}", str(program), *map(str, arguments)),
    ]
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    done = subprocess.run(
        command,
        cwd=folder,
        env={**os.environ, "PATH": path, "PYTHONFAULTHANDLER": "1"},
        capture_output=True,
        text=True,
        timeout=LIMIT,
        check=False,
    )
    logs = [log.read_text(errors="replace")[-9000:] for log in sorted((folder / "log").glob("worker*"))]
    done.stdout = "\n".join([done.stdout, *logs])
    return done
