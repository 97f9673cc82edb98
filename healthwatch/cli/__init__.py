"""The command line: one module per command, imported when it is asked for."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from importlib import import_module
from typing import NoReturn

import click

import healthwatch

COMMANDS: Mapping[str, str] = {
    "capture": "Ask a running training for a profile of its next steps.",
    "captures": "List the profiles of a run, or compare two of them.",
    "check": "Check rule and config files; every problem at once.",
    "deliver": "Send what runs have left in their outboxes.",
    "explain": "Say what a rule, condition, metric or code of a problem is.",
    "incidents": "List what happened in a run, and who was told when.",
    "init": "Write a commented config, a first rule file and its test.",
    "mindformers-path": "Print the folder from which MindSpore Transformers loads our callback.",
    "notify-test": "Send one message to a receiver and say what came back.",
    "query": "Evaluate an expression over a recorded run.",
    "read": "Print the samples of a log, as records or as a table.",
    "replay": "Say again what the samples of a recorded run or a log say, with its own or other rules.",
    "schema": "Print a JSON Schema, for editors.",
    "silence": "Ask a training to be quiet about something: add, list, expire.",
    "test": "Run rule tests: samples in, alerts out.",
}


class Commands(click.Group):
    """Knows its commands by name and help line; `healthwatch/cli/<name>.py` holds one as `command`."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        return sorted(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        if cmd_name not in COMMANDS:
            return None
        command: click.Command = import_module(f"healthwatch.cli.{cmd_name.replace('-', '_')}").command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """From the table above: listing the commands imports none of them."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, COMMANDS[name]) for name in self.list_commands(ctx)])


@click.command(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(healthwatch.__version__, prog_name="healthwatch")
def group() -> None:
    """Rules for the health of a training run: check them, try them on recorded runs, ask what a run measured."""


def main() -> None:
    """Exit codes: 0 clean, 1 findings, 2 could not run."""
    from healthwatch.diagnostics import Invalid

    try:
        group()
    except Invalid as invalid:
        fail(str(invalid).lstrip("\n"))
    except (OSError, UnicodeError) as error:
        fail(f"error: {error}")


def fail(message: str) -> NoReturn:
    click.echo(message, err=True)
    sys.exit(2)
