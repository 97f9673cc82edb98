"""`healthwatch query RUN EXPR`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
import numpy as np

from healthwatch.alerting.message import number_text, series_text
from healthwatch.diagnostics import Diagnostic, Invalid, Span, suggest
from healthwatch.promql import Expression, Program, ast, parse
from healthwatch.promql.ast import Problem
from healthwatch.promql.check import type_of
from healthwatch.promql.vector import EvaluationError, Matrix
from healthwatch.recording import Run, dump
from healthwatch.stream import TICKS_PER_STEP, History, LabelSet, tick_of

NOTHING = "no series has a result"


@dataclass(frozen=True, slots=True)
class Line:
    """One series of a result: its values by step; a sample within a step stands at a fraction of it."""

    labels: LabelSet
    points: tuple[tuple[float, float], ...]


@dataclass(frozen=True, slots=True)
class Answer:
    """`kind` is vector, scalar, matrix or string; `steps` says which were asked for, also behind the last one."""

    kind: str
    steps: Mapping[str, int]
    lines: tuple[Line, ...]
    string: str | None = None


@click.command("query")
@click.argument("run", type=click.Path(path_type=Path))
@click.argument("expr")
@click.option("--at", type=int, metavar="STEP", help="Evaluate at the end of this step; the last one without it.")
@click.option("--from", "start", type=int, metavar="STEP", help="Evaluate at several steps, from this one on.")
@click.option("--to", "end", type=int, metavar="STEP", help="The last step of several; the run's last without it.")
@click.option("--step", type=click.IntRange(min=1), metavar="N", help="Every N steps of several; each without it.")
@click.option("--output", "-o", type=click.Choice(["text", "json"]), default="text", show_default=True)
def command(
    run: Path, expr: str, at: int | None, start: int | None, end: int | None, step: int | None, output: str
) -> None:
    """Evaluate a PromQL expression over the samples of RUN.

    RUN is a file rank_<r>.sqlite or the folder that holds it. Durations count steps, [50] or offset 100; one with a
    unit counts a step for a second. Exit code 2 if the expression or the run can't be used.
    """
    expression = read(expr)
    several = (start, end, step) != (None, None, None)
    if several and at is not None:
        raise click.UsageError("--at asks for one step, --from, --to and --step for several")
    if several and type_of(expression.tree) in ("matrix", "string"):
        raise click.UsageError("--from, --to and --step need a vector or a number")
    with Run.open(run) as opened:
        first, _ = opened.steps or (1, 0)
        last = opened.last_step()
        history = history_of(opened)
    if several:
        bounds = first if start is None else start, last if end is None else end
        if start is not None and end is not None and start > end:
            raise click.UsageError(f"--from {start} lies behind --to {end}")
        answer = at_steps(expression, history, *bounds, step or 1, last)
    else:
        bounds = (first, last if at is None else at)
        answer = at_step(expression, history, bounds[1], last)
    click.echo(as_json(answer) if output == "json" else as_text(answer))
    if answer.string is not None:
        return
    if max(bounds) > last:
        click.echo(f"the run ends at step {last}" if last else f"{opened.path.as_posix()} holds no samples", err=True)
    asked = at if start is None else start
    if last and asked is not None and asked < first:
        click.echo(f"the run begins at step {first}", err=True)
    for remark in () if answer.lines else unmet(expression, history):
        click.echo(remark, err=True)


def unmet(expression: Expression, history: History) -> Iterator[str]:
    """Why there may be no result: names that stand for nothing in the run."""
    known = history.table.metrics()
    named = (node.metric for node in ast.walk(expression.tree) if isinstance(node, ast.VectorSelector))
    for metric in dict.fromkeys(name for name in named if name is not None and name not in known):
        yield f'the run has no metric "{metric}"; {suggest(metric, known, "its metrics")}'
    for selector in (node for node in ast.walk(expression.tree) if isinstance(node, ast.VectorSelector)):
        if selector.metric not in known:
            continue
        names = sorted({name for labels in history.table.labels(selector.metric) for name, _ in labels})
        for name in (each.name for each in selector.matchers if each.op in ("=", "=~") and each.value):
            if name not in (*names, "__name__"):
                yield f'{selector.metric} has no label "{name}"; {suggest(name, names, "its labels") or "it has none"}'


def read(text: str) -> Expression:
    """The expression that a user typed. Raises Invalid with every problem of it."""
    parsed = parse(text, rule=False)
    if parsed.expression is None:
        raise Invalid([_diagnostic(text, problem) for problem in parsed.problems])
    return parsed.expression


def _diagnostic(text: str, problem: Problem) -> Diagnostic:
    start, end = problem.span
    line = text.count("\n", 0, start) + 1
    begin = text.rfind("\n", 0, start) + 1
    source = text.split("\n")[line - 1]
    span = Span("expression", line, start - begin + 1, min(end - begin, len(source)) + 1)
    return Diagnostic(problem.code, "error", problem.message, span, help=problem.help, source=source)


def history_of(run: Run) -> History:
    """All samples of a run; where it went back, those of the later attempt (R12)."""
    history = History(run.table)
    last = 0
    for frame in run.frames():
        if frame.step <= last:
            history.rewind(tick_of(frame.step - 1))
        last = frame.step
        history.extend(frame)
    return history


def at_step(expression: Expression, history: History, step: int, last: int) -> Answer:
    """The result at the end of a step, in the order of a sorting function where there is one. May raise Invalid.

    Nothing where the run, of which `last` is the last step, has not been: the newest samples would pass for its own.
    """
    kind = type_of(expression.tree)
    if expression.string is not None:
        return Answer("string", {}, (), expression.string)
    if step > last:
        return Answer(kind or "vector", {"step": step}, ())
    query = Program(history).add(expression)
    try:
        if kind == "matrix":
            return Answer("matrix", {"step": step}, _lines(query.evaluate_samples(tick_of(step))))
        vector = query.evaluate(tick_of(step))
    except EvaluationError as error:
        raise _no_result(error) from None
    order = np.flatnonzero(vector.kept) if vector.order is None else vector.order
    lines = (Line(vector.labels[place], ((step, float(vector.values[place])),)) for place in order)
    return Answer(kind or "vector", {"step": step}, tuple(lines))


def at_steps(expression: Expression, history: History, start: int, end: int, step: int, last: int) -> Answer:
    """Every series with a result at one of the steps start, start + step ... up to `end`, or to the run's last one.

    May raise Invalid.
    """
    asked = {"from": start, "to": end, "step": step}
    if start > min(end, last):
        return Answer("matrix", asked, ())
    query = Program(history).add(expression)
    try:
        matrix = query.evaluate_range(tick_of(start), tick_of(min(end, last)), step * TICKS_PER_STEP)
    except EvaluationError as error:
        raise _no_result(error) from None
    return Answer("matrix", asked, _lines(matrix))


def _lines(matrix: Matrix) -> tuple[Line, ...]:
    points: dict[LabelSet, list[tuple[float, float]]] = {}
    for row, column in np.argwhere(matrix.kept):
        whole, rest = divmod(matrix.ticks[row], TICKS_PER_STEP)
        point = whole + rest / TICKS_PER_STEP if rest else whole, float(matrix.values[row, column])
        points.setdefault(matrix.labels[column], []).append(point)
    return tuple(Line(labels, tuple(found)) for labels, found in sorted(points.items()))


def _no_result(error: EvaluationError) -> Invalid:
    return Invalid([Diagnostic("HW310", "error", f"the expression has no result: {error}")])


def as_text(answer: Answer) -> str:
    """A line for each series of a vector; of a matrix each series with its steps and values below it."""
    if answer.string is not None:
        return answer.string
    if answer.kind != "matrix":
        lines = (f"{series_text(line.labels)}  {number_text(line.points[0][1])}" for line in answer.lines)
        return "\n".join(lines) or NOTHING
    width = max((len(_step_text(step)) for line in answer.lines for step, _ in line.points), default=0)
    return "\n".join(_block(line, width) for line in answer.lines) or NOTHING


def _block(line: Line, width: int) -> str:
    below = (f"  {_step_text(step):>{width}}  {number_text(value)}" for step, value in line.points)
    return "\n".join([series_text(line.labels), *below])


def _step_text(step: float) -> str:
    return str(step) if isinstance(step, int) else f"{step:.6f}".rstrip("0")


def as_json(answer: Answer) -> str:
    """`{"type", "step" or "from", "to", "step", "result"}`; numbers that are not finite are text."""
    lines = [_series_json(answer.kind, line) for line in answer.lines]
    return dump({"type": answer.kind, **answer.steps, "result": lines if answer.string is None else answer.string})


def _series_json(kind: str, line: Line) -> dict[str, Any]:
    if kind == "matrix":
        return {"labels": dict(line.labels), "values": line.points}
    return {"labels": dict(line.labels), "value": line.points[0][1]}
