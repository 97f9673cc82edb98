"""One training process under watch."""

from healthwatch.session.guard import Guard
from healthwatch.session.integration import FindIntegration, Integration
from healthwatch.session.load import load
from healthwatch.session.session import Session
from healthwatch.session.stopping import TrainingStopped

__all__ = ["FindIntegration", "Guard", "Integration", "Session", "TrainingStopped", "load"]
