"""Compiled loops never outlive the code that they were made of."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

from healthwatch.promql.loop_cache import SOURCES

LOOPS = """
from numba import njit

from level import LEVEL

from healthwatch.promql.loop_cache import digest, drop_older

NOW = digest("level.py", "gone.py")


@njit(cache=True)
def made_of():
    return NOW


drop_older(made_of, now=NOW)


@njit("int64()", cache=True)
def level():
    return LEVEL


print(level(), sum(level.stats.cache_hits.values()))
"""


@pytest.mark.extras
def test_loops_are_compiled_anew_where_a_constant_of_another_module_has_changed(tmp_path: Path) -> None:
    pytest.importorskip("numba", reason="needs the fast extra")
    (tmp_path / "loops.py").write_text(LOOPS)

    def run() -> list[int]:
        said = subprocess.run(
            [sys.executable, "-B", "loops.py"], cwd=tmp_path, capture_output=True, text=True, check=True
        )
        return [int(each) for each in said.stdout.split()]

    seen = []
    for level in (1, 2, 1, 1):
        (tmp_path / "level.py").write_text(f"LEVEL = {level}\n")
        seen.append(run())
    assert seen == [[1, 0], [2, 0], [1, 0], [1, 1]]


def test_whatever_the_loops_of_the_package_take_from_others_is_looked_at() -> None:
    looked_at = {file.stem: file for file in SOURCES}
    assert all(file.exists() for file in SOURCES)
    for name in ("compiled", "ahead_loops"):
        imported = [
            str(node.module).rpartition(".")
            for node in ast.walk(ast.parse(looked_at[name].read_text()))
            if isinstance(node, ast.ImportFrom) and str(node.module).startswith("healthwatch")
        ]
        assert {module for _, _, module in imported} <= {*looked_at, "loop_cache"}
        assert {package for package, _, _ in imported} == {"healthwatch.promql"}
