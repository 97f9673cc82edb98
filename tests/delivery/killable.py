"""A small training that may be killed at any moment, and goes on from its last checkpoint."""

from __future__ import annotations

import time
from functools import partial
from pathlib import Path

import yaml

RULES = """
groups:
  - name: losses
    rules:
      - alert: LossHigh
        expr: loss > 5
        labels: {severity: critical}
        annotations: {summary: "the loss is {{ $value }}", action: "look"}
      - alert: NormJump
        expr: spike_ratio(norm[10], 3) > 4
        labels: {severity: warning}
        annotations: {summary: "the norm jumps", action: "look"}
      - alert: NormHigh
        expr: norm > 8
        for_records: 2
        labels: {severity: critical}
        annotations: {summary: "the norm is {{ $value }}", action: "look"}
metrics:
  norm: {unit: "1", labels: [], kind: gauge, cadence: step, help: a norm}
"""
LAST, CHECKPOINT = 40, 10


def write_config(folder: Path, urls: list[str], **more: object) -> Path:
    (folder / "rules.yaml").write_text(RULES)
    told = [{"notify": "oncall"}]
    section = {
        "run": "killed",
        "output": str(folder / "output"),
        "rules": ["rules.yaml"],
        "escalation": {"critical": told, "warning": told},
        "group_by": ["rule"],
        "receivers": {"oncall": {"urls": urls, "group_interval": 5}},
        **more,
    }
    path = folder / "train.yaml"
    path.write_text(yaml.safe_dump({"healthwatch": section}))
    return path


def loss_at(step: int) -> float:
    return 9.0 if 8 <= step < 14 or step >= 36 else 2.0


def norm_at(step: int) -> float:
    return 9.5 if 21 <= step < 25 else 1.0 + 0.01 * (step % 7)


def train(config: Path, pause: float) -> None:
    """From the last checkpoint to the end, which leaves a file behind; messages don't keep their usual distance."""
    import healthwatch
    from healthwatch import pictures
    from healthwatch.actions.notify import Delivery, Pace
    from healthwatch.session import pipeline

    pictures.find_spec = lambda _: None  # type: ignore[assignment]  # drawing takes longer than the whole run
    pipeline.Delivery = partial(Delivery, pace=Pace(interval=0.0, first=0.05, longest=0.2))  # type: ignore[misc, assignment]
    checkpoint = config.with_name("checkpoint")
    first = int(checkpoint.read_text()) + 1 if checkpoint.exists() else 1
    session = healthwatch.load(config).attach(first_step=first)
    config.with_name("attached").touch()
    for step in range(first, LAST + 1):
        session.log(norm=norm_at(step))
        session.step(loss_at(step))
        if step % CHECKPOINT == 0:
            half = checkpoint.with_suffix(".tmp")
            half.write_text(str(step))
            half.replace(checkpoint)
        time.sleep(pause)
    session.close()
    config.with_name("ended").touch()
