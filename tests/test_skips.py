"""A skip is printed with its reason and counted, and in CI only a missing ../shared excuses one."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.long  # each is a run of its own

PROJECT = Path(__file__).resolve().parents[1]
TESTS = """
import pytest

def test_something():
    pass

@pytest.mark.skipif({missing}, reason="no such tool")
def test_with_a_tool():
    pass

def test_with_cases(shared):
    pass
"""


def run(tmp_path: Path, tests: str, **environment: str) -> tuple[int, str]:
    """Exit code and output of pytest on some tests under our conftest."""
    folder = tmp_path / "main" / "tests"
    folder.mkdir(parents=True)
    shutil.copy(PROJECT / "tests" / "conftest.py", folder)
    (folder / "test_some.py").write_text(tests)
    outside = {name: value for name, value in os.environ.items() if name != "CI"}
    command = [sys.executable, "-m", "pytest", "-ra", "-p", "no:cacheprovider"]
    ran = subprocess.run(
        command, cwd=folder.parent, env=outside | environment, capture_output=True, text=True, check=False
    )
    return ran.returncode, ran.stdout


@pytest.mark.parametrize(
    ("ci", "cases", "tool", "skips", "code"),
    [
        (True, False, True, 1, 0),
        (True, False, False, 2, 1),
        (True, True, False, 1, 1),
        (False, True, False, 1, 0),
    ],
)
def test_what_a_skip_costs(tmp_path: Path, ci: bool, cases: bool, tool: bool, skips: int, code: int):
    if cases:
        (tmp_path / "shared").mkdir()
    environment = {"CI": "true"} if ci else {}
    found, printed = run(tmp_path, TESTS.format(missing=not tool), **environment)
    assert found == code, printed
    assert f"skips: {skips}" in printed
    assert ("without excuse" in printed) == bool(code)
    assert ("no such tool" in printed) == (not tool)
    assert ("needs ../shared, which is not here" in printed) == (not cases)


def test_a_missing_tool_is_named(tmp_path: Path):
    _, printed = run(tmp_path, "def test_one(promtool): pass\ndef test_other(alertmanager_binary): pass\n")
    assert "needs promtool, which is not here: make tools brings it" in printed
    assert "needs prometheus-alertmanager, which is not here: make tools brings it" in printed
