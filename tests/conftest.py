"""What all tests share: where the public cases lie, and a summary in which no skip goes unseen."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

SHARED = Path(__file__).resolve().parents[2] / "shared"
MISSING_SHARED = "needs ../shared, which is not here"

TOOLS = Path(__file__).resolve().parents[1] / ".tools"

# What an environment lacks by design: extras that `make core` leaves out, tools that only `make tools` brings.
NEEDS: dict[str, Callable[[], bool]] = {
    "numba": lambda: importlib.util.find_spec("numba") is not None,
    "matplotlib": lambda: importlib.util.find_spec("matplotlib") is not None,
    "promtool": (TOOLS / "promtool").exists,
    "alertmanager": (TOOLS / "prometheus-alertmanager").exists,
}

# A busy machine is slow, not wrong.
settings.register_profile("healthwatch", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("healthwatch")


def pytest_ignore_collect(collection_path: Path) -> bool | None:
    """Where MindSpore is not installed, as in `make core`, there is nothing to skip."""
    if importlib.util.find_spec("mindspore") is None and collection_path.name.startswith("test_"):
        return 'importorskip("mindspore"' in collection_path.read_text(encoding="utf-8") or None
    return None


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Tests marked `needs(what)` are deselected, and counted so, where an environment lacks it by design."""
    lacking = [item for item in items if not all(NEEDS[mark.args[0]]() for mark in item.iter_markers("needs"))]
    if lacking:
        config.hook.pytest_deselected(items=lacking)
        items[:] = [item for item in items if item not in set(lacking)]


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of public cases and recordings beside the repository."""
    if not SHARED.is_dir():
        pytest.skip(MISSING_SHARED)
    return SHARED


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    skipped = terminalreporter.stats.get("skipped", [])
    terminalreporter.write_line(f"skips: {len(skipped)}")


def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    """In CI only a missing ../shared excuses a skip."""
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if not os.environ.get("CI") or reporter is None or exitstatus != pytest.ExitCode.OK:
        return
    skips = reporter.stats.get("skipped", [])
    unexcused = [skip for skip in skips if "../shared" not in str(skip.longrepr)]
    if unexcused:
        reporter.write_line(f"{len(unexcused)} skips in CI without excuse:", red=True)
        for skip in unexcused:
            reporter.write_line(f"  {skip.nodeid}: {skip.longrepr}", red=True)
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
