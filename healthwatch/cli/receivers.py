"""The receivers of a config file, for the commands that send."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from healthwatch.config import Receiver, load_config
from healthwatch.diagnostics import Diagnostic, Invalid, errors


def receivers_of(config: Path) -> Mapping[str, Receiver]:
    """
    Raises:
        Invalid: the config can't be read, or has no receiver that could be sent to.
    """
    from healthwatch.actions.notify import validate

    loaded, found = load_config(config)
    if loaded is None:
        raise Invalid(found)
    found = validate(loaded.receivers)
    if errors(found):
        raise Invalid(found)
    if not loaded.receivers:
        raise Invalid([Diagnostic("HW602", "error", f"{config.as_posix()} has no receivers")])
    return loaded.receivers
