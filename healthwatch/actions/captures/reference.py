"""When a run takes the healthy reference with which its captures are compared."""

from __future__ import annotations

from dataclasses import dataclass

STEPS = 3
TRIES = 3
SETTLING = 10  # steps of an attempt before a reference that is overdue
POSTPONED = 50  # steps


@dataclass(slots=True)
class ReferencePlan:
    """`at` is the step with which it is to begin, None where none is wanted or it has been taken.

    It waits for a step at which nothing fires; one during which something fires is taken again, a few times.
    """

    at: int | None
    tries: int = 0
    seen: int = 0  # steps of this attempt
    under_way: bool = False

    def due(self, step: int, firing: bool) -> bool:
        """Whether it is to begin with this step."""
        if self.at is None or firing or self.under_way or self.tries >= TRIES:
            return False
        return step == self.at or (step > self.at and self.seen >= SETTLING)

    def began(self) -> None:
        self.tries += 1
        self.under_way = True

    def ended(self, healthy: bool) -> None:
        self.under_way = False
        if healthy:
            self.at = None

    def postpone(self, step: int) -> None:
        self.at = step + POSTPONED
