"""Tokens per expert, whatever the model does with its counters between two readings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from healthwatch.monitors.layout import Labels, Layout, lay_out

if TYPE_CHECKING:
    from healthwatch.stream.frame import Frame
    from healthwatch.stream.series import Series, SeriesTable

_FALLS_IN_A_ROW = 3  # at step ends, from which on a counter is taken to start afresh each step


class TokensPerExpert:
    """`tokens_per_expert{block,layer,expert}` by micro-step and `router_topk{block,layer}` by step.

    `topk` is the number of experts a token goes to, None where the model does not say. `initial` holds the counters
    as they stand before the first step (a resumed model's are not zero).
    """

    def __init__(
        self,
        layers: Sequence[Labels],
        topk: Sequence[int | None],
        initial: Sequence[NDArray[Any] | None] = (),
    ) -> None:
        self.layers = tuple(layers)
        self._topk = [(labels, k) for labels, k in zip(layers, topk, strict=True) if k is not None]
        self._counters = Counters(len(self.layers), initial)
        self._micro_steps: list[tuple[Layout, NDArray[np.float64]]] = []
        self._series: dict[Layout, Series] = {}

    def register(self, table: SeriesTable) -> None:
        self._table = table
        self._topk_series = table.register("router_topk", [labels for labels, _ in self._topk])
        self._topk_values = np.array([k for _, k in self._topk], np.float64)

    def micro_step(self, counters: Sequence[NDArray[Any] | None]) -> None:
        """One array of experts per layer as the model's counter stands; None where a layer has none now."""
        self._micro_steps.append(self._counters.read(counters, inside_step=bool(self._micro_steps)))

    def counted(self, counts: Sequence[NDArray[Any] | None]) -> None:
        """As `micro_step`, where the counts of the micro-batch itself are known."""
        self._micro_steps.append(lay_out(counts))

    def flush(self, frame: Frame) -> None:
        for micro_step, (layout, counts) in enumerate(self._micro_steps):
            if layout.layers:
                frame.add(self._series_of(layout), counts, micro_step=micro_step)
        if self._micro_steps and self._topk:
            frame.add(self._topk_series, self._topk_values)
        self._micro_steps = []

    def _series_of(self, layout: Layout) -> Series:
        series = self._series.get(layout)
        if series is None:
            labels = layout.labels(self.layers, "expert")
            series = self._series[layout] = self._table.register("tokens_per_expert", labels)
        return series


class Counters:
    """Turns readings of the layers' counters into counts of one micro-batch.

    A counter may grow for ever, start afresh at each step, or hold the last forward pass alone. A reading that is
    nowhere below the one before and higher in sum has grown, and the difference counts; otherwise the reading itself
    does. A counter that falls between two micro-batches of one step can only be one that holds the last pass, and
    so, nearly, is one that falls at every step end: from then on its readings are the counts.
    """

    def __init__(self, layers: int, initial: Sequence[NDArray[Any] | None] = ()) -> None:
        self._before: list[NDArray[np.float64] | None] = [None] * layers
        for layer, array in enumerate(initial):
            self._before[layer] = None if array is None else array.ravel().astype(np.float64)
        self._grows = np.zeros(layers, bool)  # seen to grow from one micro-batch to the next
        self._last_pass = np.zeros(layers, bool)  # seen to fall between two micro-batches
        self._falls = np.zeros(layers, np.intp)  # at step ends, in a row

    def read(self, arrays: Sequence[NDArray[Any] | None], inside_step: bool) -> tuple[Layout, NDArray[np.float64]]:
        layout, now = lay_out(arrays)
        if not layout.layers:
            return layout, now
        before = self._align(layout)
        layers, starts, sizes = np.array(layout.layers), layout.starts, np.array(layout.sizes)
        change = now - before
        fell = np.logical_or.reduceat(change < 0, starts)
        grew = ~fell & (np.add.reduceat(change, starts) > 0)
        counted = np.add.reduceat(before, starts) > 0
        self._learn(layers, fell & counted, grew & counted, inside_step)
        afresh = self._last_pass[layers] | (self._falls[layers] >= _FALLS_IN_A_ROW)
        difference = ~afresh & (grew | (self._grows[layers] & ~fell))
        for layer, values in layout.split(now):
            self._before[layer] = values
        return layout, np.where(np.repeat(difference, sizes), change, now)

    def _align(self, layout: Layout) -> NDArray[np.float64]:
        """The readings before, in the same layout; zeros for a layer whose size is new."""
        parts = []
        for layer, size in zip(layout.layers, layout.sizes, strict=True):
            before = self._before[layer]
            parts.append(before if before is not None and before.size == size else np.zeros(size))
        return np.concatenate(parts)

    def _learn(
        self, layers: NDArray[np.intp], fell: NDArray[np.bool_], grew: NDArray[np.bool_], inside_step: bool
    ) -> None:
        if inside_step:
            self._last_pass[layers] |= fell
            self._grows[layers] |= grew
            self._falls[layers[grew]] = 0
        else:
            falls = self._falls[layers]
            broken = grew & (falls < _FALLS_IN_A_ROW)
            self._falls[layers] = np.where(fell, falls + 1, np.where(broken, 0, falls))
