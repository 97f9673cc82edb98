"""What all tests share: where the public cases and the real tools lie, and a summary in which no skip goes unseen."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

SHARED = Path(__file__).resolve().parents[2] / "shared"
TOOLS = Path(__file__).resolve().parents[1] / ".tools"

# A busy machine is slow, not wrong.
settings.register_profile("healthwatch", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("healthwatch")


@pytest.fixture(scope="session")
def one_thread_dispatches() -> None:
    """MindSpore's five wait for each other by spinning, which takes the cores from whatever runs beside."""
    import mindspore

    mindspore.runtime.dispatch_threads_num(1)


@pytest.fixture(scope="session", autouse=True)
def _wherever_mindspore_is_used(request: pytest.FixtureRequest) -> None:
    if "mindspore" in sys.modules:  # every module of tests has been imported by now
        request.getfixturevalue("one_thread_dispatches")


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of public cases and recordings beside the repository."""
    if not SHARED.is_dir():
        pytest.skip("needs ../shared, which is not here")
    return SHARED


@pytest.fixture(scope="session")
def promtool() -> Path:
    return _tool("promtool")


@pytest.fixture(scope="session")
def alertmanager_binary() -> Path:
    return _tool("prometheus-alertmanager")


def _tool(name: str) -> Path:
    if not (TOOLS / name).exists():
        pytest.skip(f"needs {name}, which is not here: make tools brings it")
    return TOOLS / name


def _unexcused(reporter: pytest.TerminalReporter) -> list[str]:
    """Skips for anything but a missing ../shared."""
    reasons = [f"{skip.nodeid}: {skip.longrepr[2]}" for skip in reporter.stats.get("skipped", [])]
    return [reason for reason in reasons if SHARED.is_dir() or "../shared" not in reason]


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    skipped = terminalreporter.stats.get("skipped", [])
    terminalreporter.write_line(f"skips: {len(skipped)}")


@pytest.hookimpl(tryfirst=True)
def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    """In CI only a missing ../shared excuses a skip."""
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if not os.environ.get("CI") or reporter is None:
        return
    if unexcused := _unexcused(reporter):
        reporter.write_line(f"\n{len(unexcused)} skips in CI without excuse:", red=True)
        for reason in unexcused:
            reporter.write_line(f"  {reason}", red=True)
        if exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED
