"""A training that stands still is told by the wall clock, resolved by its next step, and replayed exactly."""

from __future__ import annotations

import time
from pathlib import Path

import healthwatch
from healthwatch.recording import Run
from healthwatch.replay import load_replay
from healthwatch.ruletest import run_files

RULES = """
groups:
  - name: clock
    rules:
      - alert: Stalled
        when: {stalled: {after: 4s}}
        labels: {severity: critical}
        annotations: {summary: nothing moves, action: look at the machines}
"""
CONFIG = "healthwatch: {run: still, output: OUT, rules: [./rules.yaml], escalation: {critical: [{log: error}]}}"

TEST = """
rule_files: [rules.yaml]
tests:
  - name: what was recorded
    run: out
    exp_incidents: [{rule: Stalled, opened: 3, ended: 4, ending: resolved}]
"""


def test_a_loop_that_hangs_is_told_and_replayed(tmp_path: Path) -> None:
    (tmp_path / "rules.yaml").write_text(RULES)
    (tmp_path / "train.yaml").write_text(CONFIG.replace("OUT", str(tmp_path / "out")))
    with healthwatch.load(tmp_path / "train.yaml").attach() as hw:
        for _ in range(3):
            hw.step(1.0)
        time.sleep(8.0)
        hw.step(1.0)
    with Run.open(tmp_path / "out") as run:
        live = [(each.now.step, each.reason, each.value) for each in run.transitions()]
        assert len(run.clock_events()) == 1, "all events of one standstill"
    assert [(step, reason) for step, reason, _ in live] == [(3, "fired"), (4, "resolved")]
    assert live[0][2] > 4.0
    replayed = [
        (each.now.step, each.reason, each.value)
        for outcome in load_replay(tmp_path / "out").outcomes()
        for each in outcome.transitions
    ]
    assert replayed == live
    (tmp_path / "rules.test.yaml").write_text(TEST)
    tested = run_files([tmp_path / "rules.test.yaml"])
    assert [text for case in tested.files[0].cases for _, text in case.failures] == []
    assert (tested.passed, tested.files[0].diagnostics) == (1, ())
