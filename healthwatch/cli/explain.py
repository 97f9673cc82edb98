"""`healthwatch explain NAME`."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import click

from healthwatch import resources
from healthwatch.cli import rulekeys
from healthwatch.cli.check import check
from healthwatch.diagnostics import Diagnostic, did_you_mean, errors, render_text
from healthwatch.promql.meaning import MEANINGS, meaning_of
from healthwatch.promql.meaning.page import brief as said_of
from healthwatch.promql.meaning.page import listed
from healthwatch.rulefile import Rule
from healthwatch.rulefile.codes import Code, codes
from healthwatch.rulefile.conditions import brief, registry
from healthwatch.rulefile.load import BUILTIN
from healthwatch.rulefile.shipped import shipped
from healthwatch.stream.catalogue import Metric, catalogue

YAML = (".yaml", ".yml")
LISTS = ("conditions", "metrics", "rules", "codes", "functions")


_SHORT = 3
"""Half of all names resemble one that is so short."""


@click.command("explain")
@click.argument("names", nargs=-1, required=True, metavar="RULE|KEY|CONDITION|METRIC|FUNCTION|OPERATOR|CODE")
@click.option(
    "--rules",
    "-r",
    multiple=True,
    metavar="FILE",
    help="Where to look for rules: a rule file, a folder, a config or builtin:PACK; the shipped packs without it.",
)
@click.option("--plan", "of", metavar="FILE", help="Show what the rule NAME of FILE computes, shares, keeps and takes.")
@click.option(
    "--run",
    type=click.Path(exists=True, path_type=Path),
    help="With --plan: evaluate on RUN, not on generated samples.",
)
def command(names: tuple[str, ...], rules: tuple[str, ...], of: str | None, run: Path | None) -> None:
    """Say what a rule, a key of rules, a condition, a metric, a function, an operator or the code of a problem is.

    A rule is shown with everything in force and the PromQL that its conditions stand for. conditions, metrics, rules,
    functions (operators too) and codes list all of them. Exit code 2 if there is nothing of that name.
    """
    if len(names) > 1:
        raise click.UsageError(_one_name(names))
    (name,) = names
    known = Known.of(rules if of is None else (*rules, of))
    texts = list(explanations(name, known)) if of is None else _plans(name, known, run)
    if not texts:
        if known.problems:  # the rule that is meant may stand where they are
            click.echo(render_text(known.problems), err=True)
        own = "" if rules or of is not None else "; for what your own files name: -r FILE"
        every = f"all of them: healthwatch explain {'|'.join(LISTS)}{own}"
        near = did_you_mean(name, known.names()) if len(name) > _SHORT else ""
        if pack := shipped().get(name):
            near = f"it is a rule of {BUILTIN}{pack}, which is not among the files"
        click.echo(f'nothing is called "{name}"; {near or every}', err=True)
        sys.exit(2)
    click.echo("\n\n".join(texts))


def _one_name(words: Sequence[str]) -> str:
    """What to write instead: a file among the words is where to look, not what to explain."""
    files = [word for word in words if word.startswith(BUILTIN) or Path(word).exists() or word.endswith(YAML)]
    rest = [word for word in words if word not in files]
    if not files or len(rest) != 1:
        return f"one name at a time, not {' and '.join(words)}"
    places = " ".join(f"-r {shlex.quote(file)}" for file in files)
    return f"files to look into stand behind -r: healthwatch explain {places} {shlex.quote(rest[0])}"


@dataclass(frozen=True, slots=True)
class Known:
    """Everything that has a name, and the errors that hide rules."""

    rules: Mapping[str, Rule]
    metrics: Mapping[str, Metric]
    problems: tuple[Diagnostic, ...] = ()

    @classmethod
    def of(cls, sources: Iterable[str]) -> Known:
        report = check([*sources] or [f"{BUILTIN}{pack}" for pack in resources.packs()])
        rules = (*report.rules, *(rule for _, loaded in report.configs for rule in loaded))
        metrics = {**catalogue(), **report.metrics}
        return cls({rule.name: rule for rule in rules}, metrics, tuple(errors(report.diagnostics)))

    def names(self) -> list[str]:
        conditions = (*registry().conditions, *rulekeys.names())
        return [*LISTS, *self.rules, *conditions, *self.metrics, *MEANINGS, *codes()]


def _plans(name: str, known: Known, run: Path | None) -> list[str]:
    if name not in known.rules:
        return []
    from healthwatch.cli.plan import plan

    return [plan(name, list(known.rules.values()), known.metrics, run)]


def explanations(name: str, known: Known) -> Iterable[str]:
    """Every text on a name: a condition and a function may share one."""
    if name in LISTS:
        yield _LISTS[name](known)
        return
    conditions = registry().conditions
    if name in conditions:
        yield brief(conditions[name], conditions)
    yield from rulekeys.explained(name)
    if name in known.rules:
        yield _rule(known.rules[name])
    if name in known.metrics:
        yield _metric(known.metrics[name])
    if (meaning := meaning_of(name)) is not None:
        yield said_of(meaning)
    if name.upper() in codes():
        yield _code(codes()[name.upper()])


def _rule(rule: Rule) -> str:
    place = f"{rule.span.file}:{rule.span.line}"
    lines = [f"{rule.name}: a rule of group {rule.group} ({place})", "", f"  expr: {rule.expression.text}"]
    lines += [f"  {key}: {value}" for key, value in _in_force(rule).items()]
    lines += [f"  {key}: {template}" for key, template in rule.annotations.items()]
    return "\n".join(lines)


def _in_force(rule: Rule) -> dict[str, str]:
    """What differs from the default."""
    waits = {"for": rule.for_, "keep_firing_for": rule.keep_firing_for}
    found: dict[str, object] = {
        "until": rule.until.text if rule.until else None,
        "detail": rule.detail.text if rule.detail else None,
        "params": ", ".join(f"{name} = {value}" for name, value in rule.params.items()),
        **{key: duration for key, duration in waits.items() if duration.steps != 0},
        "for_records": rule.for_records,
        "warmup": rule.warmup,
        "settle": rule.settle,
        "labels": ", ".join(f"{name} = {value}" for name, value in rule.labels.items()),
        "inhibited_by": ", ".join(rule.inhibited_by),
        "escalation": rule.escalation,
        "mode": rule.mode if rule.mode != "active" else None,
        "lookback": rule.lookback,
    }
    return {key: str(value) for key, value in found.items() if value}


def _metric(metric: Metric) -> str:
    labels = ", ".join(metric.labels) or "none of its own"
    unit = "" if metric.unit == "1" else f", in {metric.unit}"
    return (
        f"{metric.name}: a metric ({metric.kind}, {metric.cadence}{unit})\n\n  {metric.help}\n"
        f"  labels: {labels}; cp, dp, pp, rank and tp on several devices\n  from: {metric.source}"
    )


def _code(code: Code) -> str:
    return f"{code.name}: {code.title}\n\n{code.text.rstrip()}"


def _listed(rows: Mapping[str, str]) -> str:
    width = max(map(len, rows), default=0)
    return "\n".join(f"{name.ljust(width)}  {text}" for name, text in rows.items())


_LISTS: Mapping[str, Callable[[Known], str]] = {
    "conditions": lambda _: _listed({name: each.summary for name, each in registry().conditions.items()}),
    "metrics": lambda known: _listed({name: each.help for name, each in known.metrics.items()}),
    "rules": lambda known: _listed(
        {name: str(rule.annotations.get("summary", rule.expression.text)) for name, rule in known.rules.items()}
    ),
    "codes": lambda _: _listed({name: each.title for name, each in codes().items()}),
    "functions": lambda _: listed(),
}
