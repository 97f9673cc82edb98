"""A training that ends inside a window, by an exception nobody catches: what was recorded is kept and explained."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

import pytest

pytest.importorskip("mindspore", reason="needs the mindspore extra")
pytestmark = [pytest.mark.mindspore, pytest.mark.long]

CONFIG = """
profiler: {enable_profiling: true, start_step: 2, end_step: 6, output_path: PROFILE}
healthwatch: {run: breaks, output: OUTPUT, rules: [rules.yaml]}
"""
RULES = "groups: [{name: test, rules: [{alert: Never, expr: loss < 0}]}]"
PROGRAM = """
import sys
import mindspore, numpy as np
from mindspore import Tensor, nn
import healthwatch

mindspore.runtime.launch_blocking()
mindspore.runtime.dispatch_threads_num(1)
net, x = nn.Dense(16, 16), Tensor(np.ones((4, 16), np.float32))
optimizer = nn.SGD(net.trainable_params(), 1e-3)
forward_backward = mindspore.value_and_grad(lambda x: (net(x) ** 2).mean(), None, net.trainable_params())
hw = healthwatch.load(sys.argv[1]).attach(net, optimizer)
for step in range(1, 10):
    if step == 4:
        raise FloatingPointError("the training breaks down")
    loss, grads = forward_backward(x)
    optimizer(grads)
    hw.step(loss)
"""
LIMIT = 300  # seconds


def test_an_exception_inside_a_window_keeps_what_was_recorded(tmp_path: Path) -> None:
    config = tmp_path / "train.yaml"
    config.write_text(CONFIG.replace("PROFILE", str(tmp_path / "profile")).replace("OUTPUT", str(tmp_path / "out")))
    (tmp_path / "rules.yaml").write_text(RULES)
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(config)], capture_output=True, text=True, timeout=LIMIT, check=False
    )
    assert done.returncode == 1
    assert "FloatingPointError: the training breaks down" in done.stderr
    folder = tmp_path / "out" / "captures" / "rank_0" / "window-2-6"
    deadline = time.monotonic() + LIMIT
    while (manifest := json.loads((folder / "manifest.json").read_text()))["state"] == "finishing":
        assert time.monotonic() < deadline, done.stderr
        time.sleep(0.2)
    assert manifest["state"] == "finished", manifest["problem"]
    assert (folder / "summary.md").exists()
    assert manifest["steps"] == {"first": 2, "last": 3, "recorded": 2}
    assert min(manifest["check"]["operators"]) >= 6
    trace = Path(manifest["trace"])
    assert trace.is_relative_to(tmp_path / "profile" / "rank_0")
    assert json.loads(trace.read_text())
