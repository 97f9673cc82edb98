"""`healthwatch replay RUN`."""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, get_args

import click

from healthwatch.alerting.message import number_text, place_text, series_text
from healthwatch.alerting.model import Change, Incident, Transition
from healthwatch.alerting.watch import Problem
from healthwatch.cli.read import FORMAT, TOP_K, remarks
from healthwatch.diagnostics import counted
from healthwatch.engine import Outcome
from healthwatch.readers import Log, Options, Passed
from healthwatch.recording import dump
from healthwatch.replay import Replay, load_replay

Params = Mapping[str, Mapping[str, float]]


def by_rule(_: click.Context, __: click.Parameter, given: Sequence[str]) -> Params:
    """`RULE.name=value`, any number of them, as values by name by rule."""
    params: dict[str, dict[str, float]] = {}
    for each in given:
        rule, name, value = _param(each)
        params.setdefault(rule, {})[name] = value
    return params


def _param(text: str) -> tuple[str, str, float]:
    found = re.fullmatch(r"(?P<rule>.+)\.(?P<name>\w+)=(?P<value>.+)", text)
    try:
        value = float(found["value"]) if found else math.nan
    except ValueError:
        value = math.nan
    if found is None or not math.isfinite(value):
        raise click.BadParameter(f"{text!r} is not RULE.name=number")
    return found["rule"], found["name"], value


@click.command("replay")
@click.argument("run", type=click.Path(path_type=Path))
@click.option(
    "--rules", "-r", multiple=True, metavar="FILE", help="A rule file or builtin:PACK; the run's own without it."
)
@click.option(
    "--param",
    "-p",
    multiple=True,
    metavar="RULE.name=NUMBER",
    callback=by_rule,
    help="Another value for a rule's parameter.",
)
@click.option(
    "--only",
    multiple=True,
    type=click.Choice(get_args(Change)),
    help="Print the transitions of this kind alone, such as fired; several times for several kinds.",
)
@FORMAT
@TOP_K
@click.option("--output", "-o", type=click.Choice(["text", "json"]), default="text", show_default=True)
def command(
    run: Path,
    rules: tuple[str, ...],
    param: Params,
    only: tuple[str, ...],
    format_: str | None,
    top_k: int | None,
    output: str,
) -> None:
    """Print every transition that the samples of RUN lead to.

    RUN is a file rank_<r>.sqlite, the folder that holds it, or a log that healthwatch read knows; of a log the
    shipped packs speak unless --rules names others. Only samples are read: what the run said when it was recorded
    plays no part. Exit code 1 if incidents are open at its end or there are no samples, 2 if it could not run.
    """
    replay = load_replay(run, rules, param, log_format=format_, options=Options(top_k))
    source = replay.source
    if top_k is not None and not isinstance(source, Log):
        raise click.UsageError("--top-k is for logs: a recorded run has the metric router_topk")
    said = listen(replay)
    shown = said.only(only) if only else said
    click.echo(as_json(shown) if output == "json" else as_text(shown), nl=False)
    for remark in remarks(source.path, source.passed if isinstance(source, Log) else Passed(), said.steps):
        click.echo(remark, err=True)
    if said.steps and output == "text":
        click.echo(summary(said, len(replay.rules)), err=True)
    sys.exit(1 if said.open or not said.steps else 0)


@dataclass(frozen=True, slots=True)
class Said:
    """What a replay came to. `steps` are how many there are; one that came again is one. `problems`: once a rule."""

    steps: int
    transitions: tuple[Transition, ...]
    open: tuple[Incident, ...]
    problems: tuple[Problem, ...]

    def only(self, reasons: Collection[str]) -> Said:
        return replace(self, transitions=tuple(found for found in self.transitions if found.reason in reasons))


def listen(replay: Replay) -> Said:
    transitions: list[Transition] = []
    problems: dict[tuple[str, str], Problem] = {}
    steps: set[int] = set()
    outcome: Outcome | None = None
    for outcome in replay.outcomes():
        transitions += outcome.transitions
        steps.add(outcome.now.step)
        for problem in outcome.problems:
            problems.setdefault((problem.rule, problem.kind), problem)
    incidents = outcome.incidents if outcome is not None else ()
    return Said(len(steps), tuple(transitions), tuple(one for one in incidents if one.active), tuple(problems.values()))


def as_json(said: Said) -> str:
    """`now` of each transition carries step, unix time and attempt; numbers that are not finite are text."""
    return (
        dump(
            {
                "transitions": [_transition(found) for found in said.transitions],
                "open": [asdict(incident) for incident in said.open],
                "problems": [asdict(problem) for problem in said.problems],
            }
        )
        + "\n"
    )


def _transition(found: Transition) -> dict[str, Any]:
    return {
        **asdict(found),
        "labels": dict(found.labels),
        "before": found.before.value,
        "after": found.after.value,
    }


def as_text(said: Said) -> str:
    lines = [transition_line(found) for found in said.transitions]
    lines += [f"open at the end: {_incident(incident)}" for incident in said.open]
    silent: dict[str, list[str]] = {}
    for problem in said.problems:
        if problem.kind == "no data":
            silent.setdefault(problem.message, []).append(problem.rule)
        else:
            lines.append(f"{problem.rule}: {problem.kind}: {problem.message}")
    lines += [f"{message}: {', '.join(rules)}" for message, rules in silent.items()]
    return "".join(f"{line}\n" for line in lines)


def summary(said: Said, rules: int) -> str:
    """`40 steps, 14 rules: no alert fired`: that there is nothing to say is said."""
    fired = sum(found.reason == "fired" for found in said.transitions)
    what = f"{counted(fired, 'alert')} fired" if fired else "no alert fired"
    return f"{counted(said.steps, 'step')}, {counted(rules, 'rule')}: {what}"


def transition_line(found: Transition) -> str:
    """`step 151, micro-step 2: GradNormSpike{param="wq"} pending -> firing (fired), 12.5`."""
    breach = found.reason in ("breach", "fired")
    attempt = f" (attempt {found.now.attempt})" if found.now.attempt > 1 else ""
    place = f"{place_text(found.now.step, found.micro_step if breach else None)}{attempt}"
    who = f"{found.rule} {series_text(found.labels)}" if found.labels else found.rule
    value = f", {number_text(found.value)}" if breach else ""
    return f"{place}: {who} {found.before.value} -> {found.after.value} ({found.reason}){value}"


def _incident(incident: Incident) -> str:
    return f"{incident.rule} ({incident.severity}) since {place_text(incident.since.step, incident.micro_step)}"
