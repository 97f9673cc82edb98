"""A node of the plan: one computation that any number of rules share, done once a tick."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from time import perf_counter
from typing import Generic, TypeVar

from healthwatch.promql.vector import Moment, Vector
from healthwatch.promql.window import Window

Result = TypeVar("Result", Vector, Window)


@dataclass(slots=True, eq=False)
class Node(Generic[Result]):
    """`compute` is called once for each tick of an epoch.

    `timeless` says that the result depends on the tick and the history alone, so it may be kept across epochs.
    """

    text: str
    compute: Callable[[Moment], Result]
    inputs: tuple[Node[Vector] | Node[Window], ...] = ()
    timeless: bool = True
    rows: Callable[[], int] | None = None  # how many of the history a selector's node keeps
    seconds: float = 0.0  # of the last computation, its inputs included
    _epoch: int = -1
    _results: dict[int, Result] = field(default_factory=dict)

    def at(self, moment: Moment) -> Result:
        if self._epoch != moment.epoch:
            self._epoch = moment.epoch
            self._results.clear()
        found = self._results.get(moment.tick)
        if found is None:
            begun = perf_counter()
            found = self._results[moment.tick] = self.compute(moment)
            self.seconds = perf_counter() - begun
        return found


VectorNode = Node[Vector]
WindowNode = Node[Window]
