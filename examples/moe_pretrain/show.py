"""What the demo prints at its end."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from examples.moe_pretrain.evidence import Evidence
from healthwatch.alerting.model import Incident
from healthwatch.alerting.text import reading_text


def received(console: Console, evidence: Evidence) -> None:
    """Every message over HTTP in full, and the subjects of the mails."""
    for wire, messages in (("HTTP (json://)", evidence.http), ("SMTP (mailto://)", evidence.mail)):
        console.rule(f"{len(messages)} messages over {wire}")
        for number, message in enumerate(messages, 1):
            console.print(Text(f"{number:2}. {message.title}", style="bold"))
            if messages is evidence.http:
                console.print(Padding(Text(message.body.rstrip()), (0, 0, 1, 4)))


def incidents(console: Console, evidence: Evidence) -> None:
    table = Table(title="Incidents", title_justify="left", show_lines=False, expand=True)
    for name in ("incident", "severity", "since", "until", "worst series", "capture", "messages"):
        table.add_column(name, overflow="fold", justify="right" if name in ("since", "until") else "left")
    for incident in evidence.incidents:
        table.add_row(*row(incident, evidence))
    console.print(table)


def row(incident: Incident, evidence: Evidence) -> tuple[str, ...]:
    told = [one.notice for one in evidence.outbox if incident.id in one.notice.incidents]
    place = f"{incident.since.step}" + (f".{incident.micro_step}" if incident.micro_step else "")
    return (
        incident.id,
        incident.severity,
        place,
        f"{incident.ended.step}" if incident.ended else "fires",
        worst(incident),
        capture(evidence.captures, incident.id),
        ", ".join(f"{notice.reason} {notice.now.step}" for notice in told),
    )


def capture(captures: Sequence[dict[str, Any]], incident_id: str) -> str:
    """Which steps the incident's profile holds, or why there is none."""
    for note in captures:
        if incident_id in note["incidents"]:
            joined = "joined " if note["incidents"][0] != incident_id else ""
            return note["refused"] or f"{joined}steps {note['first_step']} to {note['last_step']}"
    return "none"


def worst(incident: Incident) -> str:
    sample = incident.firing[0]
    return reading_text(sample.labels, sample.value)


def problems(console: Console, found: Sequence[tuple[str, list[str]]]) -> None:
    for what, wrong in found:
        console.print(Text("ok    " if not wrong else "WRONG ", style="red bold" if wrong else "green"), Text(what))
        for one in wrong:
            console.print(Padding(Text(one, style="red"), (0, 0, 0, 6)))
