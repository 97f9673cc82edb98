"""A real Alertmanager as the receiver (`make tools` brings one)."""

from __future__ import annotations

import json
import socket
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest
from click.testing import CliRunner
from killable import write_config
from receiving import wait_for

import healthwatch
from healthwatch.actions.notify import Delivery, Pace
from healthwatch.actions.notify.alertmanager import Alertmanager
from healthwatch.alerting.model import Notice, Now
from healthwatch.cli import group
from healthwatch.config import Receiver, Secret, load_config
from healthwatch.recording import Run

TEMPLATES = Path("unpacked", "usr", "share", "prometheus", "alertmanager")  # found in the working directory
CONFIG = "route: {receiver: nobody, group_wait: 1s}\nreceivers: [{name: nobody}]\n"


@pytest.fixture(scope="module")
def alertmanager(alertmanager_binary: Path, tmp_path_factory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("alertmanager")
    (folder / "config.yml").write_text(CONFIG)
    with socket.create_server(("127.0.0.1", 0)) as free:
        address = f"127.0.0.1:{free.getsockname()[1]}"
    command = [alertmanager_binary, f"--config.file={folder}/config.yml", f"--storage.path={folder}/data"]
    command += [f"--web.listen-address={address}", "--cluster.listen-address="]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    with subprocess.Popen(command, cwd=alertmanager_binary.parent / TEMPLATES, **quiet) as process:
        wait_for(lambda: _ready(f"http://{address}/-/ready"), 60)
        yield f"http://{address}"
        process.terminate()


def _ready(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=2) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False


def alerts(url: str, **labels: str) -> list[dict]:
    with urllib.request.urlopen(f"{url}/api/v2/alerts", timeout=5) as answer:
        found = json.load(answer)
    return [each for each in found if all(each["labels"].get(name) == value for name, value in labels.items())]


def config_of(tmp_path: Path, url: str) -> Path:
    return write_config(tmp_path, [], receivers={"oncall": {"alertmanager": url, "group_interval": 5}})


@pytest.mark.usefixtures("quick")
def test_incidents_are_its_alerts(alertmanager, tmp_path):
    session = healthwatch.load(config_of(tmp_path, alertmanager)).attach()
    labels = [{"param": f"decoder.layers.{number}.w"} for number in range(5000)]
    for step in range(1, 30):
        session.log_values("norm", [9.5 if step > 20 else 1.0] * 5000, labels)
        session.step(9.0 if step == 10 else 2.0)
        if step == 10:
            wait_for(lambda: alerts(alertmanager, alertname="LossHigh"))
    wait_for(lambda: [each["labels"]["alertname"] for each in alerts(alertmanager, run="killed")] == ["NormHigh"])
    session.close()
    assert alerts(alertmanager, alertname="LossHigh") == [], "resolved"
    [high] = alerts(alertmanager, alertname="NormHigh")
    assert high["status"]["state"] == "active"
    assert high["labels"] == {
        "alertname": "NormHigh",
        "severity": "critical",
        "run": "killed",
        "rank": "0",
        "incident": "NormHigh@22",
    }
    assert high["annotations"]["summary"] == "the norm is 9.5"
    assert "4990 more" in high["annotations"]["description"]
    with Run.open(tmp_path / "output") as run:
        [since] = [each.since.time for each in run.incidents() if each.rule == "NormHigh"]
        assert all(each.accepted for each in run.outbox())
    assert high["startsAt"].startswith(time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(since)))


def test_notify_test_reaches_it(alertmanager, tmp_path):
    tried = CliRunner().invoke(group, ["notify-test", "oncall", "--config", str(config_of(tmp_path, alertmanager))])
    assert tried.output.startswith("http://127.0.0.1:")
    assert "accepted" in tried.output
    assert len(alerts(alertmanager, alertname="HealthwatchTest")) == 1


def test_what_it_refuses_is_told(alertmanager):
    broken = [{"labels": {}, "annotations": {}, "starts": 1.0, "ends": None}]
    notice = Notice("n", "oncall", "opened", "critical", "t", "b", (), Now(1, 1.0), {"alerts": broken})
    answer = Alertmanager(Secret(alertmanager), Pace()).send(notice)
    assert (answer.accepted, answer.status) == (False, 400)


class Busy(ThreadingHTTPServer):
    daemon_threads = True
    requests: list[tuple[str, str | None]]


class _Handler(BaseHTTPRequestHandler):
    server: Busy

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self.server.requests.append((self.path, self.headers["Authorization"]))
        self.send_response(429 if len(self.server.requests) == 1 else 302 if len(self.server.requests) == 2 else 200)
        self.send_header("Retry-After", "1")
        self.send_header("Location", "/elsewhere")
        self.send_header("Content-Length", "0")
        self.end_headers()

    def do_GET(self) -> None:
        self.send_error(500)

    def log_message(self, *_: object) -> None:
        pass


def test_it_asks_for_time_and_a_login_stays_hidden():
    server = Busy(("127.0.0.1", 0), _Handler)
    server.requests = []
    Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    url = f"http://hw:p%40ss@127.0.0.1:{server.server_port}/prefix/"
    receiver = Receiver("oncall", (), alertmanager=Secret(url))
    delivery = Delivery({"oncall": receiver}, pace=Pace(interval=0.0, first=0.05, longest=0.1, after_429=0.1))
    begin = time.monotonic()
    delivery.send([Notice("n", "oncall", "opened", "critical", "t", "b", (), Now(1, 1.0))])
    wait_for(delivery.drain)
    assert time.monotonic() - begin >= 1.0
    assert server.requests == [("/prefix/api/v2/alerts", "Basic aHc6cEBzcw==")] * 3
    [problem] = delivery.problems()
    assert "HTTP 302" in problem.message
    assert "p%40ss" not in problem.message + repr(delivery.state()) + repr(receiver)
    server.shutdown()
    server.server_close()


def test_an_address_that_is_none_is_refused(tmp_path):
    config, found = load_config(config_of(tmp_path, "alertmanager:9093"))
    assert config is not None, found
    assert "http://host:port" in (Alertmanager(Secret("alertmanager:9093"), Pace()).open() or "")
    with pytest.raises(healthwatch.diagnostics.Invalid, match="HW601"):
        healthwatch.load(config_of(tmp_path, "alertmanager:9093"))
