"""Loops without a framework and in the style of one, as the examples show them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from examples.plain_python.train import CORRUPT
from examples.plain_python.train import train as plain
from examples.pytorch_style.train import TOO_HIGH
from examples.pytorch_style.train import train as pytorch_style
from healthwatch.recording import Run

ROOT = Path(__file__).resolve().parents[2]


def config(folder: Path, example: str) -> Path:
    data = yaml.safe_load((ROOT / "examples" / example / "train.yaml").read_text())
    data["healthwatch"]["output"] = str(folder / "output")
    (folder / "train.yaml").write_text(yaml.safe_dump(data))
    return folder / "train.yaml"


def fired(folder: Path) -> dict[str, int]:
    with Run.open(folder / "output") as run:
        found = [(each.now.step, each.rule) for each in run.transitions() if each.reason == "fired"]
    return {rule: step for step, rule in reversed(found)}


def test_a_plain_loop_tells_of_its_corrupt_batch_and_of_nothing_else(tmp_path: Path):
    plain(config(tmp_path, "plain_python"))
    assert fired(tmp_path) == {"LossNonFinite": CORRUPT, "GradNormNonFinite": CORRUPT}


def test_a_loop_in_the_style_of_pytorch_tells_of_its_learning_rate(tmp_path: Path):
    pytorch_style(config(tmp_path, "pytorch_style"))
    found = fired(tmp_path)
    assert set(found) >= {"LossSpikeSevere", "GradNormSpike"}
    assert min(found.values()) in range(TOO_HIGH, TOO_HIGH + 6)


@pytest.mark.parametrize("example", ["plain_python", "pytorch_style"])
def test_neither_imports_a_framework(example: str):
    code = (
        f"import sys, examples.{example}.train; "
        "print(sorted({'torch', 'mindspore', 'mindformers'} & {name.partition('.')[0] for name in sys.modules}))"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
