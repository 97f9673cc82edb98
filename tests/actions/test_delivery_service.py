"""The border to apprise: real plugins of it, well-behaved and not, and apprise not there at all."""

from __future__ import annotations

import subprocess
import sys

import apprise
import pytest
from loopback import FAST, delivery, http, notice, wait_for

from healthwatch.actions.notify import validate
from healthwatch.actions.notify.service import Service
from healthwatch.config import Receiver, Secret

CHINESE = "梯度范数 👩‍👩‍👧 " * 30


RESULTS = {"oddtrue": True, "oddfalse": False, "oddnone": None, "oddobject": object(), "oddempty": []}
TOLD: list[dict[str, object]] = []


class OddPlugin(apprise.NotifyBase):
    """Gives back what its scheme stands for."""

    service_name = "Odd"
    protocol = tuple(RESULTS)
    request_rate_per_sec = 0
    notify_format = apprise.NotifyFormat.TEXT

    def __init__(self, **given: object) -> None:
        super().__init__(**given)
        self.scheme = given["schema"]

    def send(self, **given: object) -> object:
        TOLD.append(given)
        return RESULTS[str(self.scheme)]

    def notify(self, **given: object) -> object:
        return self.send(**given)

    def url(self, *_: object, **__: object) -> str:
        return f"{self.scheme}://"


class RaisingPlugin(OddPlugin):
    protocol = ("oddraise", "oddexit")

    def send(self, **given: object) -> object:
        raise (SystemExit if self.scheme == "oddexit" else RuntimeError)("CANARY in the text of an exception")


class ShortPlugin(OddPlugin):
    """A text message of 140 characters in which the title stands, too."""

    protocol = ("oddshort",)
    title_maxlen = 0
    body_maxlen = 140
    notify = apprise.NotifyBase.notify

    def send(self, **given: object) -> bool:
        TOLD.append(given)
        return True


@pytest.fixture(autouse=True, scope="module")
def plugins():
    for plugin in (OddPlugin, RaisingPlugin, ShortPlugin):
        apprise.NotificationManager().add(plugin, schemas=plugin.protocol)


@pytest.fixture(autouse=True)
def told():
    TOLD.clear()
    return TOLD


@pytest.mark.parametrize(
    ("scheme", "accepted"),
    [("oddtrue", True), ("oddfalse", False), ("oddnone", False), ("oddobject", True), ("oddempty", False)],
)
def test_what_a_result_means(scheme, accepted):
    """True, False or None in apprise 1, a bool or an object in apprise 2."""
    answer = Service(Secret(f"{scheme}://x"), FAST).send(notice())
    assert answer.accepted is accepted
    assert bool(answer.why) is not accepted


@pytest.mark.parametrize("scheme", ["oddraise", "oddexit"])
def test_a_receiver_that_raises_is_told_once_and_holds_up_nobody(scheme):
    with http(200) as server, delivery(odd=f"{scheme}://CANARY", oncall=server.url()) as sent:
        sent.send([notice("a", "odd"), notice("b", "odd"), notice("c", "oncall")])
        wait_for(lambda: sent.state()[0].failed >= 3)
        wait_for(lambda: sent.state()[1].accepted)
        [problem] = sent.problems()
        assert "'odd'" in problem.message
        assert "Error in apprise" in problem.message or "SystemExit" in problem.message
        assert "CANARY" not in problem.message
        assert [each.notice for each in sent.drain() if each.whole] == ["c"]


def test_a_plain_service_gets_plain_text(told):
    Service(Secret("oddtrue://x"), FAST).send(notice(body="**Rule** (critical): `a_b` is 3"))
    assert told[0]["body"] == "Rule (critical): a_b is 3"


@pytest.mark.parametrize(
    ("fields", "kind"),
    [
        ({"severity": "critical"}, "failure"),
        ({"severity": "warning"}, "warning"),
        ({"severity": "info"}, "info"),
        ({"severity": "critical", "reason": "resolved"}, "success"),
    ],
)
def test_the_kind_of_a_message(fields, kind, told):
    Service(Secret("oddtrue://x"), FAST).send(notice(**fields))
    assert told[0]["notify_type"] == kind


def test_title_and_body_together_stay_within_a_short_limit(told):
    assert Service(Secret("oddshort://x"), FAST).send(notice(body=CHINESE)).accepted
    [message] = told
    assert len(message["body"].encode("utf-16-le")) // 2 <= 140
    assert message["body"].startswith("CRITICAL: Rule n1")
    assert "cut here" in message["body"]


def test_proxies_are_obeyed(monkeypatch):
    with http(200) as proxy:
        monkeypatch.setenv("HTTP_PROXY", f"http://127.0.0.1:{proxy.port}")
        monkeypatch.delenv("NO_PROXY", raising=False)
        monkeypatch.delenv("no_proxy", raising=False)
        service = Service(Secret("json://hooks.example.invalid/path"), FAST)
        assert service.send(notice()).accepted
        assert proxy.paths == ["http://hooks.example.invalid/path"]
        monkeypatch.setenv("NO_PROXY", "hooks.example.invalid")
        assert not service.send(notice()).accepted
        assert len(proxy.paths) == 1


def test_every_url_that_cannot_be_used_is_reported_at_once_and_masked():
    bad = ("slakc://CANARY/x", "CANARY", "json://", "slack://CANARY", "json://127.0.0.1/")
    found = validate({"oncall": Receiver("oncall", tuple(Secret(url) for url in bad)), "ok": Receiver("ok", ())})
    assert [diagnostic.severity for diagnostic in found] == ["error"] * 4
    text = "\n".join(diagnostic.message for diagnostic in found)
    for number, said in enumerate(
        ("slakc://***: apprise has no", "***: it does not begin", "json://", "slack://***: ")
    ):
        assert found[number].message.startswith(f"receiver 'oncall': {said}")
    assert "CANARY" not in text


def test_without_apprise_nothing_breaks_and_the_reason_is_told():
    program = """
import sys
sys.modules["apprise"] = None
from healthwatch.actions.notify import Delivery, validate
from healthwatch.alerting.model import Notice, Now
from healthwatch.config import Receiver, Secret
receivers = {"oncall": Receiver("oncall", (Secret("json://CANARY/"),))}
[found] = validate(receivers)
assert "pip install apprise" in found.message, found
delivery = Delivery(receivers)
delivery.send([Notice("n", "oncall", "opened", "critical", "t", "b", (), Now(1, 0.0))])
delivery.close(timeout=10.0)
assert "pip install apprise" in delivery.problems()[0].message
assert not [name for name in sys.modules if name.split(".")[0] in ("apprise", "requests") and sys.modules[name]]
"""
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=300, check=False)
    assert ended.returncode == 0, ended.stderr
    assert ended.stderr == ""
