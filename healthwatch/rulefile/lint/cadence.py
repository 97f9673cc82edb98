"""Waits in steps over metrics that do not come at every step."""

from __future__ import annotations

from healthwatch.rulefile.lint.subject import Subject, selectors
from healthwatch.stream.ticks import parse_duration


def check(subject: Subject) -> None:
    """`for` counts steps: shorter than the distance of two samples, it only says "the second one"."""
    draft = subject.draft
    steps = getattr(parse_duration(draft.data.get("for", 0)), "steps", None)
    expression = draft.expressions.get("expr")
    if not steps or expression is None:
        return
    metrics = [subject.known.get(node.metric or "") for node in selectors(expression.tree)]
    if not metrics or any(metric is None or metric.cadence != "sparse" for metric in metrics):
        return
    every = min((metric.every for metric in metrics if metric is not None and metric.every is not None), default=None)
    if every is not None and steps >= every:
        return
    name = next(metric.name for metric in metrics if metric is not None)
    how_often = "now and then" if every is None else f"every {every} steps"
    message = f'"for: {steps}" counts steps, and "{name}" comes only {how_often}'
    draft.report("HW027", message, "for", severity="warning", help="for_records: 3 counts its samples instead")
