"""README's tour is what really happens: its files and its output. `python tests/docs/test_readme.py` writes it anew."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
README = ROOT / "README.md"
FILE = re.compile(r"<!-- file: (?P<path>\S+) -->\n```(?P<kind>\w+)\n.*?```\n", re.DOTALL)
CONSOLE = re.compile(r"```console\n\$ (?P<command>[^\n]+)\n(?P<output>.*?)```\n", re.DOTALL)


def run(command: str, folder: Path) -> str:
    program, *arguments = shlex.split(command)
    start = {"python": [sys.executable], "healthwatch": [sys.executable, "-m", "healthwatch.cli"]}[program]
    done = subprocess.run([*start, *arguments], cwd=folder, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode in {0, 1}, done.stderr
    return done.stdout + done.stderr


def refreshed(text: str, folder: Path) -> str:
    """The README with every file and every output as they are now."""
    text = FILE.sub(
        lambda found: f"<!-- file: {found['path']} -->\n```{found['kind']}\n{(ROOT / found['path']).read_text()}```\n",
        text,
    )
    return CONSOLE.sub(lambda found: f"```console\n$ {found['command']}\n{run(found['command'], folder)}```\n", text)


def current() -> str:
    with tempfile.TemporaryDirectory() as folder:
        tour = Path(folder) / "tour"
        shutil.copytree(ROOT / "examples" / "tour", tour, ignore=shutil.ignore_patterns("output", "__pycache__"))
        return refreshed(README.read_text(encoding="utf-8"), tour)


@pytest.mark.long
def test_the_tour_is_what_really_happens() -> None:
    assert README.read_text(encoding="utf-8") == current()


if __name__ == "__main__":
    README.write_text(current(), encoding="utf-8")
