"""Which labels the result of a condition carries, as far as the metric catalogue tells."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from healthwatch.promql.regex import compile_regex
from healthwatch.rulefile.conditions.spec import Group
from healthwatch.stream.catalogue import PLACEMENT, Metric


@dataclass(frozen=True, slots=True)
class Labels:
    """`names` are carried, `possible` may be; None: a metric that the catalogue does not know.

    Two results with the same `origin` come from the same series and carry the same labels whatever those are.
    `matchers` are the (operator, value) by which a label was selected.
    """

    names: frozenset[str] | None
    possible: frozenset[str] = frozenset()
    matchers: Mapping[str, tuple[tuple[str, str], ...]] = field(default_factory=dict)
    origin: tuple[object, ...] = ()

    def grouped(self, group: Group) -> Labels:
        """After an aggregation."""
        names, possible = self.names, self.possible
        if not group.without:
            names = frozenset(group.labels) if names is None else frozenset(group.labels) & (names | possible)
            possible = frozenset()
        elif names is not None:
            names, possible = names - set(group.labels), possible - set(group.labels)
        left = {label: found for label, found in self.matchers.items() if names is None or label in names | possible}
        return replace(self, names=names, possible=possible, matchers=left, origin=(*self.origin, group))

    @property
    def none(self) -> bool:
        return self.names == frozenset() and not self.possible


NO_LABELS = Labels(frozenset(), origin=("none",))


def of_series(
    metrics: Iterable[str],
    known: Mapping[str, Metric],
    select: Iterable[tuple[str, str, str]],
    mentioned: Iterable[str],
) -> Labels:
    """The labels of the series of some metrics; placement labels count where the condition mentions them."""
    metrics, select = tuple(metrics), tuple(select)
    matchers: dict[str, tuple[tuple[str, str], ...]] = {}
    for label, op, value in select:
        matchers[label] = (*matchers.get(label, ()), (op, value))
    origin = (metrics, select)
    if any(name not in known for name in metrics):
        return Labels(None, frozenset(PLACEMENT), matchers, origin)
    declared = frozenset.intersection(*(frozenset(known[name].labels) for name in metrics))
    named = {label for label in (*mentioned, *matchers) if label in PLACEMENT}
    return Labels(declared | named, frozenset(PLACEMENT) - declared - named, matchers, origin)


def common(left: Labels, right: Labels) -> frozenset[str] | None:
    """The label names by which two results can be joined; None where they can't be told."""
    if left.none or right.none:
        return frozenset()
    if left.names is None or right.names is None:
        return None
    return (left.names & (right.names | right.possible)) | (right.names & left.possible)


def apart(left: Labels, right: Labels, shared: Iterable[str]) -> str | None:
    """A shared label whose selections exclude each other."""
    for label in sorted(shared):
        ours, theirs = left.matchers.get(label, ()), right.matchers.get(label, ())
        for op, value in (*ours, *theirs):
            if op == "=" and not all(_admits(value, matcher) for matcher in (*ours, *theirs)):
                return label
    return None


def alternatives(operands: Iterable[Labels]) -> Labels:
    """The labels of a result that comes from any of several operands."""
    operands = tuple(operands)
    first = operands[0]
    if all(each.origin == first.origin for each in operands):
        return first
    if any(each.names is None for each in operands):
        return Labels(None, origin=tuple(each.origin for each in operands))
    names = frozenset.intersection(*(each.names or frozenset() for each in operands))
    possible = frozenset.intersection(*((each.names or frozenset()) | each.possible for each in operands)) - names
    return Labels(names, possible, origin=tuple(each.origin for each in operands))


def _admits(value: str, matcher: tuple[str, str]) -> bool:
    op, wanted = matcher
    if op in ("=", "!="):
        return (value == wanted) == (op == "=")
    return bool(compile_regex(wanted).fullmatch(value)) == (op == "=~")
