"""An error ends the real trainer, which calls no callback then: it is seen when the process ends."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from healthwatch.readers import open_log
from healthwatch.recording import Run
from healthwatch.replay import load_replay

pytestmark = pytest.mark.long

PROGRAM = """
import sys

sys.path.insert(0, sys.argv[1])
import tiny
from mindformers.pynative.callback.callback import TrainerCallback

from healthwatch.integrations.mindformers import HealthWatch


class Fault(TrainerCallback):
    def on_step_begin(self, args, state, **kwargs):
        if state.global_step == 3:
            raise OSError("the data has gone")


config = tiny.base_cfg(steps=6, gbs=2, lbs=2, model=tiny.qwen3())
tiny.trainer(config, callbacks=[Fault(), HealthWatch(sys.argv[2])], data=tiny.dataset(n=64)).train()
"""


def test_an_error_is_told_and_goes_on_as_it_was(shared: Path, tmp_path: Path) -> None:
    section = {"output": str(tmp_path / "out"), "rules": ["builtin:run"]}
    (tmp_path / "c.yaml").write_text(json.dumps({"healthwatch": section}), encoding="utf-8")
    (tmp_path / "train.py").write_text(PROGRAM, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "train.py", str(shared / "mindformers-cpu"), "c.yaml"],
        cwd=tmp_path, env={**os.environ, "LOG_MF_PATH": str(tmp_path / "log")},
        capture_output=True, text=True, timeout=600, check=False,
    )  # fmt: skip
    assert done.returncode == 1, done.stderr
    assert "OSError: the data has gone" in done.stderr
    with Run.open(tmp_path / "out") as run:
        assert [(each.now.step, each.rule, each.reason) for each in run.transitions()] == [(4, "RunFailed", "fired")]
        assert run.attempts()[-1].reason == "OSError"
    (tmp_path / "console.log").write_text(done.stdout + done.stderr, encoding="utf-8")
    log = tmp_path / "console.log"
    assert max(frame.step for frame in open_log(log).frames()) == 4
    said = [each for outcome in load_replay(log, ["builtin:run"]).outcomes() for each in outcome.transitions]
    assert [(each.now.step, each.rule, each.reason) for each in said] == [(4, "RunFailed", "fired")]
