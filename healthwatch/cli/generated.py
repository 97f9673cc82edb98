"""Series and steps made up for a rule: what it reads, of as many series as a large model has."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice

import numpy as np

from healthwatch.cli.matching import matched, matches
from healthwatch.engine import Engine
from healthwatch.promql import ast
from healthwatch.promql.text import written
from healthwatch.recording import reach
from healthwatch.rulefile import Rule
from healthwatch.rulefile.reads import may_read, selectors_of
from healthwatch.stream import Frame, SeriesTable
from healthwatch.stream.catalogue import Metric

EVALUATED = 20  # steps of a generated run; those before only fill the windows
MICRO_STEPS = 2
FEWEST_SERIES = 8  # of a generated metric with labels

Reads = Sequence[tuple[ast.VectorSelector, Sequence[Metric]]]


def generated(rule: Rule, rules: Sequence[Rule], metrics: Mapping[str, Metric]) -> tuple[Engine, str]:
    """As many steps as the rule looks back, and what they are.

    Where its matchers take none of the usual labels, half of the series get some that they take.
    """
    table, random = SeriesTable(), np.random.default_rng(0)
    engine = Engine(rules, table)
    steps = reach(Engine([rule], table), EVALUATED) + EVALUATED
    reads = [(selector, list(_metrics(selector, metrics))) for selector in selectors_of(rule)]
    read = {each.name: each for _, those in reads for each in those}
    series = {metric: table.register(metric.name, _labels(metric, reads)) for metric in read.values()}
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
    return engine, f"step {steps} of a generated run with {sum(map(len, series.values())):,} series"


def unmatched(rule: Rule, table: SeriesTable) -> list[str]:
    """The selectors of a rule that take none of the series there are."""
    found = []
    for selector in selectors_of(rule):
        names = [name for name in table.metrics() if may_read(selector, name)]
        if not any(matches(dict(labels), selector) for name in names for labels in table.labels(name)):
            found.append(written(selector))
    return list(dict.fromkeys(found))


def _metrics(selector: ast.VectorSelector, metrics: Mapping[str, Metric]) -> Iterator[Metric]:
    """The metrics that a selector reads; one that nobody knows has one series."""
    if selector.metric is not None:
        yield metrics.get(selector.metric, Metric(selector.metric, "1", (), "gauge", "step", "", ""))
    else:
        yield from (each for name, each in metrics.items() if may_read(selector, name))


def _labels(metric: Metric, reads: Reads) -> list[dict[str, str]]:
    """Label sets of its own labels, the last of them changing fastest: first those that the selectors take."""
    names = [name for name in metric.labels if name not in metric.optional]
    count = (metric.series or FEWEST_SERIES) if names else 1
    plain = list(islice(_numbered(names, count), count))
    asked = (selector for selector, those in reads if metric in those)
    narrow = [each for each in asked if not any(matches(labels, each) for labels in plain)]
    found: dict[tuple[tuple[str, str], ...], dict[str, str]] = {}
    for selector in narrow:
        share = max(count // (2 * len(narrow)), 1)
        for number, labels in enumerate(plain[:share]):
            if (taken := matched(labels, number, selector)) is not None:
                found.setdefault(tuple(sorted(taken.items())), taken)
    for labels in plain:
        if len(found) < count:
            found.setdefault(tuple(sorted(labels.items())), labels)
    return list(found.values())


def _numbered(names: Sequence[str], count: int) -> Iterator[dict[str, str]]:
    base = max(2, round(count ** (1 / max(len(names), 1)) + 0.5))
    for number in range(count):
        digits = [number // base**place % base for place in reversed(range(len(names)))]
        yield dict(zip(names, map(str, digits), strict=True))
