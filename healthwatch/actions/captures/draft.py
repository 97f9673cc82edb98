"""Captures before they are armed: which folder, and how many steps."""

from __future__ import annotations

from pathlib import Path

from healthwatch.actions.captures.manifest import Capture, Kind, folder_name
from healthwatch.actions.captures.window import StaticWindow
from healthwatch.alerting.model import Incident, Now


def draft(
    shelf: Path,
    kind: Kind,
    name: str,
    steps: int,
    now: Now,
    window: StaticWindow | None,
    incident: Incident | None = None,
) -> Capture:
    """Of the `steps` steps after `now`; cut short where it would run into the static window, which then follows."""
    folder, first, remark = new_folder(shelf, name), now.step + 1, None
    if window is not None and first < window.first <= now.step + steps:
        steps, remark = window.first - first, f"cut short: the {window} follows"
    return Capture(kind, name, folder, folder, steps, now, incident, first_step=first, remark=remark)


def draft_window(shelf: Path, window: StaticWindow, now: Now) -> Capture:
    """Of what is left of the static window after `now`."""
    name = f"window-{window.first}-{window.last}"
    first, steps = now.step + 1, window.last - now.step
    return Capture("window", name, new_folder(shelf, name), window.folder, steps, now, first_step=first)


def new_folder(shelf: Path, name: str) -> Path:
    """The capture's own folder; numbered where an earlier run into the same output has left one."""
    folder, number = shelf / folder_name(name), 1
    while folder.exists():
        number += 1
        folder = shelf / f"{folder_name(name)}-{number}"
    return folder
