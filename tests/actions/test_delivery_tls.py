"""Delivery through TLS: STARTTLS with login, private authorities, and Slack behind a proxy."""

from __future__ import annotations

import contextlib
import json
import select
import socket
import ssl
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from aiosmtpd.controller import Controller
from aiosmtpd.smtp import AuthResult
from loopback import delivery, notice, wait_for

trustme = pytest.importorskip("trustme", reason="makes the certificates; in the test extra")

SLACK = "slack://T1JJ3T3L2/A1BRTD4JD/TIiajkdnlazkcOXrIdevi7FQ"


@pytest.fixture(scope="module")
def authority():
    return trustme.CA()


@pytest.fixture(scope="module")
def context(authority) -> ssl.SSLContext:
    """Of a server called localhost and hooks.slack.com."""
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("localhost", "hooks.slack.com").configure_cert(made)
    return made


@pytest.fixture
def bundle(authority, tmp_path) -> str:
    path = tmp_path / "authority.pem"
    authority.cert_pem.write_to_path(str(path))
    return str(path)


class Mails:
    def __init__(self) -> None:
        self.subjects: list[str] = []
        self.logins: list[tuple[bytes, bytes]] = []
        self.encrypted: list[bool] = []

    async def handle_DATA(self, _server, session, envelope) -> str:  # noqa: N802 - aiosmtpd's name
        self.encrypted.append(session.ssl is not None)
        self.subjects.append(envelope.content.decode().partition("Subject: ")[2].partition("\r\n")[0])
        return "250 OK"

    def login(self, _server, _session, _envelope, _mechanism, data) -> AuthResult:
        self.logins.append((data.login, data.password))
        return AuthResult(success=data.password == b"s3cret")


@contextlib.contextmanager
def smtp(**options: Any) -> Iterator[tuple[Mails, int]]:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    mails = Mails()
    controller = Controller(mails, hostname="127.0.0.1", port=port, authenticator=mails.login, **options)
    controller.start()
    try:
        yield mails, port
    finally:
        controller.stop()


def test_starttls_with_login_and_a_private_authority(context, bundle, monkeypatch):
    monkeypatch.setenv("SSL_CERT_FILE", bundle)
    with smtp(tls_context=context, require_starttls=True, auth_required=True) as (mails, port):
        url = (
            f"mailtos://hw:s3cret@localhost:{port}/?mode=starttls&smtp=localhost&from=hw@run.example&to=o@site.example"
        )
        with delivery(oncall=url) as sent:
            sent.send([notice(title="CRITICAL: x")])
            wait_for(lambda: sent.state()[0].accepted)
    assert mails.subjects == ["CRITICAL: x"]
    assert mails.logins == [(b"hw", b"s3cret")]
    assert mails.encrypted == [True]


def test_a_mail_server_of_an_unknown_authority_gets_no_password(context):
    with smtp(tls_context=context, require_starttls=True, auth_required=True) as (mails, port):
        url = (
            f"mailtos://hw:s3cret@localhost:{port}/?mode=starttls&smtp=localhost&from=hw@run.example&to=o@site.example"
        )
        with delivery(oncall=url) as sent:
            sent.send([notice()])
            wait_for(lambda: sent.state()[0].failed)
            assert "s3cret" not in sent.problems()[0].message
    assert mails.logins == []


def test_a_relay_without_authentication():
    query = "mode=insecure&from=hw@run.example&to=o@site.example"
    with smtp() as (mails, port), delivery(oncall=f"mailto://127.0.0.1:{port}/?{query}") as sent:
        sent.send([notice(title="CRITICAL: relayed")])
        wait_for(lambda: sent.state()[0].accepted)
    assert (mails.subjects, mails.logins) == (["CRITICAL: relayed"], [])


class Hook(ThreadingHTTPServer):
    """An HTTPS server that takes JSON."""

    daemon_threads = True

    def __init__(self, context: ssl.SSLContext) -> None:
        super().__init__(("127.0.0.1", 0), _Post)
        self.socket = context.wrap_socket(self.socket, server_side=True)
        self.taken: list[tuple[str, str, dict[str, Any]]] = []
        threading.Thread(target=self.serve_forever, args=(0.02,), daemon=True).start()


class _Post(BaseHTTPRequestHandler):
    server: Hook

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.taken.append((self.headers["Host"], self.path, body))
        self.send_response(200)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"ok")

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def hook(context) -> Iterator[Hook]:
    server = Hook(context)
    yield server
    server.shutdown()
    server.server_close()


class Proxy(ThreadingHTTPServer):
    """Knows CONNECT alone, and leads every connection to one port."""

    daemon_threads = True

    def __init__(self, port: int) -> None:
        super().__init__(("127.0.0.1", 0), _Connect)
        self.port, self.asked = port, []
        threading.Thread(target=self.serve_forever, args=(0.02,), daemon=True).start()


class _Connect(BaseHTTPRequestHandler):
    server: Proxy

    def do_CONNECT(self) -> None:
        self.server.asked.append(self.path)
        with socket.create_connection(("127.0.0.1", self.server.port)) as there:
            self.send_response(200)
            self.end_headers()
            pairs = {self.connection: there, there: self.connection}
            while True:
                for ready in select.select(list(pairs), [], [], 10)[0]:
                    data = ready.recv(65536)
                    if not data:
                        return
                    pairs[ready].sendall(data)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def proxy(hook, monkeypatch) -> Iterator[Proxy]:
    server = Proxy(hook.server_address[1])
    for name in ("HTTPS_PROXY", "https_proxy"):
        monkeypatch.setenv(name, f"http://127.0.0.1:{server.server_port}")
    for name in ("NO_PROXY", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
    yield server
    server.shutdown()
    server.server_close()


def slack_text(body: dict[str, Any]) -> str:
    return json.dumps(body, ensure_ascii=False)


@pytest.mark.parametrize("trust", ["verify=no", "private authority"])
def test_slacks_webhook_through_a_proxy(hook, proxy, bundle, monkeypatch, trust):
    if trust == "private authority":
        monkeypatch.setenv("REQUESTS_CA_BUNDLE", bundle)
    url = SLACK + ("/?verify=no" if trust == "verify=no" else "/")
    body = "".join(f"- 梯度 `layer.{number}` 9.1 🔥\n" for number in range(4000))
    with delivery(oncall=url) as sent:
        sent.send([notice(title="CRITICAL: GradNormSpike, run demo", body=body)])
        wait_for(lambda: sent.state()[0].accepted)
    assert proxy.asked == ["hooks.slack.com:443"]
    [(host, path, told)] = hook.taken
    assert host == "hooks.slack.com"
    assert path.startswith("/services/T1JJ3T3L2/A1BRTD4JD/")
    text = slack_text(told)
    assert "CRITICAL: GradNormSpike, run demo" in text
    assert "梯度" in text
    assert "cut here" in text, "128 KB are more than Slack takes"


def test_a_server_of_an_unknown_authority_gets_no_message(hook, proxy):
    with delivery(oncall=SLACK + "/") as sent:
        sent.send([notice()])
        wait_for(lambda: sent.state()[0].failed)
        assert "TIiajkdn" not in sent.problems()[0].message
    assert hook.taken == []


def test_no_proxy_is_obeyed(hook, proxy, monkeypatch):
    for name in ("NO_PROXY", "no_proxy"):
        monkeypatch.setenv(name, "localhost")
    with delivery(oncall=f"jsons://localhost:{hook.server_address[1]}/?verify=no") as sent:
        sent.send([notice()])
        wait_for(lambda: sent.state()[0].accepted)
    assert proxy.asked == []
