"""What ends a training, and whether that is an error."""

from __future__ import annotations

import sys

from healthwatch.session.stopping import TrainingStopped


def is_error(raised: BaseException) -> bool:
    """Neither somebody's Ctrl-C nor an exit that says that all is well, nor an end that our own rules asked for."""
    if isinstance(raised, SystemExit) and not isinstance(raised, TrainingStopped):
        return raised.code not in (None, 0)
    return not isinstance(raised, (KeyboardInterrupt, GeneratorExit, TrainingStopped))


def unhandled() -> BaseException | None:
    """What ends this process, as the interpreter keeps it for debuggers: no hook of anybody's is replaced for it.

    None at a prompt, where an error ends a line and not the process. An exit (`sys.exit(1)`) is not kept.
    """
    return None if hasattr(sys, "ps1") else getattr(sys, "last_value", None)
