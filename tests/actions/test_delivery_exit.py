"""A training process ends although a receiver hangs, and no credential is found in anything that it wrote."""

from __future__ import annotations

import subprocess
import sys
import time

import pytest
from loopback import black_hole, http

PROGRAM = """
import sys, time
from healthwatch.actions.notify import Delivery
from healthwatch.alerting.model import Notice, Now
from healthwatch.config import Receiver, Secret

delivery = Delivery({"oncall": Receiver("oncall", tuple(Secret(url) for url in sys.argv[2:]))})
for step in range(1, 201):
    delivery.send([Notice(str(step), "oncall", "opened", "warning", "title", "body", (), Now(step, 0.0))])
time.sleep(0.5)
if sys.argv[1] == "close":
    delivery.close()
print(len(delivery.drain()), flush=True)
"""

LOUD = """
import logging, sys, warnings
warnings.simplefilter("always")
logging.basicConfig(level=1, stream=sys.stderr)
logging.captureWarnings(True)
from healthwatch.actions.notify import Delivery, Pace, validate
from healthwatch.alerting.model import Notice, Now
from healthwatch.config import Receiver, Secret
import time

receivers = {"oncall": Receiver("oncall", tuple(Secret(url) for url in sys.argv[1:]))}
print(validate(receivers), receivers)
delivery = Delivery(receivers, pace=Pace(interval=0.0, first=0.05, longest=0.1, connect=1.0, read=1.0))
delivery.send([Notice("n", "oncall", "opened", "critical", "title", "body", (), Now(1, 0.0))])
end = time.monotonic() + 30
while not all(lane.failed for lane in delivery.state()) and time.monotonic() < end:
    time.sleep(0.05)
assert all(lane.failed for lane in delivery.state()), delivery.state()
print(delivery.problems(), delivery.state(), vars(delivery), receivers)
delivery.close()
print(delivery.problems())
raise RuntimeError("a traceback with these locals", receivers, delivery)
"""


def run(program: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", program, *arguments], capture_output=True, text=True, timeout=120, check=False
    )


@pytest.mark.long
@pytest.mark.parametrize("how", ["close", "leave"])
def test_a_process_ends_while_its_receiver_hangs(how):
    """Case 063: a server that accepts and never answers costs a few seconds at the end, and nothing before."""
    with black_hole() as port:
        begin = time.monotonic()
        mail = f"mailto://127.0.0.1:{port}/?mode=insecure&from=a@b.example&to=c@d.example"
        ended = run(PROGRAM, how, f"json://127.0.0.1:{port}/", mail)
        took = time.monotonic() - begin
    assert ended.returncode == 0, ended.stderr
    assert took < 60.0, "imports included, on a busy machine: one message after the other would take 20 minutes"
    assert ended.stdout.strip() == "0"
    assert ended.stderr == ""


@pytest.mark.long
def test_no_credential_is_found_in_anything_that_is_written():
    """Case 064, with every logger at its lowest level: user, password, path, query and header hold a canary."""
    with black_hole() as port, http(500, 400, 429, "reset", 500) as server:
        ended = run(
            LOUD,
            f"json://CANARYuser:CANARYpass@127.0.0.1:{server.port}/CANARYpath?+X-Token=CANARYheader&:key=CANARYfield&-q=CANARYquery",
            f"xml://CANARYuser:CANARYpass@127.0.0.1:{server.port}/CANARYpath",
            f"json://CANARYuser:CANARYpass@127.0.0.1:{port}/CANARYpath",
            "jsons://CANARYuser:CANARY%40pass@127.0.0.1:1/CANARYpath?verify=no",
            f"mailto://CANARYuser:CANARYpass@127.0.0.1:{port}/?mode=insecure&from=a@b.example&to=CANARYto@d.example&cto=1",
            "slack://CANARY",
            "slakc://CANARY/CANARY",
            "CANARY",
        )
    assert "RuntimeError" in ended.stderr, "the program went through to its end"
    assert ended.stdout.count("HW603") >= 5
    assert "HTTP" in ended.stdout
    assert "CANARY" not in ended.stdout + ended.stderr
