"""`healthwatch notify-test RECEIVER`."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import click

from healthwatch.actions.notify import Pace
from healthwatch.actions.notify.services import doors_of
from healthwatch.alerting.model import Notice, Now
from healthwatch.cli.receivers import receivers_of
from healthwatch.config import Config, load_config
from healthwatch.diagnostics import Diagnostic, Invalid, suggest

BODY = """Run `{run}`: this is a test of the receiver `{receiver}`, sent by hand.

- Names arrive whole: 梯度范数 🚨
- A picture of a series is attached where the service takes one.
"""


@click.command("notify-test")
@click.argument("receiver")
@click.option("--config", "-c", required=True, type=click.Path(path_type=Path), help="The config with the receivers.")
def command(receiver: str, config: Path) -> None:
    """Send one message to each URL of RECEIVER and say what came back. Exit code 1 if one was not accepted."""
    known = receivers_of(config)
    if receiver not in known:
        mend = suggest(receiver, known, "receivers")
        raise Invalid([Diagnostic("HW602", "error", f'no receiver is called "{receiver}"', help=mend)])
    loaded, _ = load_config(config)
    assert loaded is not None
    refused = 0
    for door in doors_of(known[receiver], Pace()):
        answer = door.send(_notice(receiver, loaded))
        refused += not answer.accepted
        click.echo(f"{door.name}: {'accepted' if answer.accepted else answer.why} ({answer.seconds:.1f} s)")
    sys.exit(1 if refused else 0)


def _notice(receiver: str, config: Config) -> Notice:
    now = time.time()
    labels = {"alertname": "HealthwatchTest", "severity": "info", "run": config.run}
    alert = {
        "labels": labels,
        "annotations": {"summary": "a test of this receiver"},
        "starts": now,
        "ends": now + 60.0,
    }
    steps = list(range(1, 41))
    series = {"name": "loss", "steps": steps, "values": [2 + 8 / step for step in steps[:-1]] + [9.0], "threshold": 5.0}
    return Notice(
        id="test",
        receiver=receiver,
        reason="opened",
        severity="info",
        title=f"TEST: receiver {receiver}, run {config.run}",
        body=BODY.format(run=config.run, receiver=receiver),
        incidents=("HealthwatchTest",),
        now=Now(0, now),
        extra={"alerts": [alert], "plot": {"title": "a test", "fired": 40, "series": [series]}},
    )
