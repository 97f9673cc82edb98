"""An answer that holds as long as what it was drawn from is the same."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from operator import is_
from typing import Generic, TypeVar

T = TypeVar("T")


@dataclass(slots=True)
class Memo(Generic[T]):
    """The last answer. Ledgers hand out the very same array of firing rows until an alert begins or ends."""

    _objects: tuple[object, ...] = ()
    _facts: object = None
    _answer: T | None = None

    def of(self, objects: tuple[object, ...], facts: object, answer: Callable[[], T]) -> T:
        """`answer()`, asked again only where one of the objects is another one, or a fact differs."""
        same = len(objects) == len(self._objects) and all(map(is_, objects, self._objects))
        if self._answer is None or not same or facts != self._facts:
            self._answer = answer()
            self._objects, self._facts = objects, facts
        return self._answer
