"""Workload W: groups of series with lognormal noise and drift, and faults planted in them.

20,480 series (80 groups of 256) x 2,000 steps: 2,048 spikes of 12 times, 204 NaN, 102 infinities, 51 ramps;
other sizes in proportion.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from healthwatch.stream import Frame, SeriesTable
from healthwatch.stream.series import Series

GROUP = 256


@dataclass(frozen=True, slots=True)
class Workload:
    """`values` is steps x series."""

    values: NDArray[np.float32]
    labels: list[dict[str, str]]

    @classmethod
    def of(cls, series: int, steps: int, seed: int = 1) -> Workload:
        rng = np.random.default_rng(seed)
        level = rng.lognormal(0, 0.3, series)
        drift = 1 + 0.1 * np.sin(np.arange(steps)[:, None] / 300 + rng.uniform(0, 6, series))
        values = level * drift * rng.lognormal(0, 0.1, (steps, series))
        for share, fault in ((1.0, 12.0), (0.1, np.nan), (0.05, np.inf)):
            count = int(series / 10 * share * steps / 2000)
            values[rng.integers(60, steps, count), rng.integers(0, series, count)] *= fault
        for column in rng.integers(0, series, int(series / 400)):
            begin = int(rng.integers(60, steps))
            values[begin:, column] *= 1.02 ** np.minimum(np.arange(steps - begin), 200)
        labels = [{"layer": str(i // GROUP), "expert": str(i % GROUP)} for i in range(series)]
        return cls(values.astype(np.float32), labels)

    def register(self, table: SeriesTable) -> Series:
        return table.register("x", self.labels)

    def frames(self, series: Series) -> Iterator[Frame]:
        for step, row in enumerate(self.values, start=1):
            frame = Frame(step, time=float(step))
            frame.add(series, row)
            frame.close()
            yield frame


RULES = {
    "a": "spike_ratio(x[50]) > 8",
    "b": "robust_zscore(x[50]) > 6",
    "c": "ema_ratio(x[50]) > 3",
    "d": "nonfinite(x)",
    "e": "max by (layer) (x) / avg by (layer) (x) > 4",
    "f": "x > 2 * x offset 100",
}

SHAPES = (
    "spike_ratio(x[{w}]) > {k}",
    "robust_zscore(x[{w}]) > {k}",
    "ema_ratio(x[{w}]) > {k}",
    "nonfinite(x)",
    "x > {k} * x offset {w}",
    "max by (layer) (x) / avg by (layer) (x) > {k}",
)
"""The same with a window and a bound of one's own, for many rules."""
