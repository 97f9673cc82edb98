from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
import yaml

import healthwatch
from healthwatch.session import Session

PACKS = ("loss", "gradients", "moe", "attention")
PARAMS = [{"param": f"decoder.layers.{layer}.{name}"} for layer in range(2) for name in ("wq", "wk", "wo")]
EXPERTS = [
    {"block": "decoder", "layer": str(layer), "expert": str(expert)} for layer in range(2) for expert in range(8)
]
LAYERS = [{"block": "decoder", "layer": str(layer)} for layer in range(2)]
HEADS = [{"block": "decoder", "layer": str(layer), "head": str(head)} for layer in range(2) for head in range(4)]
MICRO_STEPS = 2


@dataclass(frozen=True)
class Recorded:
    """A run that all shipped packs watched, with faults for each of them."""

    folder: Path
    config: Path


def write_config(folder: Path) -> Path:
    section = {
        "run": "synthetic",
        "output": str(folder / "output"),
        "rules": [f"builtin:{pack}" for pack in PACKS],
        "override": {},
    }
    path = folder / "train.yaml"
    path.write_text(yaml.safe_dump({"healthwatch": section}))
    return path


class Training:
    """Numbers as a small MoE gives them, and what goes wrong with them when."""

    def __init__(self) -> None:
        self.random = np.random.default_rng(7)

    def step(self, hw: Session, step: int) -> None:
        noise = self.random.standard_normal
        for micro_step in range(MICRO_STEPS):
            norms = np.exp(0.1 * noise(len(PARAMS)))
            if step == 220 and micro_step == 1:
                norms[2] *= 50
            if step == 230:
                norms[0] = np.nan
            for metric in ("micro_norm", "local_norm"):
                hw.log_values(metric, norms.astype(np.float32), PARAMS, micro_step)
            hw.log_values("tokens_per_expert", self._tokens(step), EXPERTS, micro_step)
            hw.log(micro_step, local_loss=3 + 0.01 * noise())
        hw.log_values("device_norm", np.exp(0.1 * noise(len(PARAMS))), PARAMS)
        hw.log_values("router_topk", np.full(2, 2), LAYERS)
        hw.log_values("max_attention_logit", self._logits(step), HEADS)
        loss = np.nan if step == 230 else 3 + 0.01 * noise() + (6 if 200 <= step < 206 else 0)
        hw.log(grad_norm=1 + 0.02 * noise() + (20 if 215 <= step < 219 else 0), lr=1e-3, device_loss=loss)
        hw.step(loss, step=step)

    def _tokens(self, step: int) -> np.ndarray:
        tokens = self.random.multinomial(256, np.full(8, 1 / 8), size=2)
        if 240 <= step < 300:
            tokens[0] = [0, 0, 0, 128, 0, 128, 0, 0]
        return tokens.reshape(-1)

    def _logits(self, step: int) -> np.ndarray:
        logits = 4 + 0.1 * self.random.standard_normal(8)
        if 310 <= step < 322:
            logits[3] = 150.0 if step < 317 else 1500.0
        return logits.astype(np.float32)


@pytest.fixture(scope="session")
def recorded(tmp_path_factory) -> Recorded:
    """Two attempts; in the first one the run goes back from 330 to 319, the second one goes on at 318."""
    folder = tmp_path_factory.mktemp("recorded")
    config, training = write_config(folder), Training()
    with healthwatch.load(config) as hw:
        for step in (*range(1, 331), *range(319, 325)):
            training.step(hw, step)
    assert set(hw.guard.failures) <= {"AttentionClipIneffective: no data"}  # nothing clips here
    with healthwatch.load(config).attach(first_step=318) as hw:
        for step in range(318, 345):
            training.step(hw, step)
    assert not hw.guard.failures
    return Recorded(folder / "output", config)
