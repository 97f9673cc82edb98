"""Arrays of several layers laid end to end, so that a step costs a few array operations and no loop over layers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Labels = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Layout:
    """Which of the layers have values now, and how many each."""

    layers: tuple[int, ...]
    sizes: tuple[int, ...]

    @property
    def starts(self) -> NDArray[np.intp]:
        return np.concatenate(([0], np.cumsum(self.sizes)[:-1])).astype(np.intp)

    def labels(self, layers: Sequence[Labels], name: str) -> list[dict[str, str]]:
        """One label set per value: those of its layer, and its place in the layer under `name`."""
        return [
            {**layers[layer], name: str(place)}
            for layer, size in zip(self.layers, self.sizes, strict=True)
            for place in range(size)
        ]

    def split(self, flat: NDArray[Any]) -> Iterator[tuple[int, NDArray[Any]]]:
        yield from zip(self.layers, np.split(flat, self.starts[1:]), strict=True)


def lay_out(arrays: Sequence[NDArray[Any] | None]) -> tuple[Layout, NDArray[np.float64]]:
    """The values of the layers that have some, of any shape, as one float64 array."""
    present = [(layer, array) for layer, array in enumerate(arrays) if array is not None and array.size]
    layout = Layout(tuple(layer for layer, _ in present), tuple(array.size for _, array in present))
    if not present:
        return layout, np.empty(0)
    return layout, np.concatenate([array.ravel() for _, array in present]).astype(np.float64)
