"""Rows 5 and 6 of the reference's checklist; that every row is shown somewhere."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from healthwatch.config import ProfilerSection

TESTS = Path(__file__).resolve().parents[1]
MONITOR_ROWS = range(1, 89)


@pytest.mark.row(5)
@pytest.mark.mindspore
def test_row_005_what_a_profile_collects():
    profiler = pytest.importorskip("mindspore.profiler", reason="needs the mindspore extra")
    from healthwatch.integrations.mindspore.profiler import arguments

    asked = arguments(
        ProfilerSection(profiler_level=1, profile_cpu=True, profile_memory=True, with_stack=True, mstx=True), "Ascend"
    )
    assert asked["activities"] == [profiler.ProfilerActivity.CPU, profiler.ProfilerActivity.NPU]  # operators
    assert (asked["profile_memory"], asked["with_stack"]) == (True, True)
    assert asked["experimental_config"]._profiler_level == profiler.ProfilerLevel.Level1  # communication


@pytest.mark.row(6)
@pytest.mark.mindspore
@pytest.mark.long
def test_row_006_the_result_is_a_product_of_mindsporess_profiler(tmp_path: Path):
    mindspore = pytest.importorskip("mindspore", reason="needs the mindspore extra")
    import json
    import time

    from healthwatch.integrations.mindspore.profiler import MindSporeProfiler

    mindspore.set_context(mode=mindspore.PYNATIVE_MODE, device_target="CPU")
    mindspore.runtime.launch_blocking()
    profiler = MindSporeProfiler()
    profiler.start(tmp_path / "capture", 1, ProfilerSection(with_stack=False))
    mindspore.ops.ones((8, 8), mindspore.float32).sum()
    profiler.step()
    profiler.stop()
    trace = None
    for _ in range(600):
        trace = profiler.trace(tmp_path / "capture")
        if trace is not None:
            break
        time.sleep(0.1)
    assert trace is not None
    assert trace.name == "trace_view.json"
    assert isinstance(json.loads(trace.read_text()), list)


def test_every_row_on_monitoring_is_shown():
    """A row's number stands in the test that shows it, as a mark."""
    shown = {
        int(number)
        for path in TESTS.rglob("test_*.py")
        for number in re.findall(r"^@pytest\.mark\.row\((\d+)\)$", path.read_text(encoding="utf-8"), re.MULTILINE)
    }
    assert sorted(set(MONITOR_ROWS) - shown) == []
