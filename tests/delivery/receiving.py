"""A receiver on the loopback interface, and patience."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class Inbox(ThreadingHTTPServer):
    """Takes whatever is posted to it. Answers 200, or what `script` says first."""

    daemon_threads = True
    request_queue_size = 64

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.script: list[tuple[int, dict[str, str]]] = []
        self.messages: list[dict[str, Any]] = []
        self.taken: list[dict[str, Any]] = []
        threading.Thread(target=self.serve_forever, args=(0.02,), daemon=True).start()

    @property
    def url(self) -> str:
        return f"json://127.0.0.1:{self.server_port}/"

    @property
    def titles(self) -> list[str]:
        return [message["title"] for message in self.taken]


class _Handler(BaseHTTPRequestHandler):
    server: Inbox

    def do_POST(self) -> None:
        try:
            message = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        except ValueError:  # whoever was sending it has been killed
            return
        self.server.messages.append(message)
        status, headers = self.server.script.pop(0) if self.server.script else (200, {})
        if status == 200:
            self.server.taken.append(message)
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


def wait_for(done: Callable[[], Any], seconds: float = 20.0) -> None:
    end = time.monotonic() + seconds
    while not done():
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.01)
