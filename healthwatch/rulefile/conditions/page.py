"""The pages of conditions under `docs/conditions/`, made from the catalogue."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import yaml

from healthwatch.rulefile.conditions.expand import expand
from healthwatch.rulefile.conditions.spec import Condition, Parameter, number
from healthwatch.stream.catalogue import catalogue

_KINDS = {
    "metric": "name or list of names",
    "select": "labels and values",
    "labels": "list of labels",
    "number": "number",
    "steps": "steps",
    "count": "whole number",
    "choice": "",
    "flag": "true or false",
    "wall": "time with a unit",
    "count or metric": "whole number or metric",
}


def page(condition: Condition, known: Mapping[str, Condition]) -> str:
    """The condition's page as Markdown."""
    sections = [
        f"# {condition.name}\n\n{condition.summary}",
        f"## What it finds\n\n{condition.finds}",
        f"## Formula\n\n{condition.formula}",
        f"## Parameters\n\n{_table(condition.parameters)}",
        "## Example\n\n" + "\n\n".join(_examples(condition, known)),
        f"## Result\n\n- Labels: {condition.labels}.\n- Value (`{{{{ $value }}}}`): {condition.value}.",
        f"## When not to use it\n\n{condition.not_for}",
        f"## Source\n\n{condition.source}",
    ]
    return "\n\n".join(sections) + "\n"


def index(known: Mapping[str, Condition]) -> str:
    """The page that lists all of them."""
    rows = "\n".join(f"| [`{each.name}`]({each.name}.md) | {each.summary} |" for each in known.values())
    combining = _COMBINING
    for name, text in COMBINED.items():
        combining = combining.replace(f"@{name}", text)
    return f"{_INTRODUCTION}\n| condition | breaches on |\n|---|---|\n{rows}\n\n{combining}"


def brief(condition: Condition, known: Mapping[str, Condition]) -> str:
    """The page for a terminal: what it is, its parameters, and what the example stands for."""
    lines = [f"{condition.name}: {condition.summary}", "", condition.finds, ""]
    lines += [f"  {each.name:<14}{_kind(each)}; {_default(each)}. {each.help}" for each in condition.parameters]
    for example in (condition.example, *condition.examples):
        text, detail = _expanded(condition, example, known)
        lines += ["", f"  when: {{{condition.name}: {_flow(example)}}}", f"  expr: {text}"]
        lines += [f"  detail: {detail}"] if detail else []
    return "\n".join([*lines, "", f"Not for: {condition.not_for}", f"Source: {condition.source}"])


def _table(parameters: Iterable[Parameter]) -> str:
    rows = (f"| `{each.name}` | {_kind(each)} | {_default(each)} | {each.help} |" for each in parameters)
    return "\n".join(("| parameter | takes | default | meaning |", "|---|---|---|---|", *rows))


def _kind(parameter: Parameter) -> str:
    if parameter.kind == "choice":
        return ", ".join(f"`{choice}`" for choice in parameter.choices)
    kind, low, high = _KINDS[parameter.kind], parameter.least, parameter.most
    if low is not None and high is not None:
        return f"{kind} from {number(low)} to {number(high)}"
    if low is not None:
        return f"{kind} {'above' if parameter.open_bounds else 'from'} {number(low)}"
    return kind


def _default(parameter: Parameter) -> str:
    if parameter.required:
        return "required"
    if parameter.default is None:
        return "none"
    return f"`{_flow(parameter.default)}`"


def _examples(condition: Condition, known: Mapping[str, Condition]) -> Iterable[str]:
    for example in (condition.example, *condition.examples):
        text, detail = _expanded(condition, example, known)
        yield f"```yaml\nwhen:\n  {condition.name}: {_flow(example)}\n```"
        yield f"stands for\n\n```promql\n{text}\n```"
        if detail:
            yield f"and lists in a message\n\n```promql\n{detail}\n```"


def _expanded(
    condition: Condition, example: Mapping[str, Any], known: Mapping[str, Condition]
) -> tuple[str, str | None]:
    made = expand({condition.name: dict(example)}, catalogue(), conditions=known)
    problems = "; ".join(problem.message for problem in made.problems)
    return made.text or f"(can't be expanded: {problems})", made.detail


def _flow(value: Any) -> str:
    """A value as YAML on one line."""
    plain = dict(value) if isinstance(value, Mapping) else value
    return yaml.safe_dump(plain, default_flow_style=True, width=1000, sort_keys=False).removesuffix("...\n").strip()


_INTRODUCTION = """# Conditions

What can stand under a rule's `when:`. Each condition is a macro: it stands for a
[PromQL](../functions.md) expression, which `healthwatch explain RULE` shows, and a rule written with it says exactly
what that expression says.
"""

COMBINED: Mapping[str, str] = {
    "all": """\
`all` breaches where the first condition does and the others do on the labels that they have in common with it; the
alert has the labels and the value of the first.""",
    "any": """\
`any` breaches where one of its conditions does; the alert has the labels and the value of that one.""",
    "not": """\
`not` inverts the comparisons inside: what has no data does not breach, negated or not. There is no `not` of
`missing`, `stalled` and of a quorum.""",
    "quorum": """\
`quorum` breaches where at least so many of the series of the condition beside it do: a number, or a share of those that
have data. The alert has no labels; `quorum: {at_least: 5%, by: [rank]}` counts within groups. `{{ $value }}` is the
number of series that breach; with a share it is their share (0.07: write `{{ $value | humanizePercentage }}`). The
message lists the series.""",
}
"""What stands around conditions, by name."""

_COMBINING = """## select, over, by

`select` narrows a metric to some of its series: `select: {param: "=~.*attention.*"}`. A value is plain (equal), or has
`=~` (regular expression, matches the whole value), `!~` or `!=` before it.

`over: [expert]` aggregates the named labels away and keeps all others apart; `by: [layer]` keeps the named ones alone.

A number may be the name of a parameter of the rule: `above: $ratio` with `params: {ratio: 8}`.

`metric` may be a list. Where the result has no metric name left, a label `metric` tells the alerts apart.

## all, any, not

```yaml
when:
  all:
    - zscore: {metric: grad_norm, above: 6}
    - spike_ratio: {metric: grad_norm, above: 3}
```

@all

@any

@not

## quorum

```yaml
when:
  nonfinite: {metric: micro_norm}
  quorum: 5%
```

@quorum

## Conditions of your own

A package registers a `Condition` (or several) under the entry point group `healthwatch.conditions`, as the shipped ones
are:

```toml
[project.entry-points."healthwatch.conditions"]
halved = "my_package.conditions:HALVED"
```

```python
from healthwatch.rulefile.conditions import Arguments, Condition, Expansion, Test
from healthwatch.rulefile.conditions.spec import SERIES


def expand(args: Arguments) -> Expansion:
    return Expansion((Test.of(f"{args.selector} / {args.selector} offset 10", "<", "0.5"),))


HALVED = Condition(
    name="halved",
    summary="Half of what it was.",
    finds="Values that have halved in ten steps.",
    formula="x / x ten steps ago < 0.5",
    source="Where the bound comes from.",
    example={"metric": "loss"},
    not_for="Metrics that may be negative.",
    labels="those of the series",
    value="the ratio",
    parameters=SERIES,
    expand=expand,
)
```

It then stands in `healthwatch schema` and `healthwatch explain` like any other. One that can't be loaded leaves the
others alone and is told by `healthwatch schema`.
"""
