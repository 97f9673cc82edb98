"""Case 064 through the whole of healthwatch: a credential in every URL is found in nothing that anybody writes."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from killable import write_config

PROGRAM = """
import logging, sys, time, warnings
warnings.simplefilter("always")
logging.basicConfig(level=1, stream=sys.stderr)
logging.captureWarnings(True)
import healthwatch
hw = healthwatch.load(sys.argv[1]).attach()
for step in range(1, 400):
    hw.log(norm=1.0)
    hw.step(9.0 if step > 5 else 2.0)
    lanes = hw._pipeline.delivery.state()
    if step > 20 and lanes and all(lane.failed or lane.accepted for lane in lanes):
        break
    time.sleep(0.05)
hw.close()
print(vars(hw), vars(hw._pipeline.delivery), hw.config, lanes)
raise RuntimeError("a traceback with these locals", hw.config, hw)
"""


@pytest.mark.long
def test_no_credential_in_anything_that_a_run_writes(inbox, tmp_path):
    port = inbox.server_port
    inbox.script = [(500, {}), (429, {"Retry-After": "1"}), (401, {}), (404, {})]
    urls = {
        "json": f"json://CANARYuser:CANARYpass@127.0.0.1:{port}/CANARYpath?+X-Token=CANARYheader",
        "slack": "slack://TCANARY/BCANARY/CANARYCANARYCANARYCANARY/?verify=no",
        "mail": "mailto://CANARYuser:CANARYpass@127.0.0.1:1/?mode=insecure&from=a@b.example&to=CANARYto@d.example&cto=1",
        "telegram": "tgram://123456789:CANARYCANARYCANARYCANARYCANARYCANARY/-100200300?cto=1&rto=1",
    }
    names = list(urls)
    receivers = {name: {"urls": [f"${{URL_{name.upper()}}}"]} for name in names}
    receivers["am"] = {"alertmanager": "${URL_AM}"}
    told = [{"notify": name} for name in receivers]
    config = write_config(tmp_path, [], escalation={"critical": told}, receivers=receivers)
    environment = {f"URL_{name.upper()}": url for name, url in urls.items()}
    environment["URL_AM"] = f"http://CANARYuser:CANARYpass@127.0.0.1:{port}/CANARYpath"
    environment |= {
        "HTTPS_PROXY": "http://127.0.0.1:1",
        "https_proxy": "http://127.0.0.1:1",
    }  # nothing leaves the machine

    def run(*command: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, *command],
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
            env={**os.environ, **environment},
        )

    output = str(tmp_path / "output")
    trained = run("-c", PROGRAM, str(config))
    assert "RuntimeError" in trained.stderr, "the program went through to its end"
    assert "HW603" in trained.stdout or "tried again" in trained.stderr
    said = [trained]
    for command in (
        ["check", "--show-resolved", str(config)],
        ["incidents", output],
        ["incidents", output, "-o", "json"],
        ["deliver", output, "--config", str(config), "--timeout", "5"],
        ["notify-test", "slack", "--config", str(config)],
        ["notify-test", "am", "--config", str(config)],
        ["replay", output],
    ):
        said.append(run("-m", "healthwatch.cli", *command))
        assert "Traceback" not in said[-1].stderr, said[-1].stderr
        assert said[-1].stdout or said[-1].stderr
    assert "CANARY" not in "".join(each.stdout + each.stderr for each in said)
    written = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert {path.name for path in written} >= {"rank_0.sqlite", "train.yaml"}
    for path in written:
        assert b"CANARY" not in path.read_bytes(), path
