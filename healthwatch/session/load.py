"""From a config file to a session, or to every problem in it at once."""

from __future__ import annotations

import logging
import os
from pathlib import Path

from healthwatch.config import Config, load_all, load_config
from healthwatch.diagnostics import Diagnostic, Invalid, errors, render_text
from healthwatch.session.session import FindIntegration, Session
from healthwatch.yamlfile import Document

LOGGER = logging.getLogger("healthwatch")


def load(source: Path | str | Document, find_integration: FindIntegration) -> Session:
    """The session of a config file, or of one that is parsed already.

    With `HEALTHWATCH_DISABLED=1` it does nothing, whatever the file says.

    Raises:
        Invalid: the file or one of its rules can't be used; it carries all problems.
    """
    if os.environ.get("HEALTHWATCH_DISABLED", "") not in ("", "0"):
        LOGGER.info("switched off by HEALTHWATCH_DISABLED")
        return Session(Config(run="", output=Path(), rules=(), digest="", disabled=True), (), find_integration)
    checked = load_all(source)
    config = checked.config or load_config(source)[0]
    found = [*checked.diagnostics, *_receivers(config), *_actions(config)]
    if checked.config is None or errors(found):
        raise Invalid(found)
    session = Session(checked.config, checked.rules.rules, find_integration)
    if found:
        name = source.file if isinstance(source, Document) else source
        session.guard.say(f"{len(found)} remarks on {name}:\n{render_text(found)}", logging.WARNING)
    return session


def _actions(config: Config | None) -> list[Diagnostic]:
    if config is None or config.disabled:
        return []
    from healthwatch.actions.action import check

    return check(config)


def _receivers(config: Config | None) -> list[Diagnostic]:
    """Problems of the receivers' URLs; apprise is imported only where there is one to send to."""
    if config is None or config.disabled or not config.receivers:
        return []
    from healthwatch.actions.notify import validate

    return validate(config.receivers)
