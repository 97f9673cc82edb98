"""One training process under watch."""

from healthwatch.session.guard import Guard
from healthwatch.session.load import load
from healthwatch.session.session import FindIntegration, Integration, Session

__all__ = ["FindIntegration", "Guard", "Integration", "Session", "load"]
