"""`healthwatch mindformers-path`."""

from __future__ import annotations

from pathlib import Path

import click

import healthwatch


@click.command("mindformers-path")
def command() -> None:
    r"""Print the folder from which MindSpore Transformers can load the HealthWatch callback.

    export REGISTER_PATH=$(healthwatch mindformers-path), and in the training YAML

    \b
        callbacks:
          - type: HealthWatch
            auto_register: healthwatch_callback.HealthWatch
    """
    click.echo(Path(healthwatch.__file__).resolve().parent / "integrations" / "mindformers" / "register")
