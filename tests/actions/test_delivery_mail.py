"""Delivery by real SMTP."""

from __future__ import annotations

import email
import email.policy
import socket
from contextlib import contextmanager

import pytest
from aiosmtpd.controller import Controller
from loopback import black_hole, delivery, notice, wait_for


class Inbox:
    """Takes every mail, or answers `refusal` to the first ones."""

    def __init__(self, refusals: int = 0) -> None:
        self.refusals = refusals
        self.mails: list[email.message.EmailMessage] = []

    async def handle_DATA(self, _server, _session, envelope) -> str:  # noqa: N802 - aiosmtpd's name
        if self.refusals:
            self.refusals -= 1
            return "451 try again later"
        self.mails.append(email.message_from_bytes(envelope.content, policy=email.policy.default))
        return "250 OK"


@contextmanager
def smtp(refusals: int = 0):
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    inbox = Inbox(refusals)
    controller = Controller(inbox, hostname="127.0.0.1", port=port)
    controller.start()
    try:
        yield inbox, f"mailto://127.0.0.1:{port}/?mode=insecure&from=hw@run.example&to=oncall@site.example"
    finally:
        controller.stop()


def parts(mail: email.message.EmailMessage) -> dict[str, str]:
    return {part.get_content_type(): part.get_content() for part in mail.walk() if not part.is_multipart()}


def test_a_mail_holds_title_and_body():
    body = '**GradNormSpike** (critical): up\n\n- Worst: `micro_norm{param="<wq>"}` 12.5 梯度 👩‍👩‍👧\n'
    with smtp() as (inbox, url), delivery(oncall=url) as sent:
        sent.send([notice(title="CRITICAL: GradNormSpike 梯度 🔥, run demo", body=body)])
        wait_for(lambda: sent.state()[0].accepted)
    [mail] = inbox.mails
    assert mail["subject"] == "CRITICAL: GradNormSpike 梯度 🔥, run demo"
    html = parts(mail)["text/html"]
    assert "<strong>GradNormSpike</strong>" in html
    assert '<code>micro_norm{param="&lt;wq&gt;"}</code> 12.5 梯度 👩‍👩‍👧' in html


def test_a_title_cannot_add_a_header():
    with smtp() as (inbox, url), delivery(oncall=url) as sent:
        sent.send([notice(title="CRITICAL: x\r\nBcc: everybody@site.example")])
        wait_for(lambda: sent.state()[0].accepted)
    [mail] = inbox.mails
    assert mail["bcc"] is None
    assert mail["subject"] == "CRITICAL: x Bcc: everybody@site.example"


@pytest.mark.long  # apprise itself leaves 5.5 s between two mails
def test_a_temporary_refusal_is_retried():
    with smtp(refusals=1) as (inbox, url), delivery(oncall=url) as sent:
        sent.send([notice("a")])
        wait_for(lambda: sent.state()[0].accepted)
        assert [each.notice for each in sent.drain() if each.whole] == ["a"]
        assert len(sent.problems()) == 1
    assert len(inbox.mails) == 1


def test_64_kb_are_cut_and_marked():
    with smtp() as (inbox, url), delivery(oncall=url) as sent:
        sent.send([notice(body="".join(f"- 梯度 `layer.{number}` 9.1\n" for number in range(3000)))])
        wait_for(lambda: sent.state()[0].accepted)
    html = parts(inbox.mails[0])["text/html"]
    assert "<code>layer.0</code>" in html
    assert "cut here" in html


def test_a_mail_server_that_says_nothing_ends_by_its_timeout():
    query = "mode=insecure&from=a@b.example&to=c@d.example&cto=0.5"
    with black_hole() as port, delivery(oncall=f"mailto://127.0.0.1:{port}/?{query}") as sent:
        sent.send([notice()])
        wait_for(lambda: sent.state()[0].failed)
        assert "mailto://127.0.0.1" in sent.problems()[0].message
