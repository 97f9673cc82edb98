"""Servers on the loopback interface that behave as real receivers do: well, badly, or not at all."""

from __future__ import annotations

import json
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from healthwatch.actions.notify import Delivery, Pace
from healthwatch.alerting.model import Notice, Now
from healthwatch.config import Receiver, Secret

FAST = Pace(interval=0.0, first=0.05, longest=0.2, after_429=0.3, connect=2.0, read=2.0)


class Http:
    """Answers the n-th request as the n-th entry of `script` says; the last entry holds for all that follow.

    An entry is a status, "reset" (the connection is torn down), or a number of seconds to wait before 200.
    """

    def __init__(self, *script: int | float | str) -> None:
        self.script = script or (200,)
        self.messages: list[dict[str, Any]] = []  # of every request
        self.accepted: list[dict[str, Any]] = []
        self.times: list[float] = []
        self.paths: list[str] = []
        self._lock = threading.Lock()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._server.daemon_threads = True
        self.port = self._server.server_port
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()

    def url(self, path: str = "", login: str = "") -> str:
        return f"json://{login}127.0.0.1:{self.port}/{path}"

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def next_answer(self, message: dict[str, Any]) -> int | float | str:
        with self._lock:
            answer = self.script[min(len(self.messages), len(self.script) - 1)]
            self.messages.append(message)
            self.times.append(time.monotonic())
            if answer == 200 or isinstance(answer, float):
                self.accepted.append(message)
            return answer


def _handler(server: Http) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            text = self.rfile.read(int(self.headers["Content-Length"])).decode()
            server.paths.append(self.path)
            is_json = self.headers["Content-Type"] == "application/json"
            answer = server.next_answer(json.loads(text) if is_json else {"text": text})
            if answer == "reset":
                self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                self.close_connection = True
                return
            if isinstance(answer, float):
                time.sleep(answer)
            self.send_response(answer if isinstance(answer, int) else 200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: Any) -> None:
            pass

    return Handler


@contextmanager
def http(*script: int | float | str) -> Iterator[Http]:
    server = Http(*script)
    try:
        yield server
    finally:
        server.close()


@contextmanager
def black_hole() -> Iterator[int]:
    """The port of a server that lets everybody connect and never says a word."""
    with socket.create_server(("127.0.0.1", 0), backlog=64) as server:
        yield server.getsockname()[1]


@contextmanager
def delivery(pace: Pace = FAST, **urls: str | tuple[str, ...]) -> Iterator[Delivery]:
    """A Delivery to receivers given as name=URL or name=(URL, ...)."""
    receivers = {
        name: Receiver(name, tuple(Secret(url) for url in ([given] if isinstance(given, str) else given)))
        for name, given in urls.items()
    }
    made = Delivery(receivers, pace=pace)
    try:
        yield made
    finally:
        made.close(timeout=0.0)


def notice(name: str = "n1", receiver: str = "oncall", **fields: Any) -> Notice:
    given = {
        "reason": "opened",
        "severity": "critical",
        "title": f"CRITICAL: Rule {name}",
        "body": f"**Rule** `{name}`",
        "incidents": (),
        "now": Now(1, 0.0),
    }
    return Notice(id=name, receiver=receiver, **{**given, **fields})


def wait_for(done: Callable[[], Any], seconds: float = 20.0) -> None:
    """Poll until `done()`; fail after a time that no healthy machine needs."""
    end = time.monotonic() + seconds
    while not done():
        if time.monotonic() > end:
            raise AssertionError("it did not happen in time")
        time.sleep(0.01)
