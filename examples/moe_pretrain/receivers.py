"""Two receivers on the loopback interface: an HTTP server and a mail server that keep what they are sent."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from email import message_from_bytes, policy
from email.message import EmailMessage
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from aiosmtpd.smtp import SMTP

HOST = "127.0.0.1"


@dataclass(frozen=True, slots=True)
class Received:
    """One message as it came over the wire."""

    title: str
    body: str


@dataclass(slots=True)
class Receiver:
    """What one receiver got so far, and the apprise URL under which it listens."""

    url: str = ""
    received: list[Received] = field(default_factory=list)


def http_handler(receiver: Receiver) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            payload = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            receiver.received.append(Received(payload["title"], payload["message"]))
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - as in the base class
            """Stay silent."""

    return Handler


class MailHandler:
    def __init__(self, receiver: Receiver) -> None:
        self.receiver = receiver

    async def handle_DATA(self, _server: Any, _session: Any, envelope: Any) -> str:  # noqa: N802
        message = message_from_bytes(envelope.content, policy=policy.default)
        assert isinstance(message, EmailMessage)
        part = message.get_body(("plain", "html"))
        self.receiver.received.append(Received(str(message["Subject"]), part.get_content() if part else ""))
        return "250 OK"


@contextmanager
def http_receiver() -> Iterator[Receiver]:
    receiver = Receiver()
    server = ThreadingHTTPServer((HOST, 0), http_handler(receiver))
    receiver.url = f"json://{HOST}:{server.server_port}/alerts"
    thread = threading.Thread(target=server.serve_forever, name="demo-http", daemon=True)
    thread.start()
    try:
        yield receiver
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@contextmanager
def mail_receiver() -> Iterator[Receiver]:
    receiver = Receiver()
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, name="demo-mail", daemon=True)
    thread.start()
    listening = loop.create_server(lambda: SMTP(MailHandler(receiver), loop=loop), HOST, 0)
    server = asyncio.run_coroutine_threadsafe(listening, loop).result()
    port = server.sockets[0].getsockname()[1]
    receiver.url = f"mailto://{HOST}:{port}?from=healthwatch@example.org&to=oncall@example.org&mode=insecure"
    try:
        yield receiver
    finally:
        loop.call_soon_threadsafe(server.close)
        asyncio.run_coroutine_threadsafe(server.wait_closed(), loop).result()
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()
