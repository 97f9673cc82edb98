"""One training process under watch."""

from healthwatch.session.guard import Guard
from healthwatch.session.load import load
from healthwatch.session.session import FindIntegration, Integration, Session
from healthwatch.session.stopping import TrainingStopped

__all__ = ["FindIntegration", "Guard", "Integration", "Session", "TrainingStopped", "load"]
