"""`healthwatch schema [NAME]`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from healthwatch import resources
from healthwatch.rulefile.conditions import registry
from healthwatch.rulefile.conditions.generate import dump, rules_schema

NAMES = ("rules", "config", "ruletest", "record")


@click.command("schema")
@click.argument("name", type=click.Choice(NAMES), default="rules")
@click.option("--output", "-o", type=click.Path(path_type=Path), metavar="FILE", help="Write it there instead.")
def command(name: str, output: Path | None) -> None:
    """Print a JSON Schema: of rule files, of the config, of rule tests or of records.

    That of rule files knows the conditions that are installed, those of other packages among them. An editor uses it
    where a file begins with: # yaml-language-server: $schema=PATH
    """
    text = dump(schema(name)) + "\n"
    if output is None:
        click.echo(text, nl=False)
    else:
        output.write_text(text, encoding="utf-8")
    for failure in registry().failures if name == "rules" else ():
        click.echo(f"warning: a condition could not be loaded: {failure}", err=True)


def schema(name: str) -> dict[str, Any]:
    if name == "rules":
        return rules_schema()
    found: dict[str, Any] = json.loads(resources.read_text(f"schemas/{name}.schema.json"))
    return found
