"""`healthwatch capture RUN`."""

from __future__ import annotations

from pathlib import Path

import click

from healthwatch.actions.captures.requests import put
from healthwatch.diagnostics import Diagnostic, Invalid
from healthwatch.recording import Run


@click.command("capture")
@click.argument("run", type=click.Path(path_type=Path))
@click.option("--steps", type=click.IntRange(1), default=3, show_default=True, help="How many steps to profile.")
@click.option("--rank", "ranks", type=click.IntRange(0), multiple=True, help="On this rank; may be given again.")
def command(run: Path, steps: int, ranks: tuple[int, ...]) -> None:
    """Ask the training that records RUN for a profile of its next steps.

    RUN is a file rank_<r>.sqlite or the folder that holds it; without --rank the file's rank is asked, of a folder the
    lowest. The training picks it up when the step under way ends; `healthwatch captures RUN` shows what became of it.
    """
    with Run.open(run) as opened:
        attempts, rank, output = opened.attempts(), opened.meta.get("rank", 0), opened.path.parent
    if attempts and attempts[-1].ended is not None:
        message = f"{run.as_posix()} has ended ({attempts[-1].reason}): there are no more steps to profile"
        raise Invalid([Diagnostic("HW320", "error", message)])
    asked = ranks or (int(rank),)
    put(output, steps, asked)
    whom = f"rank {asked[0]}" if len(asked) == 1 else f"ranks {', '.join(map(str, asked))}"
    click.echo(f"asked {whom} for the next {steps} steps; see: healthwatch captures {output.as_posix()}")
