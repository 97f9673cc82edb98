"""A failure as text: expected against got in columns, and the values around the step."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from healthwatch.alerting.message import number_text, series_text
from healthwatch.promql import ast
from healthwatch.promql.regex import compile_regex
from healthwatch.rulefile import Rule
from healthwatch.ruletest.compare import Failure, Row
from healthwatch.ruletest.trace import Trace
from healthwatch.stream import Frame, LabelSet

AROUND = 3  # steps shown on each side
MOST_SERIES = 8
MOST_ROWS = 40

_WORDS = {"=": "  as expected", "-": "- expected", "+": "+ got"}


def text(failure: Failure, trace: Trace, rules: Sequence[Rule]) -> str:
    """Everything that is known of one failure."""
    place = f"{failure.span.file}:{failure.span.line}:{failure.span.column}"
    lines = [f"{place}: {failure.title}", *_indented(comparison(failure.rows))]
    lines += [f"    {failure.note}"] if failure.note else []
    concerned = [rule for rule in rules if rule.name in failure.rules]
    lines += [f"    {_silence(rule, trace)}" for rule in concerned if _silence(rule, trace)]
    trees = [rule.expression.tree for rule in concerned] + ([] if failure.tree is None else [failure.tree])
    table = around(trace, failure.step, trees, failure.rules) if failure.step is not None and trace.steps else []
    lines += ["", *_indented(table)] if table else []
    return "\n".join(lines)


def comparison(rows: Sequence[Row]) -> list[str]:
    """What is in both, what is missing and what is too much, the same cells below each other."""
    wrong = [row for row in rows if row.mark != "="]
    shown = list(rows) if len(rows) <= MOST_ROWS else wrong[:MOST_ROWS]
    names = list(dict.fromkeys(name for row in shown for name in row.cells))
    names.sort(key=lambda name: name == "=")  # the value last
    width = {name: max(len(row.cells.get(name, "")) for row in shown) for name in names}
    lines = [_row(row, names, width) for row in shown]
    if not any(row.mark in "=-" for row in rows):
        lines.insert(0, "- expected     nothing")
    if not any(row.mark in "=+" for row in rows):
        lines.append("+ got          nothing")
    more = len(rows) - len(shown)
    lines += [f"  and {more} more"] if more > 0 else []
    return lines + list(dict.fromkeys(f"  difference   {row.apart}" for row in shown if row.apart))


def _row(row: Row, names: Sequence[str], width: dict[str, int]) -> str:
    cells = "  ".join(row.cells.get(name, "").ljust(width[name]) for name in names)
    return f"{_WORDS[row.mark]:<13}  {cells or 'no labels'}".rstrip()


def around(trace: Trace, step: int, trees: Sequence[ast.Expr], rules: Sequence[str]) -> list[str]:
    """A column a tick: the samples that the rules read, and whether each rule is pending or firing; else nothing."""
    frames = [trace.frames[each] for each in _near(trace.steps, step)]
    columns = [(frame, tick) for frame in frames for tick in _ticks(frame)]
    head = ["step", *(_tick_text(frame, tick) for frame, tick in columns)]
    series = _series(frames, trees)
    rows = [
        [series_text(_named(key)), *(_value(frame, tick, key) for frame, tick in columns)]
        for key in series[:MOST_SERIES]
    ]
    rows += [[rule, *(_phase(trace, rule, frame) for frame, _ in columns)] for rule in rules if rule in trace.phases]
    if not rows:
        if not _selectors(trees):
            return []
        return [f"nothing that it reads has a sample from step {frames[0].step} to {frames[-1].step}"]
    table = _table([head, *rows])
    more = len(series) - MOST_SERIES
    return [*table, f"and {more} more series"] if more > 0 else table


def _near(steps: Sequence[int], step: int) -> Sequence[int]:
    place = max((number for number, each in enumerate(steps) if each <= step), default=0)
    return steps[max(0, place - AROUND) : place + AROUND + 1]


def _ticks(frame: Frame) -> list[int | None]:
    """The micro-steps of a frame, or the step alone."""
    micro_steps = sorted({column.micro_step for column in frame.columns if column.micro_step is not None})
    ends = not micro_steps or any(column.micro_step is None for column in frame.columns)
    return [*micro_steps, *([None] if ends else [])]


def _tick_text(frame: Frame, micro_step: int | None) -> str:
    return str(frame.step) if micro_step is None else f"{frame.step}/{micro_step + 1}"


Key = tuple[str, LabelSet]


def _series(frames: Iterable[Frame], trees: Iterable[ast.Expr]) -> list[Key]:
    """The series of the frames that one of the expressions reads."""
    selectors = _selectors(trees)
    keys = dict.fromkeys(
        (column.series.metric, labels)
        for frame in frames
        for column in frame.columns
        for labels in column.series.labels
    )
    return [key for key in keys if any(_selects(node, key) for node in selectors)]


def _selectors(trees: Iterable[ast.Expr]) -> list[ast.VectorSelector]:
    return [node for tree in trees for node in ast.walk(tree) if isinstance(node, ast.VectorSelector)]


def _selects(node: ast.VectorSelector, key: Key) -> bool:
    metric, labels = key[0], {"__name__": key[0], **dict(key[1])}
    return (node.metric is None or node.metric == metric) and all(_admits(each, labels) for each in node.matchers)


def _admits(matcher: ast.Matcher, labels: dict[str, str]) -> bool:
    value = labels.get(matcher.name, "")
    if matcher.op in ("=", "!="):
        return (value == matcher.value) == (matcher.op == "=")
    return bool(compile_regex(matcher.value).fullmatch(value)) == (matcher.op == "=~")


def _named(key: Key) -> LabelSet:
    return (("__name__", key[0]), *key[1])


def _value(frame: Frame, micro_step: int | None, key: Key) -> str:
    for column in frame.columns:
        if column.micro_step == micro_step and column.series.metric == key[0] and key[1] in column.series.labels:
            value = float(column.values[column.series.labels.index(key[1])])
            return "NaN" if math.isnan(value) else number_text(value)
    return ""


def _phase(trace: Trace, rule: str, frame: Frame) -> str:
    return trace.phases[rule].get(frame.step, ".")


def _silence(rule: Rule, trace: Trace) -> str:
    return "; ".join(
        f"{rule.name}: {problem.message}" for (name, _), problem in trace.problems.items() if name == rule.name
    )


def _table(rows: Sequence[Sequence[str]]) -> list[str]:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["  ".join([row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])]).rstrip() for row in rows]


def _indented(lines: Iterable[str]) -> list[str]:
    return [f"    {line}".rstrip() for line in lines]
