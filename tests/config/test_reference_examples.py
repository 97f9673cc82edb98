"""The YAML blocks of the reference document, each with a healthwatch section beside it, load without a word."""

from __future__ import annotations

import re
from pathlib import Path

from healthwatch.config import Config, MoEMonitor, ProfilerSection, TrainState, load_config
from healthwatch.diagnostics import render_text

_BLOCK = re.compile(
    r"^(?:# .*\n)?(?:monitor|callbacks|profiler|optimizer):\n(?:(?:[ #].*|)\n|callbacks:\n)+", re.MULTILINE
)


def load(tmp_path: Path, text: str) -> Config:
    path = tmp_path / "train.yaml"
    path.write_text(f"{text}\nhealthwatch: {{}}\n", encoding="utf-8")
    config, diagnostics = load_config(path, {})
    assert diagnostics == [], render_text(diagnostics)
    assert config is not None
    return config


def test_every_block_of_the_reference(shared: Path, tmp_path: Path) -> None:
    """Rows 39, 41, 43, 64, 75, 88, 110-112."""
    reference = shared / "reference" / "training-metric-monitoring-and-profiling.txt"
    blocks = [found[0] for found in _BLOCK.finditer(reference.read_text(encoding="utf-8") + "\n")]
    configs = [load(tmp_path, block) for block in blocks]
    assert [config.train_state for config in configs[:3]] == [
        TrainState(device_loss=True),
        TrainState(local_norm=("attention", "layernorm"), local_loss=True),
        TrainState(local_norm=True, device_norm=True, device_loss=True),
    ]
    assert configs[3].moe_monitor == MoEMonitor(10, (0, 5, 10))
    assert configs[4].max_logits_interval == 1
    assert (configs[5].max_logits_interval, configs[5].qk_clip) == (50, True)
    path = "./output/profile"
    assert [config.profiler for config in configs[6:]] == [
        ProfilerSection(True, 5, 7, path, (0,), 0, profile_cpu=False, with_stack=False),
        ProfilerSection(True, 5, 7, path, (0, 1), 1, mstx=True, with_stack=False),
        ProfilerSection(True, 5, 6, path, (0,), 2, profile_memory=True, with_stack=True),
    ]
