"""Ladders and receivers of the config."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

from healthwatch.config import secrets
from healthwatch.config.model import LadderStep, Receiver, Secret
from healthwatch.config.section import Section
from healthwatch.diagnostics import suggest
from healthwatch.stream.ticks import parse_duration
from healthwatch.yamlfile import Document, KeyPath

BUILTIN_ACTIONS = ("log", "profile", "notify", "stop", "command")
ACTION_GROUP = "healthwatch.actions"  # entry points

LOG_ONLY: Mapping[str, tuple[LadderStep, ...]] = {
    "critical": (LadderStep("log", "error"),),
    "warning": (LadderStep("log", "warning"),),
    "info": (LadderStep("log", "info"),),
}

_PROFILE_STEPS = 3


@cache
def plug_ins() -> tuple[str, ...]:
    """The names of the actions of plug-ins, which are not imported here."""
    return tuple(sorted(entry_points(group=ACTION_GROUP).names - set(BUILTIN_ACTIONS)))


def actions() -> tuple[str, ...]:
    return BUILTIN_ACTIONS + plug_ins()


def ladders(section: Section, receivers: Mapping[str, Any]) -> dict[str, tuple[LadderStep, ...]]:
    """Every ladder by name; `receivers` are the names that notify may call."""
    found = section.below("escalation")
    return {
        name: tuple(
            step
            for position, data in enumerate(items)
            if (step := _step(found, name, position, data, receivers)) is not None
        )
        for name, items in found.data.items()
        if isinstance(items, list)
    }


def _step(ladder: Section, name: str, position: int, data: Any, receivers: Mapping[str, Any]) -> LadderStep | None:
    path = (*ladder.path, name, position)
    step = Section(ladder.document, path, data if isinstance(data, dict) else {}, ladder.refused, ladder.diagnostics)
    named = [key for key in actions() if key in step.data]
    if len(named) != 1:
        _wrong_count(step, named)
        return None
    action = named[0]
    if (*path, action) in step.refused:
        return None
    if action == "notify":
        _check_receiver(step, receivers)
    return LadderStep(
        action=action,
        argument=_argument(step, action),
        after=step.steps("after", 0),
        repeat=parse_duration(step.get("repeat")),
        when_state=step.get("when_state", "firing"),
        span=step.document.value_span((*path, action)),
    )


def _wrong_count(step: Section, named: list[str]) -> None:
    if len(named) > 1:
        mend = "write one step of the ladder for each"
        step.report("HW032", f"one step does one action, not {' and '.join(named)}", named[1], at_key=True, help=mend)
    elif not any(path in step.refused for path in (step.path, *((*step.path, key) for key in step.data))):
        step.report("HW032", "this step has no action", help=f"one of {', '.join(actions())}")


def _argument(step: Section, action: str) -> Any:
    """A profile without arguments captures three steps."""
    if action == "profile":
        return {"steps": step.below("profile").get("steps", _PROFILE_STEPS)}
    return step.get(action)


def _check_receiver(step: Section, receivers: Mapping[str, Any]) -> None:
    name = step.get("notify")
    if isinstance(name, str) and name not in receivers:
        mend = suggest(name, receivers, "receivers") or "there is no receivers: section"
        step.report("HW031", f'no receiver is called "{name}"', "notify", help=mend)


def receivers(section: Section, environment: Mapping[str, str], folder: Path, *, muted: bool) -> dict[str, Receiver]:
    """Every receiver, its secrets filled in. Where nothing is sent (`muted`) a missing secret is a warning."""
    found = section.below("receivers")
    return {
        name: Receiver(
            name=name,
            urls=_urls(found.below(name), environment, folder, muted=muted),
            group_interval=found.below(name).steps("group_interval", 50),
            alertmanager=_alertmanager(found.below(name), environment, folder, muted=muted),
        )
        for name in found.data
        if _leads_somewhere(found, name)
    }


def _leads_somewhere(receivers: Section, name: str) -> bool:
    data = receivers.get(name)
    if isinstance(data, dict) and not {"urls", "alertmanager"} & data.keys():
        receivers.report("HW008", f'"{name}" lacks the key "urls"', name, at_key=True, help="or alertmanager")
        return False
    return True


def _alertmanager(receiver: Section, environment: Mapping[str, str], folder: Path, *, muted: bool) -> Secret | None:
    text = receiver.get("alertmanager")
    path = (*receiver.path, "alertmanager")
    return _secret(receiver, path, text, environment, folder, muted=muted) if isinstance(text, str) else None


def _urls(receiver: Section, environment: Mapping[str, str], folder: Path, *, muted: bool) -> tuple[Secret, ...]:
    urls = []
    for position, text in enumerate(receiver.get("urls", [])):
        path = (*receiver.path, "urls", position)
        if not isinstance(text, str) or path in receiver.refused:
            continue
        secret = _secret(receiver, path, text, environment, folder, muted=muted)
        urls += [] if secret is None else [secret]
    return tuple(urls)


def _secret(
    receiver: Section, path: KeyPath, text: str, environment: Mapping[str, str], folder: Path, *, muted: bool
) -> Secret | None:
    secret, problems = secrets.resolve(text, environment, folder)
    for problem in problems:
        span = receiver.document.text_span(path, problem.start, problem.end)
        found = receiver.document.at_span(
            "HW030",
            problem.message,
            span,
            severity="warning" if muted else "error",
            label=f'receiver "{receiver.path[-1]}"',
            help=problem.help,
        )
        receiver.diagnostics.append(found)
    span = receiver.document.value_span(path)
    return None if problems else secret.at(span, receiver.document.shown(span.line))


def credentials(document: Document, ours: str) -> frozenset[KeyPath]:
    """All that receivers hold, misspelt keys among it, but for what is known to be none."""
    below = (ours, "receivers")
    return frozenset(path for path in document.places if path[:2] == below and path[-1] != "group_interval")
