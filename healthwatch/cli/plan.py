"""What a rule computes: the nodes of its plan, as they stand after an evaluation."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path

import numpy as np

from healthwatch.alerting.watch import Watch
from healthwatch.engine import Engine
from healthwatch.promql import Query, ast
from healthwatch.promql.program import Planned
from healthwatch.recording import Run, reach
from healthwatch.rulefile import Rule
from healthwatch.rulefile.lint.selectors import admits
from healthwatch.stream import Frame, SeriesTable
from healthwatch.stream.catalogue import Metric
from healthwatch.stream.series import METRIC_NAME

EVALUATED = 20  # steps of a generated run; those before only fill the windows
MICRO_STEPS = 2
LONGEST = 90  # characters of a node
FEWEST_SERIES = 8  # of a generated metric with labels

Nodes = Sequence[tuple[str, Sequence[Planned]]]  # by the key of the rule that the expression stands under


def plan(name: str, rules: Sequence[Rule], metrics: Mapping[str, Metric], run: Path | None) -> str:
    """The plan of one rule among those that it is compiled with, after the last step of a run or of a generated one."""
    engine, source = _recorded(rules, run) if run is not None else _generated(name, rules, metrics)
    nodes = {watch.rule.name: list(_nodes(watch)) for watch in engine.watches}
    sharing = {other: _texts(each) for other, each in nodes.items() if other != name}
    rows = [row for key, planned in nodes[name] for row in _section(key, planned, sharing)]
    head = [f"{name}: {_summary(nodes[name])}, {source}", "", _row("ms", "rows", "", "")]
    return "\n".join([*head, *rows, "", *_LEGEND])


_LEGEND = (
    "ms: what the last computation of a node took, with its inputs; - where nothing asked for it.",
    "rows: how many of the history are kept for its selector. In brackets: rules that share the node, computed once.",
)


def _nodes(watch: Watch) -> Iterator[tuple[str, Sequence[Planned]]]:
    queries: dict[str, Query | None] = {"expr": watch.query, "until": watch.until, "detail": watch.detail}
    for key, query in queries.items():
        if query is not None:
            yield key, query.plan()


def _texts(nodes: Nodes) -> frozenset[str]:
    return frozenset(node.text for _, planned in nodes for node in planned)


def _summary(nodes: Nodes) -> str:
    shown = {node.text: node for _, planned in nodes for node in planned if not _constant(node)}
    root = nodes[0][1][0]
    rows = max((node.rows or 0 for node in shown.values()), default=0)
    return f"{len(shown)} nodes, {rows} rows kept, {_ms(root)} ms"


def _section(key: str, planned: Sequence[Planned], sharing: Mapping[str, frozenset[str]]) -> Iterator[str]:
    yield _row("", "", f"{key}:", "")
    for node in planned:
        if not _constant(node):
            others = [rule for rule, texts in sharing.items() if node.text in texts] if node.users > 1 else []
            shared = f"  [{', '.join(others)}]" if others else ""
            text = node.text if len(node.text) <= LONGEST else f"{node.text[: LONGEST - 3]}..."
            yield _row(_ms(node), "" if node.rows is None else str(node.rows), "  " * (node.depth + 1) + text, shared)


def _row(ms: str, rows: str, text: str, shared: str) -> str:
    return f"{ms:>9} {rows:>6}  {text}{shared}".rstrip()


def _ms(node: Planned) -> str:
    return f"{1000 * node.seconds:.3f}" if node.seconds else "-"


def _constant(node: Planned) -> bool:
    """A number costs nothing and says nothing."""
    return node.rows is None and node.text.replace(".", "", 1).isdigit()


# What it is evaluated on


def _recorded(rules: Sequence[Rule], path: Path | str) -> tuple[Engine, str]:
    run = Run.open(path)
    engine, last = Engine(rules, run.table), 0
    for frame in run.frames():
        if frame.step <= last:
            engine.rewind(frame.step)
        engine.step(frame)
        last = frame.step
    return engine, f"as of step {last} of {run.path.as_posix()}"


def _generated(name: str, rules: Sequence[Rule], metrics: Mapping[str, Metric]) -> tuple[Engine, str]:
    """As many steps as the rule looks back, of as many series of what it reads as a large model has."""
    table, random = SeriesTable(), np.random.default_rng(0)
    own = [rule for rule in rules if rule.name == name]
    engine = Engine(rules, table)
    steps = reach(Engine(own, table), EVALUATED) + EVALUATED
    read = {each.name: each for each in _read(own[0], metrics)}
    series = {metric: table.register(metric.name, _labels(metric)) for metric in read.values()}
    for step in range(1, steps + 1):
        frame = Frame(step)
        for metric, registered in series.items():
            for micro_step in range(MICRO_STEPS) if metric.cadence == "micro-step" else (None,):
                frame.add(registered, np.exp(0.1 * random.standard_normal(len(registered))), micro_step)
        frame.close()
        if step <= steps - EVALUATED:
            engine.history.extend(frame)
        else:
            engine.step(frame)
    return engine, f"as of step {steps} of a generated run with {sum(map(len, series.values())):,} series"


def _read(rule: Rule, metrics: Mapping[str, Metric]) -> Iterator[Metric]:
    """The metrics that the rule reads; one that nobody knows has one series."""
    for expression in filter(None, (rule.expression, rule.until, rule.detail)):
        for node in ast.walk(expression.tree):
            if isinstance(node, ast.VectorSelector) and node.metric:
                yield metrics.get(node.metric, Metric(node.metric, "1", (), "gauge", "step", "", ""))
            elif isinstance(node, ast.VectorSelector):
                named = [matcher for matcher in node.matchers if matcher.name == METRIC_NAME]
                yield from (each for name, each in metrics.items() if all(admits(one, name) for one in named))


def _labels(metric: Metric) -> list[dict[str, str]]:
    """Label sets of its own labels, the last of them changing fastest."""
    names = [name for name in metric.labels if name not in metric.optional]
    count = (metric.series or FEWEST_SERIES) if names else 1
    return list(islice(_numbered(names, count), count))


def _numbered(names: Sequence[str], count: int) -> Iterator[dict[str, str]]:
    base = max(2, round(count ** (1 / max(len(names), 1)) + 0.5))
    for number in range(count):
        digits = [number // base**place % base for place in reversed(range(len(names)))]
        yield dict(zip(names, map(str, digits), strict=True))
