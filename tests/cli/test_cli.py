from __future__ import annotations

import subprocess
import sys

import pytest
from click.testing import CliRunner

import healthwatch
from healthwatch.cli import COMMANDS, group


def test_help_lists_every_command_and_imports_none():
    script = (
        "import sys\nfrom click.testing import CliRunner\nfrom healthwatch.cli import group\n"
        "print(CliRunner().invoke(group, ['--help']).output)\n"
        "print([n for n in sys.modules if n.startswith('healthwatch.') and n != 'healthwatch.cli'])"
    )
    ended = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    *text, imported = ended.stdout.splitlines()
    assert imported == "[]"
    assert all(any(line.strip().startswith(f"{name} ") for line in text) for name in COMMANDS)


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_every_command_has_help_and_says_the_same_as_the_list(name):
    said = CliRunner().invoke(group, [name, "--help"])
    assert said.exit_code == 0
    assert f"{name} [OPTIONS]" in said.output


def test_the_package_is_the_command_too():
    command = [sys.executable, "-m", "healthwatch", "--version"]
    said = subprocess.run(command, capture_output=True, text=True, check=True)
    assert said.stdout.split()[-1] == healthwatch.__version__


def test_version():
    assert CliRunner().invoke(group, ["--version"]).output == f"healthwatch, version {healthwatch.__version__}\n"


def test_an_unknown_command_exits_with_2():
    said = CliRunner().invoke(group, ["chekc"])
    assert said.exit_code == 2
    assert "No such command 'chekc'" in said.output
