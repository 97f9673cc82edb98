"""Values of several layers laid end to end, so that a step costs a few array operations and no loop over layers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

Labels = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Layout:
    """Which of the layers have values now, how many each, and where they start."""

    layers: tuple[int, ...]
    sizes: tuple[int, ...]
    starts: NDArray[np.intp] = field(compare=False)

    @staticmethod
    @lru_cache(maxsize=64)
    def of(sizes: tuple[int | None, ...]) -> Layout:
        """The same object for the same sizes."""
        present = [(layer, size) for layer, size in enumerate(sizes) if size]
        starts = np.cumsum([0, *(size for _, size in present)])[:-1].astype(np.intp)
        return Layout(tuple(layer for layer, _ in present), tuple(size for _, size in present), starts)

    def labels(self, layers: Sequence[Labels], name: str) -> list[dict[str, str]]:
        """One label set per value: those of its layer, and its place in the layer under `name`."""
        return [
            {**layers[layer], name: str(place)}
            for layer, size in zip(self.layers, self.sizes, strict=True)
            for place in range(size)
        ]

    def split(self, flat: NDArray[Any]) -> Iterator[tuple[int, NDArray[Any]]]:
        for layer, size, start in zip(self.layers, self.sizes, self.starts.tolist(), strict=True):
            yield layer, flat[start : start + size]


@dataclass(frozen=True, slots=True)
class Stack:
    """One entry of `sizes` a layer, None for one that has no values now; `values` are those of the others."""

    sizes: tuple[int | None, ...]
    values: NDArray[np.float64]

    @classmethod
    def of(cls, arrays: Iterable[NDArray[Any] | None]) -> Stack:
        """From one array of any shape and type a layer; copies."""
        flat = [None if array is None else array.ravel() for array in arrays]
        present = [array for array in flat if array is not None]
        values = np.concatenate(present, dtype=np.float64) if present else np.empty(0)
        return cls(tuple(None if array is None else array.size for array in flat), values)

    @classmethod
    def together(cls, stacks: Sequence[Stack]) -> Stack:
        """The layers of the first, then those of the next."""
        if len(stacks) == 1:
            return stacks[0]
        sizes = tuple(size for stack in stacks for size in stack.sizes)
        return cls(sizes, np.concatenate([np.empty(0), *(stack.values for stack in stacks)]))

    @property
    def layout(self) -> Layout:
        return Layout.of(self.sizes)

    def arrays(self) -> list[NDArray[np.float64] | None]:
        """One flat array a layer."""
        ends = np.cumsum([size or 0 for size in self.sizes])
        return [
            None if size is None else self.values[end - size : end] for size, end in zip(self.sizes, ends, strict=True)
        ]
