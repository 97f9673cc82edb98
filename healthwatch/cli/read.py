"""`healthwatch read LOG`."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import click
import numpy as np

from healthwatch.alerting.message import number_text
from healthwatch.diagnostics import counted
from healthwatch.readers import Log, Options, Passed, formats, open_log
from healthwatch.readers.records import lines
from healthwatch.stream import Column, Frame

FORMAT = click.option("--format", "-f", "format_", metavar="NAME", help="The format of a log; recognised without it.")
TOP_K = click.option("--top-k", type=click.IntRange(1), help="Experts a token goes to, where a log does not say.")


@click.command("read")
@click.argument("log", type=click.Path(path_type=Path))
@click.option("--output", "-o", type=click.Choice(["jsonl", "table"]), default="table", show_default=True)
@FORMAT
@TOP_K
@click.option(
    "--formats",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=lambda context, _, wanted: _list(context) if wanted else None,
    help="List the formats that are installed.",
)
def command(log: Path, output: str, format_: str | None, top_k: int | None) -> None:
    """Print the samples of LOG, a log that a trainer or a monitor has written.

    jsonl is one object a sample (schemas/record.schema.json), table a row a step and metric.
    """
    opened = open_log(log, format_, Options(top_k))
    steps = _print_records(opened) if output == "jsonl" else _print_table(opened)
    for remark in remarks(opened.path, opened.passed, steps):
        click.echo(remark, err=True)
    sys.exit(0 if steps else 1)


def remarks(path: Path, passed: Passed, steps: int) -> Iterator[str]:
    """What was passed over, for stderr."""
    if not steps:
        yield f"{path.as_posix()} holds no samples"
    if passed.unreadable:
        first, *others = [(line, reason) for reason, line in passed.reasons.items()]
        count = counted(passed.unreadable, "record")
        yield f"{path.as_posix()}:{first[0]}: {count} can't be read{_because(first[1], others)}"
        for line, reason in others:
            yield f"{path.as_posix()}:{line}: {reason}"
    if passed.otherwise:
        yield f"{path.as_posix()}: and {counted(passed.otherwise, 'record')} for other reasons"
    if passed.late:
        yield f"left out: {counted(passed.late, 'sample')} of a step that was over"


def _because(reason: str, others: Sequence[object]) -> str:
    if not reason:
        return ""
    return f", for several reasons: {reason}" if others else f": {reason}"


def _list(context: click.Context) -> None:
    for each in formats().values():
        click.echo(f"{each.name}: {each.help}")
    context.exit()


def _print_records(log: Log) -> int:
    steps = 0
    for frame in log.frames():
        steps += 1
        click.echo("\n".join(lines(frame)))
    return steps


def _print_table(log: Log) -> int:
    steps = 0
    for frame in log.frames():
        if not steps:
            click.echo(_row("step", "attempt", "metric", "series", "value"))
        steps += 1
        for column in frame.columns:
            click.echo(_row(_step(frame, column), str(frame.attempt), column.series.metric, *_summary(column)))
    return steps


def _row(step: str, attempt: str, metric: str, series: str, value: str) -> str:
    return f"{step:>10} {attempt:>7}  {metric:<22}{series:>7}  {value}"


def _step(frame: Frame, column: Column) -> str:
    return str(frame.step) if column.micro_step is None else f"{frame.step}.{column.micro_step + 1}"


def _summary(column: Column) -> tuple[str, str]:
    """How many series have a sample, and the value, or between which values they lie."""
    values = column.values
    if len(values) == 1:
        return "1", number_text(float(values[0]))
    finite = values[np.isfinite(values)]
    between = f"{number_text(float(finite.min()))} .. {number_text(float(finite.max()))}" if len(finite) else ""
    broken = len(values) - len(finite)
    return str(len(values)), between + (f"  {broken} not finite" if broken else "")
