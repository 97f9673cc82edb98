"""The core stands alone: no framework, and nothing heavy before it is used."""

from __future__ import annotations

import subprocess
import sys

HEAVY = ("mindspore", "jsonschema", "apprise", "numba", "matplotlib", "rich", "click")

BLOCKED = """
import importlib.abc, sys

class Absent(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("mindspore", "mindformers", "apprise"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Absent())
import healthwatch

with healthwatch.load(sys.argv[1]) as hw:
    for step in range(1, 31):
        hw.log(norm=9.0 if step == 25 else 1.0)
        hw.step(9.0 if step == 3 else 1.0)
assert not [name for name in sys.modules if name.partition(".")[0] in ("mindspore", "apprise")]
"""


def python(script: str, *arguments: str) -> str:
    ended = subprocess.run(
        [sys.executable, "-c", script, *arguments], capture_output=True, text=True, timeout=120, check=False
    )
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


def test_importing_it_imports_nothing_heavy():
    script = f"import sys, healthwatch\nprint([name for name in {HEAVY!r} if name in sys.modules])"
    assert python(script).strip() == "[]"


def test_a_plain_loop_needs_neither_mindspore_nor_apprise(write_config, tmp_path):
    python(BLOCKED, str(write_config()))
    from healthwatch.recording import Run

    with Run.open(tmp_path / "output") as run:
        fired = [(found.rule, found.now.step) for found in run.transitions() if found.reason == "fired"]
    assert fired == [("LossHigh", 3), ("NormJump", 25)]


def test_no_layer_below_the_integrations_imports_a_framework():
    script = """
import pkgutil, importlib, sys, healthwatch
for found in pkgutil.walk_packages(healthwatch.__path__, "healthwatch."):
    if not found.name.startswith(("healthwatch.integrations", "healthwatch.cli.__main__")):
        try:
            importlib.import_module(found.name)
        except ModuleNotFoundError as error:
            if error.name not in ("numba", "matplotlib"):  # the extras that `make core` leaves out
                raise
print([name for name in ("mindspore", "mindformers", "apprise", "jsonschema") if name in sys.modules])
"""
    assert python(script).strip() == "[]"
