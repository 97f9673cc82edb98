"""What only shows when rules are seen together: names, inhibition, metrics."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set

from healthwatch.diagnostics import Diagnostic, Severity, likely_typo, suggest
from healthwatch.promql import ast
from healthwatch.rulefile import template
from healthwatch.rulefile.draft import Draft
from healthwatch.rulefile.resultlabels import result_labels
from healthwatch.rulefile.shipped import meant, shipped
from healthwatch.stream.catalogue import Metric
from healthwatch.yamlfile import Document


def names(drafts: Sequence[Draft]) -> None:
    """Two alerts of one name: one could mute the other."""
    first: dict[str, Draft] = {}
    for draft in drafts:
        if draft.name and draft.name in first:
            span = first[draft.name].document.value_span((*first[draft.name].path, "alert"))
            mend = f"the first one stands at {span.file}:{span.line}"
            draft.report("HW013", f'two rules are called "{draft.name}"', "alert", help=mend)
        first.setdefault(draft.name, draft)


def groups(document: Document) -> list[Diagnostic]:
    """Groups of one file that share a name."""
    found: list[Diagnostic] = []
    first: dict[str, int] = {}
    for position, group in enumerate(document.data["groups"]):
        name = group.get("name") if isinstance(group, dict) else None
        if not isinstance(name, str):
            continue
        path = ("groups", position, "name")
        if name in first:
            message = f'two groups are called "{name}"'
            found.append(document.at_value("HW013", message, path, help=f"the first one stands on line {first[name]}"))
        first.setdefault(name, document.value_span(path).line)
    return found


def declared(document: Document) -> list[Diagnostic]:
    """`every` of a metric that comes at every step anyway."""
    found: list[Diagnostic] = []
    metrics = document.data.get("metrics")
    for name, metric in metrics.items() if isinstance(metrics, dict) else ():
        if not isinstance(metric, dict) or not isinstance(metric.get("every"), int):
            continue
        cadence = metric.get("cadence", "step")
        if cadence in ("step", "micro-step") and metric["every"] != 1:
            message = f'"every" is of sparse metrics alone, and "{name}" comes at every {cadence}'
            path, mend = ("metrics", name, "every"), "write cadence: sparse if it comes more rarely"
            found.append(document.at_key("HW011", message, path, severity="warning", help=mend))
    return found


def inhibition(drafts: Sequence[Draft]) -> None:
    """Fill in `inhibited_by` with the loaded rules; unknown names and cycles are errors."""
    loaded = {draft.name for draft in drafts if draft.enabled}
    known = {draft.name for draft in drafts}
    for draft in drafts:
        wanted = draft.data.get("inhibited_by", [])
        draft.inhibited_by = tuple(name for name in wanted if name in loaded)
        unknown = [(n, name) for n, name in enumerate(wanted) if name not in known]
        unknown = [(n, name) for n, name in unknown if name not in shipped()]
        for position, name in unknown:
            mend = meant(name, known)
            draft.report("HW014", f'no rule is called "{name}"', "inhibited_by", position, help=mend)
    _cycles(drafts)


def _cycles(drafts: Sequence[Draft]) -> None:
    above = {draft.name: draft.inhibited_by for draft in drafts}
    for draft in drafts:
        cycle = _cycle_through(draft.name, above)
        if cycle:
            shown = " -> ".join(cycle)
            position = list(draft.data["inhibited_by"]).index(cycle[1])
            draft.report("HW015", f"inhibition goes in a circle: {shown}", "inhibited_by", position)


def _cycle_through(name: str, above: Mapping[str, Sequence[str]]) -> list[str]:
    """The shortest way from a rule along `inhibited_by` back to itself, empty where there is none."""
    ways, seen = [[name]], set()
    for way in ways:
        for inhibitor in above.get(way[-1], ()):
            if inhibitor == name:
                return [*way, name]
            if inhibitor not in seen:
                seen.add(inhibitor)
                ways.append([*way, inhibitor])
    return []


def references(draft: Draft, known: Mapping[str, Metric]) -> None:
    """Labels that an annotation names and the result can never carry."""
    if "expr" not in draft.expressions:
        return
    carried = result_labels(draft.expressions["expr"].tree, known)
    for key, text in draft.data.get("annotations", {}).items() if carried is not None else ():
        for name, start, end in template.references(str(text)):
            if carried is not None and name not in carried:
                mend = suggest(name, carried - {"__name__"}, "it can carry") or "it carries no labels"
                message = f'the result of expr never carries the label "{name}"'
                draft.report_text("HW025", message, ("annotations", key), (start, end), mend, "warning")


def metrics(draft: Draft, known: Set[str]) -> None:
    """Metrics that neither the catalogue nor a file's `metrics:` knows, in what is written as PromQL."""
    trees = {key: expression.tree for key, expression in draft.expressions.items()} | draft.partial
    for key, tree in trees.items():
        for node in ast.walk(tree) if key in draft.data else ():
            if isinstance(node, ast.VectorSelector) and node.metric and node.metric not in known:
                _unknown_metric(draft, key, node, known)


def _unknown_metric(draft: Draft, key: str, node: ast.VectorSelector, known: Set[str]) -> None:
    name, start = str(node.metric), node.span[0]
    written = str(draft.data[key])[start : start + len(name)] == name
    end = start + len(name) if written else node.span[1]
    closest = likely_typo(name, known)
    mend = f'did you mean "{closest}"?' if closest else "declare it under metrics: if it is one of yours"
    severity: Severity = "error" if closest else "warning"
    draft.report_text("HW012", f'no metric is called "{name}"', (key,), (start, end), mend, severity)
