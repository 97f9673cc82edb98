"""The built-in actions, as their entry points name them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from healthwatch.actions import log
from healthwatch.actions.action import Action, Once, Performer, Site
from healthwatch.actions.command import Commands
from healthwatch.alerting.message import place_text, render
from healthwatch.alerting.model import Intent


@dataclass(frozen=True, slots=True)
class _Log:
    order: int | None = None

    def check(self, argument: Any) -> str:
        return "" if str(argument).lower() in log.LEVELS else f"{argument!r} is no level"

    def open(self, site: Site) -> Performer:
        return Once(lambda intent: log.write(intent, site.rules))


@dataclass(frozen=True, slots=True)
class _Profile:
    order: int | None = 0  # first, so that messages can name the folder

    def check(self, argument: Any) -> str:
        steps = argument.get("steps") if isinstance(argument, dict) else None
        return "" if isinstance(steps, int) and steps > 0 else "steps must be a number above 0"

    def open(self, site: Site) -> Performer:
        def perform(intent: Intent) -> None:
            if site.captures is None:
                return
            for incident in intent.incidents:
                site.captures.request(incident, int(intent.argument["steps"]), intent.now)

        return Once(perform)


@dataclass(frozen=True, slots=True)
class _Notify:
    order: int | None = 1

    def check(self, argument: Any) -> str:
        return "" if isinstance(argument, str) else "name a receiver"

    def open(self, site: Site) -> Performer:
        output = site.config.output.absolute()

        def perform(intent: Intent) -> None:
            notes = site.captures.notes if site.captures is not None else {}
            run = site.config.run
            site.post(render(intent, run=run, rank=site.rank, rules=site.rules, captures=notes, output=output))

        return Once(perform)


@dataclass(frozen=True, slots=True)
class _Stop:
    order: int | None = None

    def check(self, argument: Any) -> str:
        return "" if isinstance(argument, bool) else "write stop: true, or leave the step out"

    def open(self, site: Site) -> Performer:
        def perform(intent: Intent) -> None:
            incident = intent.incidents[0]
            if intent.argument and not site.config.dry_run:
                since = place_text(incident.since.step, incident.micro_step)
                site.stop(f"{incident.rule} ({incident.severity}), firing since {since}")
            elif intent.argument:
                site.tell("stop", f"dry run: {incident.id} would have ended the training")

        return Once(perform)


@dataclass(frozen=True, slots=True)
class _Command:
    order: int | None = None

    def check(self, argument: Any) -> str:
        return Commands.check(argument)

    def open(self, site: Site) -> Performer:
        return Commands(site)


LOG: Action = _Log()
PROFILE: Action = _Profile()
NOTIFY: Action = _Notify()
STOP: Action = _Stop()
COMMAND: Action = _Command()
