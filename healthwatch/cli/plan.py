"""What a rule computes: the nodes of its plan, as they stand after an evaluation."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from healthwatch.alerting.watch import Watch
from healthwatch.cli.generated import generated, unmatched
from healthwatch.diagnostics import counted
from healthwatch.engine import Engine
from healthwatch.promql import Query
from healthwatch.promql.program import Planned
from healthwatch.recording import Run
from healthwatch.rulefile import Rule
from healthwatch.stream.catalogue import Metric

LONGEST = 90  # characters of a node

Nodes = Sequence[tuple[str, Sequence[Planned]]]  # by the key of the rule that the expression stands under


def plan(name: str, rules: Sequence[Rule], metrics: Mapping[str, Metric], run: Path | None) -> str:
    """The plan of one rule among those that it is compiled with, after the last step of a run or of a generated one."""
    own = next(rule for rule in rules if rule.name == name)
    engine, source = _recorded(rules, run) if run is not None else generated(own, rules, metrics)
    nodes = {watch.rule.name: list(_nodes(watch)) for watch in engine.watches}
    sharing = {other: _texts(each) for other, each in nodes.items() if other != name}
    rows = [row for key, planned in nodes[name] for row in _section(key, planned, sharing)]
    elsewhere = "" if run is not None else "; with --run RUN it is evaluated on recorded ones"
    nothing = [f"no series of it matches {each}{elsewhere}" for each in unmatched(own, engine.history.table)]
    head = [f"{name}: {_summary(nodes[name])}, as of {source}", *nothing, "", _row("ms", "rows", "", "")]
    return "\n".join([*head, *rows, "", *_LEGEND])


_LEGEND = (
    "ms: what the last computation of a node took, with its inputs; - where nothing asked for it.",
    "rows: how many of the history are kept for its selector.",
    "A node that stands more than once, here or in the rules in brackets, is one: computed once, its ms are the same.",
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
    return f"{counted(len(shown), 'node')}, {counted(rows, 'row')} kept, {_ms(root)} ms"


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


def _recorded(rules: Sequence[Rule], path: Path | str) -> tuple[Engine, str]:
    run = Run.open(path)
    engine, last = Engine(rules, run.table), 0
    for frame in run.frames():
        if frame.step <= last:
            engine.rewind(frame.step)
        engine.step(frame)
        last = frame.step
    return engine, f"step {last} of {run.path.as_posix()}"
