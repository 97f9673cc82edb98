"""Evaluates a `when:` on series written as lists, one value a step."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from healthwatch.promql import Program, parse
from healthwatch.rulefile.conditions import expand
from healthwatch.stream import Frame, History, SeriesTable
from healthwatch.stream.catalogue import Metric

Values = Sequence[float | None]


def metric(name: str, *labels: str) -> Metric:
    return Metric(name, "1", labels, "gauge", "step", "test", "")


METRICS = {
    each.name: each
    for each in (
        metric("loss", "split"),
        metric("norm", "param"),
        metric("tokens", "layer", "expert"),
        metric("topk", "layer"),
        metric("logit", "layer", "head"),
        metric("step_time"),
        metric("speed"),
    )
}


@dataclass(frozen=True)
class Step:
    """Label values (with `=name` where the result has one) to value, and the label sets that are clear."""

    breaches: Mapping[str, float]
    clear: frozenset[str]


def labels_text(labels: Iterable[tuple[str, str]]) -> str:
    return ",".join(value for _, value in labels)


def labels_of(series: str) -> tuple[str, dict[str, str]]:
    """`tokens{layer=0,expert=1}`."""
    name, _, rest = series.partition("{")
    pairs = (pair.split("=") for pair in rest.rstrip("}").split(",") if pair)
    return name, dict(pairs)


def run(when: Any, series: Mapping[str, Values], *, until: int | None = None) -> dict[int, Step]:
    """The verdicts of every step at whose end the expression is due."""
    expanded = expand(when, METRICS)
    assert expanded.text is not None, expanded.problems
    parsed = parse(expanded.text)
    assert parsed.expression is not None, parsed.problems
    table = SeriesTable()
    history = History(table)
    program = Program(history)
    query = program.add(parsed.expression)
    program.retain()
    registered = [(table.register(name, [labels]), series[key]) for key in series for name, labels in [labels_of(key)]]
    steps: dict[int, Step] = {}
    for step in range(1, (until or max(map(len, series.values()))) + 1):
        frame = Frame(step)
        for each, values in registered:
            value = values[step - 1] if step <= len(values) else None
            if value is not None:
                frame.add(each, [value])
        frame.close()
        history.extend(frame)
        for tick in query.due(frame):
            vector = query.evaluate(tick)
            found = [labels_text(labels) for labels in vector.labels]
            kept, known = np.flatnonzero(vector.kept), np.flatnonzero(vector.known & ~vector.kept)
            steps[step] = Step(
                {found[position]: float(vector.values[position]) for position in kept},
                frozenset(found[position] for position in known),
            )
    return steps


def breaching(when: Any, series: Mapping[str, Values], *, until: int | None = None) -> dict[int, list[str]]:
    """Which label sets breach at which step."""
    return {step: sorted(seen.breaches) for step, seen in run(when, series, until=until).items() if seen.breaches}
