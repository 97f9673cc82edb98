"""`healthwatch captures RUN` and `healthwatch captures diff A B`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from healthwatch.actions.captures.shelf import Stored, shelf, stored
from healthwatch.actions.captures.summary import differences, tables
from healthwatch.actions.captures.trace import Breakdown, read_trace
from healthwatch.diagnostics import Diagnostic, Invalid
from healthwatch.recording import Run, dump

LIST = "list"
_output = click.option("--output", "-o", type=click.Choice(["text", "json"]), default="text", show_default=True)


class _Group(click.Group):
    """Without the name of a command, a list is meant: `healthwatch captures RUN`."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if args and args[0] not in self.commands and args[0] not in ctx.help_option_names:
            args = [LIST, *args]
        return super().parse_args(ctx, args)


@click.group("captures", cls=_Group)
def command() -> None:
    """List the profiles of a run (captures RUN), or compare two of them (captures diff A B)."""


@command.command(LIST)
@click.argument("run", type=click.Path(path_type=Path))
@_output
def list_(run: Path, output: str) -> None:
    """List the profiles of RUN, a file rank_<r>.sqlite or the folder that holds it, and those that were refused."""
    rows = list(_rows(run))
    if output == "json":
        click.echo(dump(rows))
        return
    click.echo("\n".join(_line(row) for row in rows) or "no captures")


@command.command("diff")
@click.argument("a", type=click.Path(path_type=Path))
@click.argument("b", type=click.Path(path_type=Path))
@_output
def diff(a: Path, b: Path, output: str) -> None:
    """Compare two captures, each the folder that holds its manifest.json: what took longer in A than in B."""
    one, other = _breakdown(a), _breakdown(b)
    if output == "json":
        click.echo(dump([_difference(each) for each in differences(one, other)]))
        return
    click.echo("\n\n".join(part for part in tables(one, other, "A", "B") if part))


# The list


def _rows(run: Path) -> Iterator[dict[str, Any]]:
    """Of each rank: what lies in its folder, then what was refused."""
    for file in [run] if run.is_file() else _files(run):
        with Run.open(file) as opened:
            rank, noted = opened.meta.get("rank", 0), opened.captures()
        yield from (_row(one, rank) for one in shelf(file.parent / "captures" / f"rank_{rank}"))
        yield from (_refused(note, rank) for note in noted if note["state"] == "refused")


def _files(folder: Path) -> list[Path]:
    found = sorted(folder.glob("rank_*.sqlite"), key=lambda file: (len(file.name), file.name))
    return found or [Run.open(folder).path]  # which says what is missing


def _row(one: Stored, rank: int) -> dict[str, Any]:
    first, last = one.steps
    return {
        "folder": one.folder,
        "rank": rank,
        "kind": one.kind,
        "state": one.state,
        "incidents": one.incidents,
        "steps": {"first": first, "last": last, "recorded": one.recorded},
        "trace": one.trace,
        "size": one.size,
        "problem": one.manifest.get("problem"),
    }


def _refused(note: dict[str, Any], rank: int) -> dict[str, Any]:
    return {
        "folder": None,
        "rank": rank,
        "kind": note.get("kind", "incident"),
        "state": "refused",
        "incidents": note["incidents"],
        "steps": {"first": note["first_step"], "last": note["last_step"], "recorded": 0},
        "trace": None,
        "size": 0,
        "problem": note["refused"],
    }


def _line(row: dict[str, Any]) -> str:
    steps = row["steps"]
    where = f"steps {steps['first']} to {steps['last']}" if row["folder"] else f"step {steps['first']}"
    what = ", ".join(row["incidents"]) or row["kind"]
    tail = row["problem"] or (row["folder"].as_posix() if row["folder"] else "")
    return f"rank {row['rank']}  {where:<22} {row['state']:<10} {what}: {tail}"


# The comparison


def _breakdown(folder: Path) -> Breakdown:
    one = stored(folder)
    if one is None:
        raise Invalid([Diagnostic("HW321", "error", f"{folder.as_posix()} holds no capture (manifest.json)")])
    breakdown = one.breakdown()
    if breakdown is None and one.trace is not None:
        breakdown = read_trace(one.trace, one.boundaries)[1]
    if breakdown is None:
        message = f"the capture in {folder.as_posix()} has no trace; its state is {one.state}"
        raise Invalid([Diagnostic("HW321", "error", message)])
    return breakdown


def _difference(one: Any) -> dict[str, Any]:
    sides = {"a": one.measured, "b": one.reference}
    means = {
        side: {"ms": each.ms, "mean_ms": each.mean, "calls": each.calls, "steps": each.steps}
        for side, each in sides.items()
    }
    return {"operator": one.name, "runs_on": one.track, "difference_ms": one.ms, **means}
