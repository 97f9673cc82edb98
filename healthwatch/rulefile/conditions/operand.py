"""What `all`, `any`, `not` and `quorum` make of conditions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from healthwatch.promql import ast
from healthwatch.promql.parse import parse
from healthwatch.promql.syntax import SET_OPERATORS
from healthwatch.rulefile.conditions.labels import NO_LABELS, Labels, alternatives, apart, common
from healthwatch.rulefile.conditions.problems import Bad
from healthwatch.rulefile.conditions.spec import Group, number


@dataclass(frozen=True, slots=True)
class Operand:
    """A part of a `when:` as PromQL: what breaches, its negation, the series that could breach, what a message lists.

    `refusal` names the condition for which there is no negation.
    """

    text: str
    inverse: str
    value: str
    detail: str | None
    labels: Labels
    refusal: str = ""

    def tagged(self, label: str, value: str) -> Operand:
        """Told apart from others of the same labels by one label more."""

        def tag(text: str) -> str:
            return f'label_replace({text}, "{label}", "{value}", "", "")'

        detail = None if self.detail is None else tag(self.detail)
        return replace(self, text=tag(self.text), inverse=tag(self.inverse), value=tag(self.value), detail=detail)


def either(operands: Sequence[Operand]) -> Operand:
    """The same condition on several metrics: each series is one of them, negated or not."""
    first = operands[0]
    details = [each.detail for each in operands if each.detail is not None]
    return Operand(
        " or ".join(each.text for each in operands),
        " or ".join(each.inverse for each in operands),
        " or ".join(each.value for each in operands),
        " or ".join(details) or None,
        replace(first.labels, origin=(*first.labels.origin, "metric")),
        first.refusal,
    )


def negated(operand: Operand) -> Operand | Bad:
    if operand.refusal:
        message = f"{operand.refusal} has no opposite that could be told from missing data"
        return Bad(message, "leave out the not, or say what should be seen instead", "not supported", on="key")
    return replace(operand, text=operand.inverse, inverse=operand.text, detail=None)


def any_of(operands: Sequence[Operand]) -> Operand | Bad:
    """Breaches where one of them does; negated, where all are negated."""
    if len(operands) == 1:
        return operands[0]
    refusal = _refusal(operands)
    inverse = "" if refusal else _and([replace(each, text=each.inverse) for each in operands], "inverse")
    if isinstance(inverse, Bad):
        refusal, inverse = "any", ""
    detailed = any(each.detail is not None for each in operands)
    return Operand(
        _or([each.text for each in operands]),
        inverse,
        _or([each.value for each in operands]),
        _or([each.detail or each.text for each in operands]) if detailed else None,
        alternatives([each.labels for each in operands]),
        refusal,
    )


def all_of(operands: Sequence[Operand]) -> Operand | Bad:
    """Breaches where the first does and the others do on the labels that they have in common with it."""
    if len(operands) == 1:
        return operands[0]
    text = _and(operands, "text")
    value = _and(operands, "value")
    if isinstance(text, Bad):
        return text
    if isinstance(value, Bad):
        return value
    refusal = _refusal(operands)
    inverse = "" if refusal else _or([each.inverse for each in operands])
    return Operand(text, inverse, value, operands[0].detail, operands[0].labels, refusal)


def quorum(operand: Operand, least: int | float, group: Group | None) -> Operand:
    """Breaches where at least `least` series do: a number of them, or below 1 a share."""
    count = "count" if group is None else f"count {group.clause}"
    text = f"{count} ({operand.text})"
    value = f"{count} ({operand.value})"
    text = f"{text} >= {number(least)}" if isinstance(least, int) else f"{text} / {value} >= {number(least)}"
    labels = NO_LABELS if group is None else operand.labels.grouped(group)
    return Operand(text, "", value, operand.detail or operand.text, labels, "quorum")


def _refusal(operands: Sequence[Operand]) -> str:
    return next((each.refusal for each in operands if each.refusal), "")


def _or(texts: Sequence[str]) -> str:
    return " or ".join(f"({text})" for text in texts)


def _and(operands: Sequence[Operand], part: str) -> str | Bad:
    first = operands[0]
    text = _inside(getattr(first, part))
    for position, other in enumerate(operands[1:], start=1):
        join = _join(first.labels, other.labels)
        if isinstance(join, Bad):
            return replace(join, below=(position,))
        text = f"{text} {join} {_inside(getattr(other, part))}"
    return text


def _join(left: Labels, right: Labels) -> str | Bad:
    if left.origin == right.origin:
        return "and"
    shared = common(left, right)
    if shared is None:
        message = "the labels of a metric that nobody declares are not known, so that it can't be joined here"
        return Bad(message, "declare it under metrics: with its labels", "unknown label")
    label = apart(left, right, shared)
    if label is not None:
        message = f'this can never match the first condition: they select different values of "{label}"'
        return Bad(message, f"select the same, or aggregate with over: [{label}]", "never matches")
    return f"and on ({', '.join(sorted(shared))})"


def _inside(text: str) -> str:
    """In brackets where set operators inside would run into the one outside."""
    tree = parse(text).expression
    bare = tree is not None and not (isinstance(tree.tree, ast.Binary) and tree.tree.op in SET_OPERATORS)
    return text if bare else f"({text})"
