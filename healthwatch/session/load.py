"""From a config file to a session, or to every problem in it at once."""

from __future__ import annotations

import logging
import os
from pathlib import Path

from healthwatch.config import Config, load_config
from healthwatch.diagnostics import Diagnostic, Invalid, errors, render_text
from healthwatch.rulefile import Rule, load_rules
from healthwatch.session.session import FindIntegration, Session

LOGGER = logging.getLogger("healthwatch")


def load(path: Path | str, find_integration: FindIntegration) -> Session:
    """The session of a config file; with `HEALTHWATCH_DISABLED=1` one that does nothing, whatever the file says.

    Raises:
        Invalid: the file or one of its rules can't be used; it carries all problems.
    """
    if os.environ.get("HEALTHWATCH_DISABLED", "") not in ("", "0"):
        LOGGER.info("switched off by HEALTHWATCH_DISABLED")
        return Session(Config(run="", output=Path(), rules=(), digest="", disabled=True), (), find_integration)
    config, found = load_config(Path(path))
    rules, more = _rules(config)
    found = [*found, *more, *_receivers(config)]
    if config is None or errors(found):
        raise Invalid(found)
    if found:
        LOGGER.warning("%s", render_text(found))
    return Session(config, rules, find_integration)


def _rules(config: Config | None) -> tuple[tuple[Rule, ...], tuple[Diagnostic, ...]]:
    if config is None or config.disabled:
        return (), ()
    loaded = load_rules(config.rules, config.override)
    return loaded.rules, loaded.diagnostics


def _receivers(config: Config | None) -> list[Diagnostic]:
    """Problems of the receivers' URLs; apprise is imported only where there is one."""
    if config is None or config.disabled or not config.receivers:
        return []
    from healthwatch.actions.notify import validate

    return validate(config.receivers)
