"""What `make bench` runs still runs, on small sizes; how fast is for `make bench` to say."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"
pytestmark = pytest.mark.long


def printed(script: str, *arguments: str) -> str:
    ran = subprocess.run(
        [sys.executable, BENCHMARKS / script, *arguments], capture_output=True, text=True, check=False, timeout=300
    )
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


def module(script: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"benchmark_{Path(script).stem}", BENCHMARKS / script)
    assert spec is not None
    assert spec.loader is not None
    found = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(found)
    return found


def test_the_longest_call_of_a_loop_is_printed() -> None:
    said = printed("step.py", "--steps", "12", "--parameters", "8")
    longest = re.search(r"longest call ([\d.]+) ms, in processor time ([\d.]+) ms", said)
    assert longest, said
    assert float(longest[1]) > 0
    row = re.search(r"^step +12 ", said, re.MULTILINE)
    assert row, said


def test_the_speed_of_a_reader_is_printed() -> None:
    assert re.search(r"100 steps, 100,000 norms: [1-9]\d* MB/s", printed("readers.py", "--runs", "1"))


def test_peers_and_the_engine_find_the_same_breaches() -> None:
    """The script itself fails where they do not. Peers that are not there are named."""
    said = printed("peers.py", "--series", "512", "--steps", "200")
    for peer in ("bottleneck", "screamer", "promtool", "vmalert -replay"):
        row = re.search(rf"^{peer} +(not here: needs|[abcdef]+ +\d+ x 200 +[\d,]+) ", said, re.MULTILINE)
        assert row, said


def test_costs_stand_beside_the_smallest() -> None:
    said = printed("growth.py", "--series", "300", "--blocks", "1")
    rows = re.findall(r"^ +300 +(50|200) +(\d+) +[\d,]+ +[\d,.]+ +([\d,]+) +([\d,.]+)$", said, re.MULTILINE)
    assert [row[:3] for row in rows] == [
        (window, rules, rules) for window in ("50", "200") for rules in ("1", "10", "100")
    ]
    assert rows[0][3] == "1.0"


@pytest.mark.mindspore
def test_a_loops_monitors_can_be_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("mindspore", reason="needs the mindspore extra")
    monitors = module("monitors.py")
    monkeypatch.setattr(monitors, "PARAMETERS", 3)
    step, gradients = monitors.loop(), monitors.gradients()
    taken = monitors.interleaved({"loop": lambda: step(gradients)}, 1)
    assert taken["loop"] > 0


def test_a_burst_of_alerts_is_measured() -> None:
    said = printed("burst.py", "--series", "400", "--thinking", "0")
    assert "1 rule, 400 series, 400 transitions" in said, "half of them fire, and all of those end"
    assert re.search(r"^30  half of them fire +[\d.]+ +[\d.]+$", said, re.MULTILINE), said
    assert re.search(r"longest call after the first step [\d.]+ ms of its own; the target is 50 ms", said)
