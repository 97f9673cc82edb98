"""Everything that a finished demo left behind: the recording, the captures, the log, and what the receivers got."""

from __future__ import annotations

import hashlib
import importlib
import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from examples.moe_pretrain.receivers import Received
from healthwatch.alerting.model import Incident, Transition
from healthwatch.recording import Run
from healthwatch.recording.run import Delivery

NAIVE = Path(__file__).resolve().parents[2] / "tests" / "demo"


@dataclass(frozen=True)
class Evidence:
    """`folder` is the output folder; `http` and `mail` are what came over the wire, in the order of arrival."""

    folder: Path
    http: Sequence[Received]
    mail: Sequence[Received]

    @property
    def recording(self) -> Path:
        return self.folder / "rank_0.sqlite"

    @cached_property
    def incidents(self) -> list[Incident]:
        with Run.open(self.recording) as run:
            return run.incidents()

    @cached_property
    def transitions(self) -> list[Transition]:
        with Run.open(self.recording) as run:
            return run.transitions()

    @cached_property
    def captures(self) -> list[dict[str, Any]]:
        with Run.open(self.recording) as run:
            return run.captures()

    @cached_property
    def outbox(self) -> list[Delivery]:
        with Run.open(self.recording) as run:
            return run.outbox()

    @property
    def config_digest(self) -> str:
        """Of the configuration that the run began with."""
        return hashlib.sha256((self.folder / "train.yaml").read_bytes()).hexdigest()

    @property
    def manifests(self) -> list[Path]:
        return sorted(self.folder.glob("captures/rank_0/*/manifest.json"))

    @cached_property
    def log(self) -> list[str]:
        return (self.folder / "healthwatch.log").read_text("utf-8").splitlines()

    @cached_property
    def second_opinion(self) -> Any:
        """The incidents that the naive evaluator of the tests computes from the recorded samples."""
        return naive("naive").incidents(naive("naive_reading").read(self.recording))

    def save(self) -> None:
        """Keep what the receivers got beside the recording."""
        received = {"http": self.http, "mail": self.mail}
        rows = {name: [{"title": one.title, "body": one.body} for one in got] for name, got in received.items()}
        (self.folder / "received.json").write_text(json.dumps(rows, indent=1, ensure_ascii=False), "utf-8")

    @classmethod
    def load(cls, folder: Path) -> Evidence:
        rows = json.loads((folder / "received.json").read_text("utf-8"))
        http, mail = ([Received(**row) for row in rows[name]] for name in ("http", "mail"))
        return cls(folder, http, mail)


def naive(module: str) -> Any:
    """A module of the naive evaluator, which lives with the tests and knows nothing of healthwatch."""
    if str(NAIVE) not in sys.path:
        sys.path.append(str(NAIVE))
    return importlib.import_module(module)
