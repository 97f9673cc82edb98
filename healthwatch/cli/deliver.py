"""`healthwatch deliver RUN|DIR`."""

from __future__ import annotations

import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click

from healthwatch.cli.receivers import receivers_of
from healthwatch.diagnostics import Diagnostic, Invalid
from healthwatch.recording.lock import Lock
from healthwatch.session.leftovers import PATIENCE, Leftovers

LOOK = 0.2  # seconds


@click.command("deliver")
@click.argument("place", metavar="RUN|DIR", type=click.Path(exists=True, path_type=Path))
@click.option("--config", "-c", required=True, type=click.Path(path_type=Path), help="The config with the receivers.")
@click.option("--follow", is_flag=True, help="Go on until interrupted: for trainings on nodes without a network.")
@click.option("--every", default=10.0, show_default=True, metavar="SECONDS", help="How often to look with --follow.")
@click.option(
    "--patience",
    default=PATIENCE,
    show_default=True,
    metavar="SECONDS",
    help="How long a run that has not ended is left to send a message itself.",
)
@click.option(
    "--timeout", default=60.0, show_default=True, metavar="SECONDS", help="At most so long, without --follow."
)
def command(place: Path, config: Path, *, follow: bool, every: float, patience: float, timeout: float) -> None:
    """Send what the run RUN, or all runs below DIR, have left in their outboxes.

    Run files are only read; what was delivered is written beside them, and the next start of a run takes it in. Exit
    code 1 if something is left.
    """
    lock = Lock((place if place.is_dir() else place.parent) / "deliver.lock")
    holder = lock.take()
    if holder is not None:
        raise Invalid([Diagnostic("HW605", "error", f"{place.as_posix()} is being delivered by {holder}")])
    leftovers = Leftovers(place, receivers_of(config), patience)
    try:
        if follow:
            _follow(leftovers, every)
        else:
            _once(leftovers, timeout)
    finally:
        leftovers.delivery.close(0.0)
        leftovers.settle()
        lock.release()
    _sum_up(leftovers)


def _once(leftovers: Leftovers, timeout: float) -> None:
    leftovers.sweep()
    end = time.monotonic() + timeout
    while leftovers.waiting and not leftovers.hopeless and time.monotonic() < end:
        time.sleep(LOOK)
        leftovers.settle()
    _tell_problems(leftovers)
    _tell_unreadable(leftovers, set())


def _follow(leftovers: Leftovers, every: float) -> None:
    click.echo("delivering what the runs leave; Ctrl-C ends it")
    told: set[Path] = set()
    with _asked_to_end() as asked:
        while not asked.is_set():
            leftovers.sweep()
            _tell_problems(leftovers)
            _tell_unreadable(leftovers, told)
            end = time.monotonic() + every
            while time.monotonic() < end and not asked.wait(min(LOOK, every)):
                leftovers.settle()


@contextmanager
def _asked_to_end() -> Iterator[threading.Event]:
    """Ctrl-C and SIGTERM wait until what has been delivered is written down: else it would be delivered again."""
    asked = threading.Event()
    before = {each: signal.signal(each, lambda *_: asked.set()) for each in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield asked
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)


def _tell_unreadable(leftovers: Leftovers, told: set[Path]) -> None:
    """Once a file; the others are delivered all the same."""
    for path, why in leftovers.unreadable.items():
        if path not in told:
            told.add(path)
            click.echo(f"{path.as_posix()} is left out: {why}", err=True)


def _tell_problems(leftovers: Leftovers) -> None:
    for problem in leftovers.delivery.problems():
        click.echo(problem.message, err=True)


def _sum_up(leftovers: Leftovers) -> None:
    left = leftovers.waiting + leftovers.unknown
    line = f"{leftovers.sent} delivered, {left} left"
    if leftovers.unknown:
        line += f" ({leftovers.unknown} of receivers that the config does not have)"
    if leftovers.young:
        line += f"; {leftovers.young} are left to the run, which may still send them"
    click.echo(line)
    sys.exit(1 if left or leftovers.unreadable else 0)
