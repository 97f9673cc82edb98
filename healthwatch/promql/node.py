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
    constant: Result | None = None  # the result, where it is always the same
    _moment: Moment | None = None
    _result: Result | None = None
    _results: dict[int, Result] = field(default_factory=dict)  # by tick, where an epoch has several

    def at(self, moment: Moment) -> Result:
        if self.constant is not None:
            return self.constant
        last = self._moment
        if last is moment:
            assert self._result is not None
            return self._result
        if last is not None and last.epoch == moment.epoch:
            assert self._result is not None
            self._results[last.tick] = self._result
            found = self._results.get(moment.tick)
        else:
            found = None
            if self._results:
                self._results.clear()
        if found is None:
            begun = perf_counter()
            found = self.compute(moment)
            self.seconds = perf_counter() - begun
        self._moment, self._result = moment, found
        return found


VectorNode = Node[Vector]
WindowNode = Node[Window]
