"""Tokens per expert, whatever the model does with its counters between two readings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from healthwatch.monitors.layout import Labels, Layout, Stack

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
        initial: Stack | None = None,
    ) -> None:
        self.layers = tuple(layers)
        self._topk = [(labels, k) for labels, k in zip(layers, topk, strict=True) if k is not None]
        self._counters = Counters(len(self.layers), initial)
        self._micro_steps: list[Stack] = []
        self._series: dict[Layout, Series] = {}

    def register(self, table: SeriesTable) -> None:
        self._table = table
        self._topk_series = table.register("router_topk", [labels for labels, _ in self._topk])
        self._topk_values = np.array([k for _, k in self._topk], np.float64)

    def micro_step(self, counters: Stack, before: Stack | None = None) -> None:
        """The experts of each layer, as the model's counter stands; `before` as it stood before the micro-batch."""
        self._micro_steps.append(self._counters.read(counters, bool(self._micro_steps), before))

    def counted(self, counts: Stack) -> None:
        """As `micro_step`, where the counts of the micro-batch itself are known."""
        self._micro_steps.append(counts)

    def flush(self, frame: Frame) -> None:
        for micro_step, counts in enumerate(self._micro_steps):
            if counts.values.size:
                frame.add(self._series_of(counts.layout), counts.values, micro_step=micro_step)
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

    def __init__(self, layers: int, initial: Stack | None = None) -> None:
        self._layout = Layout.of((None,) * layers)
        self._before: NDArray[np.float64] = np.empty(0)
        self._apart: dict[int, NDArray[np.float64]] = {}  # readings of layers that have none now
        if initial is not None:
            self._layout, self._before = initial.layout, initial.values
        self._grows = np.zeros(layers, bool)  # seen to grow from one micro-batch to the next
        self._last_pass = np.zeros(layers, bool)  # seen to fall between two micro-batches
        self._falls = np.zeros(layers, np.intp)  # at step ends, in a row

    def read(self, counters: Stack, inside_step: bool, began: Stack | None = None) -> Stack:
        """Counts of a micro-batch; `began` is the reading at its begin, where it is not the one before."""
        layout, now = counters.layout, counters.values
        if not layout.layers:
            return counters
        before = self._align(layout)
        if began is not None and began.sizes == counters.sizes:
            before = began.values
        layers = np.array(layout.layers)
        change = now - before
        fell = np.minimum.reduceat(change, layout.starts) < 0
        grew = ~fell & (np.add.reduceat(change, layout.starts) > 0)
        counted = np.add.reduceat(before, layout.starts) > 0
        self._learn(layers, fell & counted, grew & counted, inside_step)
        afresh = self._last_pass[layers] | (self._falls[layers] >= _FALLS_IN_A_ROW)
        difference = ~afresh & (grew | (self._grows[layers] & ~fell))
        self._before = now
        if difference.all():
            return Stack(counters.sizes, change)
        if not difference.any():
            return counters
        return Stack(counters.sizes, np.where(np.repeat(difference, layout.sizes), change, now))

    def _align(self, layout: Layout) -> NDArray[np.float64]:
        """The readings before, in this layout; zeros for a layer whose size is new."""
        if layout is not self._layout:
            self._apart.update(self._layout.split(self._before))
            parts = [self._apart.get(layer, np.empty(0)) for layer in layout.layers]
            sized = zip(parts, layout.sizes, strict=True)
            self._before = np.concatenate([part if part.size == size else np.zeros(size) for part, size in sized])
            self._layout = layout
        return self._before

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
