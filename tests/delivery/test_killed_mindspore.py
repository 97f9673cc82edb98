"""Trainings with MindSpore, killed: what fired is told."""

from __future__ import annotations

import random
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import apprise
import pytest
from killable import write_config

from healthwatch.recording import Run

pytest.importorskip("mindspore", reason="needs the mindspore extra")

PROGRAM = """
import sys, pathlib
import mindspore as ms
from mindspore import nn, Tensor
import numpy as np
import healthwatch
ms.runtime.launch_blocking()
ms.runtime.dispatch_threads_num(1)
ms.set_seed(1)
config = pathlib.Path(sys.argv[1])
net = nn.Dense(4, 1)
optimizer = nn.SGD(net.trainable_params(), 0.01)
step_of = ms.value_and_grad(lambda x: net(x).square().mean(), None, optimizer.parameters)
checkpoint = config.with_name("checkpoint")
first = int(checkpoint.read_text()) + 1 if checkpoint.exists() else 1
hw = healthwatch.load(config).attach(net, optimizer, first_step=first)
for step in range(first, 41):
    loss, grads = step_of(Tensor(np.full((2, 4), step % 5 + 1, np.float32)))
    optimizer(grads)
    hw.log(loss=9.0 if 8 <= step < 14 or step >= 36 else 2.0, norm=9.5 if 21 <= step < 25 else 1.0)
    hw.step(loss)
    if step % 10 == 0:
        checkpoint.write_text(str(step))
    config.with_name("stepped").touch()
hw.close()
config.with_name("ended").touch()
"""


@pytest.mark.long
@pytest.mark.mindspore
@pytest.mark.skipif(apprise.__version__.startswith("1."), reason="bodies are compared as Markdown")
@pytest.mark.parametrize("number", [1, 2])
def test_a_killed_training(inbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int):
    config = write_config(tmp_path, [inbox.url])
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parent))
    with subprocess.Popen([sys.executable, "-c", PROGRAM, str(config)], stderr=subprocess.PIPE) as first:
        while not config.with_name("stepped").exists() and first.poll() is None:
            time.sleep(0.005)
        time.sleep(random.Random(number).uniform(0.0, 0.3))
        first.kill()
    second = subprocess.run([sys.executable, "-c", PROGRAM, str(config)], capture_output=True, text=True, check=False)
    assert second.returncode == 0, second.stderr
    assert config.with_name("ended").exists()
    subprocess.run(  # whatever did not fit into the five seconds at the end
        [sys.executable, "-m", "healthwatch.cli", "deliver", str(tmp_path), "--config", str(config)], check=True
    )
    arrived = Counter(message["message"].strip() for message in inbox.taken)
    with Run.open(tmp_path / "output") as run:
        incidents, outbox = run.incidents(), run.outbox()
        assert run.steps == (1, 40)
    assert {incident.rule for incident in incidents} == {"LossHigh", "NormJump", "NormHigh"}
    for incident in incidents:
        assert any(arrived[each.notice.body.strip()] for each in outbox if incident.id in each.notice.incidents)
    assert max(arrived.values()) <= 2
