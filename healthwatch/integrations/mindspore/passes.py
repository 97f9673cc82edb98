"""The expert counters of a model, read around its forward passes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

from healthwatch.integrations.mindspore.calls import watch_calls
from healthwatch.integrations.mindspore.reading import Reader, Reading
from healthwatch.integrations.mindspore.taps import Tap

PART = "mindspore model hook"


@dataclass(frozen=True, slots=True)
class Counted:
    """Counters after a micro-batch's passes and, where those were seen, before them."""

    now: Reading
    before: Reading | None


class Passes:
    """A backward pass that runs layers again (recomputation) counts their tokens again: what a pass has counted is
    read when it is over, and what stood there when it began. Where no pass is seen (under `@jit`), as it stands.
    """

    def __init__(
        self, taps: Sequence[Tap], reader: Reader, guard: Callable[[str], AbstractContextManager[Any]]
    ) -> None:
        self._taps, self._reader, self._guard = taps, reader, guard
        self._training = False  # the model has been told that it is trained: other passes are evaluations
        self._before: Reading | None = None
        self._now: Reading | None = None

    def hook(self, model: Any) -> Callable[[], None]:
        """Watch the passes of a model, inside of what trains it; returns what ends that."""
        cell = forward_of(model)

        def begin(_: Sequence[Any]) -> None:
            with self._guard(PART):
                training = bool(cell.training)
                self._training |= training
                if training is self._training and self._before is None:
                    self._before = self._read()

        def end() -> None:
            with self._guard(PART):
                if bool(cell.training) is self._training:
                    self._now = self._read()

        return watch_calls(cell, begin, end)

    def take(self) -> Counted:
        """Of all passes since the last reading."""
        counted = Counted(self._read() if self._now is None else self._now, self._before)
        self._before = self._now = None
        return counted

    def _read(self) -> Reading:
        return self._reader.copies(tap.tensor() for tap in self._taps)


def forward_of(model: Any) -> Any:
    """The cell that makes a forward pass and nothing else: what trains it has an optimizer, too."""
    while hasattr(model, "optimizer") and hasattr(getattr(model, "network", None), "cells_and_names"):
        model = model.network
    return model
