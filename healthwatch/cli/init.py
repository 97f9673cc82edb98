"""`healthwatch init [FOLDER]`."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from healthwatch.cli.schema import NAMES, schema
from healthwatch.rulefile.conditions.generate import dump

FIRST = Path(__file__).with_name("first")
SCHEMAS = ".healthwatch"


@click.command("init")
@click.argument("folder", default=".", type=click.Path(file_okay=False, path_type=Path))
def command(folder: Path) -> None:
    """Write a commented config, a first rule file and its test, and the schemas for the editor.

    Nothing is overwritten: exit code 2 where a file of that name is there already.
    """
    texts = files()
    there = [name for name in texts if (folder / name).exists()]
    if there:
        click.echo(f"error: already there, nothing written: {', '.join(there)}", err=True)
        sys.exit(2)
    for name, text in texts.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
        click.echo(f"wrote {folder / name}")
    click.echo(
        "\nNext:\n  healthwatch check healthwatch.yaml\n  healthwatch test my-rules.test.yaml\n\n"
        'In the training loop:\n  hw = healthwatch.load("healthwatch.yaml").attach(model, optimizer)\n'
        "  hw.log(queue_depth=8)   # numbers of your own; a loop without MindSpore attaches with attach()\n"
        "  hw.step(loss)           # once per optimizer step"
    )


def files() -> dict[str, str]:
    """What is written, by name; the schema of rules knows the conditions that are installed here."""
    first = {file.name: file.read_text(encoding="utf-8") for file in sorted(FIRST.glob("*.yaml"))}
    schemas = {f"{SCHEMAS}/{name}.schema.json": dump(schema(name)) + "\n" for name in NAMES if name != "record"}
    return first | schemas
