"""A rule fires in a real training, through the whole of healthwatch, and the profile of the next steps is there."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import healthwatch

mindspore = pytest.importorskip("mindspore", reason="needs the mindspore extra")
pytestmark = [pytest.mark.mindspore, pytest.mark.long]

import numpy as np  # noqa: E402
from mindspore import Tensor, nn  # noqa: E402

RULES = """
groups:
  - name: test
    rules:
      - alert: AlwaysAfterFour
        expr: loss >= 0
        warmup: 3
        labels: {severity: critical}
"""
CONFIG = """
healthwatch:
  run: captured
  output: OUTPUT
  rules: [RULES]
  escalation:
    critical:
      - log: error
      - profile: {steps: 3}
  capture: {cooldown: 0, min_free_disk: 0}
"""


def test_the_three_steps_after_the_incident_are_profiled(tmp_path: Path) -> None:
    mindspore.runtime.launch_blocking()
    rules, config, output = tmp_path / "rules.yaml", tmp_path / "train.yaml", tmp_path / "out"
    rules.write_text(RULES)
    config.write_text(CONFIG.replace("OUTPUT", str(output)).replace("RULES", str(rules)))
    net = nn.SequentialCell(nn.Dense(16, 16), nn.ReLU(), nn.Dense(16, 1))
    optimizer = nn.Adam(net.trainable_params(), 1e-3)
    forward_backward = mindspore.value_and_grad(lambda x: (net(x) ** 2).mean(), None, net.trainable_params())
    x = Tensor(np.random.default_rng(0).normal(size=(8, 16)).astype(np.float32))
    with healthwatch.load(config).attach(net, optimizer) as hw:
        for _ in range(12):
            loss, grads = forward_backward(x)
            hw.micro_step(loss, grads)
            optimizer(grads)
            hw.step(loss)
    (folder,) = (output / "captures" / "rank_0").iterdir()
    manifest = json.loads((folder / "manifest.json").read_text())
    assert folder.name == "AlwaysAfterFour-4"
    assert manifest["incident"]["rule"] == "AlwaysAfterFour"
    assert manifest["steps"] == {"first": 5, "last": 7, "recorded": 3}
    assert (manifest["run"], manifest["rank"]) == ("captured", 0)
    assert len(manifest["config_digest"]) == 64
    assert dict(hw.guard.failures) == {}
    assert manifest["state"] in ("finished", "finishing"), manifest["problem"]
    if manifest["state"] == "finished":
        assert min(manifest["check"]["operators"]) >= 6
