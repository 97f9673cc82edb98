"""The rules of the workload as anybody would write them with plain numpy."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from harness.workload import GROUP


class PlainNumpy:
    """Sort the window, sort the deviations. `rules` are letters of `RULES`.

    Series stand in rows of float32, the layout and type in which numpy sorts fastest.
    """

    def __init__(self, rules: str, series: int, window: int = 50) -> None:
        self.rules, self.window = rules, window
        self.ring = np.full((series, window), np.nan, dtype=np.float32)
        self.past = np.full((100, series), np.nan, dtype=np.float32)
        self.weights = ((1 - 2 / (window + 1)) ** np.arange(window)).astype(np.float32)
        self.number = 0

    def step(self, now: NDArray[np.float32]) -> dict[str, NDArray[np.bool_]]:
        found: dict[str, NDArray[np.bool_]] = {}
        if {"a", "b"} & set(self.rules):
            self._against_median(now, found)
        if "c" in self.rules:
            age = (self.number - 1 - np.arange(self.window)) % self.window
            found["c"] = now > 3 * (self.ring @ self.weights[age]) / self.weights.sum()
        if "d" in self.rules:
            found["d"] = ~np.isfinite(now)
        if "e" in self.rules:
            groups = now.reshape(-1, GROUP) if len(now) % GROUP == 0 else now[None]
            found["e"] = groups.max(axis=1) / groups.mean(axis=1) > 4
        if "f" in self.rules:
            found["f"] = now > 2 * self.past[self.number % 100]
        self.ring[:, self.number % self.window] = now
        self.past[self.number % 100] = now
        self.number += 1
        return found

    def _against_median(self, now: NDArray[np.float32], found: dict[str, NDArray[np.bool_]]) -> None:
        low, high = (self.window - 1) // 2, self.window // 2 + 1
        median = np.sort(self.ring, axis=1)[:, low:high].mean(axis=1)
        found["a"] = now > 8 * median
        if "b" in self.rules:
            deviation = np.sort(np.abs(self.ring - median[:, None]), axis=1)[:, low:high].mean(axis=1)
            found["b"] = now - median > 6 * np.maximum(1.4826 * deviation, 1e-3 * np.abs(median))
