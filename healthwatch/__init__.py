"""A declarative rule engine for training-health alerts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path

    from healthwatch.session import Guard, Integration, Session, TrainingStopped

__all__ = ["TrainingStopped", "__version__", "load"]

__version__ = "0.1.0"


def load(path: Path | str) -> Session:
    """The session of a config file, to be attached to a model and its optimizer.

    Raises:
        healthwatch.diagnostics.Invalid: the file or one of its rules can't be used; it carries all problems.
    """
    from healthwatch.session import load as load_session

    return load_session(path, _find_integration)


def __getattr__(name: str) -> Any:
    if name == "TrainingStopped":  # imported when it is asked for
        from healthwatch.session import TrainingStopped

        return TrainingStopped
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def _find_integration(model: Any, guard: Guard) -> Integration:
    """The integration of the framework that a class of the model comes from; frameworks are imported only here."""
    frameworks = {base.__module__.partition(".")[0] for base in type(model).__mro__}
    if "mindspore" in frameworks:
        from healthwatch.integrations.mindspore import MindSpore

        return MindSpore(guard)
    from healthwatch.diagnostics import Diagnostic, Invalid

    message = f"a model of type {type(model).__module__}.{type(model).__qualname__} is of no framework that is known"
    help_ = "attach a mindspore.nn.Cell, or attach() without a model and hand in values with log()"
    raise Invalid([Diagnostic("HW302", "error", message, help=help_)])
