"""From a config file to a session, or to every problem in it at once."""

from __future__ import annotations

import logging
import os
from pathlib import Path

from healthwatch.config import Config
from healthwatch.diagnostics import Invalid, counted, errors, render_text
from healthwatch.session.integration import FindIntegration
from healthwatch.session.reload import examine
from healthwatch.session.session import Session
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
    checked, found = examine(source)
    if checked.config is None or errors(found):
        raise Invalid(found)
    session = Session(checked.config, checked.rules.rules, find_integration)
    if found:
        name = source.file if isinstance(source, Document) else source
        session.guard.say(f"{counted(len(found), 'remark')} on {name}:\n{render_text(found)}", logging.WARNING)
    return session
