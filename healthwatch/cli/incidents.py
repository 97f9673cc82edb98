"""`healthwatch incidents RUN`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from healthwatch.alerting.model import Incident, Notice
from healthwatch.alerting.text import place_text, reading_text, time_text
from healthwatch.recording import Attempt, Run, dump


@click.command("incidents")
@click.argument("run", type=click.Path(path_type=Path))
@click.option("--output", "-o", type=click.Choice(["text", "json"]), default="text", show_default=True)
def command(run: Path, output: str) -> None:
    """List what happened in RUN, and who was told when.

    RUN is a file rank_<r>.sqlite or the folder that holds it; the training may still run.
    """
    with Run.open(run) as opened:
        incidents = opened.incidents()
        notices = [(delivery.notice, delivery.accepted) for delivery in opened.outbox()]
        taken = opened.acceptances()
        where = _where(opened.last_step(), opened.attempts())
    if output == "json":
        click.echo(as_json(incidents, notices, taken), nl=False)
    else:
        click.echo(f"{where}\n{as_text(incidents, notices, taken)}", nl=False)


ENDS = {"end": "finished", "stopped": "stopped by a rule"}
ASKED = ("KeyboardInterrupt", "SystemExit", "GeneratorExit")  # ends that are no errors


def _where(last_step: int, attempts: Sequence[Attempt]) -> str:
    """How far the run has come, and whether what fires still does."""
    last = attempts[-1] if attempts else None
    attempt = f", attempt {last.number}" if last is not None and last.number > 1 else ""
    return f"last step {last_step}{attempt}: {_ending(last)}"


def _ending(last: Attempt | None) -> str:
    if last is None or last.ended is None:
        return "no end recorded (still running, or killed)"
    reason = last.reason or ""
    how = ENDS.get(reason) or (f"stopped by {reason}" if reason in ASKED else f"failed with {reason}")
    return f"{how} {time_text(last.ended)}"


Notices = Sequence[tuple[Notice, float | None]]
Taken = Mapping[str, Mapping[int, float]]


def as_json(incidents: Sequence[Incident], notices: Notices, taken: Taken) -> str:
    """Every incident with `told`: receiver, reason, step, and when it was accepted (null: not by every URL yet)."""
    found = [{**asdict(one), "told": [_told(*each, taken) for each in _about(one, notices)]} for one in incidents]
    return dump(found) + "\n"


def _told(notice: Notice, accepted: float | None, taken: Taken) -> dict[str, Any]:
    about = {"receiver": notice.receiver, "reason": notice.reason, "step": notice.now.step, "id": notice.id}
    return {**about, "accepted": accepted, "urls": {str(target): at for target, at in taken.get(notice.id, {}).items()}}


def _about(incident: Incident, notices: Notices) -> Notices:
    return [each for each in notices if incident.id in each[0].incidents]


def as_text(incidents: Sequence[Incident], notices: Notices, taken: Taken) -> str:
    if not incidents:
        return "nothing happened\n"
    lines = []
    for incident in incidents:
        lines.append(_incident(incident))
        told = _about(incident, notices)
        lines += [_line(notice, accepted, taken.get(notice.id, {})) for notice, accepted in told]
        lines += [] if told else ["    no receiver was told"]
    return "".join(f"{line}\n" for line in lines)


def _incident(incident: Incident) -> str:
    state = (
        "firing"
        if incident.active
        else {"resolved": "resolved", "expired": "stopped reporting"}[incident.ending or "resolved"]
    )
    marks = [name for name in ("inhibited", "silenced", "shadow") if getattr(incident, name)]
    since = f"{place_text(incident.since.step, incident.micro_step)}, {time_text(incident.since.time)}"
    until = f", until step {incident.ended.step}" if incident.ended is not None else ""
    worst = incident.firing[0] if incident.firing else None
    series = f": {reading_text(worst.labels, worst.value)}" if worst is not None else ""
    more = f" and {incident.count - 1} more" if incident.count > 1 else ""
    extra = f" [{', '.join(marks)}]" if marks else ""
    return f"{incident.id} ({incident.severity}) {state}{extra}, since {since}{until}{series}{more}"


def _line(notice: Notice, accepted: float | None, taken: Mapping[int, float]) -> str:
    when = f"accepted {time_text(accepted)}" if accepted is not None else "not accepted yet"
    if accepted is None and taken:
        when = f"accepted by {len(taken)} of its URLs so far"
    return f"    {notice.receiver}: {notice.reason} at step {notice.now.step}, {when}"
