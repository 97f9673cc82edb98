"""A training that ends inside a window, by an exception: what was recorded is kept."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("mindspore", reason="needs the mindspore extra")
pytestmark = [pytest.mark.mindspore, pytest.mark.long]

PROGRAM = """
import atexit, sys
from pathlib import Path
import numpy as np
import mindspore
from mindspore import Tensor, nn
from healthwatch.actions.profile import Captures
from healthwatch.alerting.model import Incident, Now, Sample
from healthwatch.config import CaptureSettings, ProfilerSection
from healthwatch.integrations.mindspore import MindSporeProfiler

mindspore.runtime.launch_blocking()
net, x = nn.Dense(16, 16), Tensor(np.ones((4, 16), np.float32))
profiler = MindSporeProfiler()
profiler.prepare()
captures = Captures(
    profiler, CaptureSettings(min_free_disk=0), Path(sys.argv[1]), {}, ProfilerSection(with_stack=False), print
)
atexit.register(captures.close, 120.0)
at = Now(1, 0.0)
captures.request(Incident("Spike@1", "Spike", "critical", at, at, 1, (Sample((), 1.0),), 1, 1), 5, at)
for step in range(1, 10):
    if step == 4:
        raise FloatingPointError("the training breaks down")
    net(x).asnumpy()
    captures.step_end(step)
"""


def test_an_exception_inside_a_window_keeps_what_was_recorded(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(tmp_path)], capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 1
    assert "FloatingPointError: the training breaks down" in done.stderr
    manifest = json.loads((tmp_path / "Spike-1" / "manifest.json").read_text())
    assert manifest["state"] == "finished", (manifest["problem"], done.stdout)
    assert manifest["steps"] == {"first": 2, "last": 3, "recorded": 2}
    assert json.loads((tmp_path / "Spike-1" / manifest["trace"]).read_text())
