"""Framework-free monitors: an integration hands them arrays, they fill the columns of a frame."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from healthwatch.stream.frame import Frame
    from healthwatch.stream.series import SeriesTable


class Monitor(Protocol):
    """What a step's frame is filled from. A monitor sees every value, whether or not it is ever printed."""

    def register(self, table: SeriesTable) -> None:
        """Keep the table in which the series are interned; called once, before the first step."""
        ...

    def flush(self, frame: Frame) -> None:
        """Add the columns of the step that ends to the frame, and begin the next step."""
        ...
