from __future__ import annotations

import http.server
import json
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

import healthwatch
from healthwatch.session import Session

RULES = """
groups:
  - name: losses
    rules:
      - alert: LossHigh
        expr: loss > 5
        labels: {severity: critical}
        annotations: {summary: "the loss is {{ $value }}"}
      - alert: NormJump
        expr: spike_ratio(norm[20], 3) > 4
        labels: {severity: warning}
"""

LADDER = {"critical": [{"log": "error"}], "warning": [{"log": "warning"}]}


@pytest.fixture
def write_config(tmp_path) -> Callable[..., Path]:
    """Write rules and a config with a `healthwatch` section; keywords add to it or replace in it."""

    def write(rules: str = RULES, **section: Any) -> Path:
        (tmp_path / "rules.yaml").write_text(rules)
        known = {
            "run": "small",
            "output": str(tmp_path / "output"),
            "rules": [str(tmp_path / "rules.yaml")],
            "escalation": LADDER,
        }
        path = tmp_path / "train.yaml"
        path.write_text(yaml.safe_dump({"healthwatch": {**known, **section}}))
        return path

    return write


@pytest.fixture
def open_session(write_config) -> Iterator[Callable[..., Session]]:
    opened: list[Session] = []

    def open_(**section: Any) -> Session:
        opened.append(healthwatch.load(write_config(**section)))
        return opened[-1]

    yield open_
    for session in opened:
        session.close()


class Inbox(http.server.ThreadingHTTPServer):
    """A receiver on the loopback interface: keeps the title of every message that apprise's `json://` posts."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.titles: list[str] = []

    @property
    def url(self) -> str:
        return f"json://127.0.0.1:{self.server_port}/"


class _Handler(http.server.BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.titles.append(json.loads(body)["title"])
        self.send_response(200)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def inbox() -> Iterator[Inbox]:
    server = Inbox()
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield server
    server.shutdown()
    server.server_close()
    thread.join()
