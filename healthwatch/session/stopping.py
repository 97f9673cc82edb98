"""The one thing that healthwatch raises into a training: the end that its rules asked for."""

from __future__ import annotations


class TrainingStopped(SystemExit):
    """A rule's ladder has a `stop` step, and the step is over, recorded and told.

    Uncaught it ends the process with exit code 1 and one line on stderr; a loop that wants to save a checkpoint first
    catches it.
    """

    def __init__(self, reason: str) -> None:
        super().__init__(f"healthwatch stopped the training: {reason}")
        self.reason = reason
