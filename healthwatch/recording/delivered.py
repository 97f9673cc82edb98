"""What `healthwatch deliver` has delivered of a run: a file beside the run file, which only the run itself writes."""

from __future__ import annotations

import json
import os
from dataclasses import asdict
from pathlib import Path

from healthwatch.alerting.model import Acceptance


class Delivered:
    """JSON lines, one an acceptance. Reading goes on where it stopped."""

    def __init__(self, run: Path) -> None:
        self.path = run.with_suffix(".delivered")
        self._read = 0

    def add(self, acceptance: Acceptance) -> None:
        line = json.dumps(asdict(acceptance), ensure_ascii=False) + "\n"
        descriptor = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        try:
            os.write(descriptor, line.encode())
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def news(self) -> list[Acceptance]:
        """What has come since the last call; a line that is still being written comes with the next one."""
        try:
            with self.path.open("rb") as file:
                file.seek(self._read)
                text = file.read()
        except OSError:
            return []
        whole = text[: text.rfind(b"\n") + 1]
        self._read += len(whole)
        return [Acceptance(**json.loads(line)) for line in whole.splitlines()]
