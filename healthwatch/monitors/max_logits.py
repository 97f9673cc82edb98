"""The largest attention logit of every head."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from healthwatch.monitors.layout import Labels, Layout, Stack

if TYPE_CHECKING:
    from healthwatch.stream.frame import Frame
    from healthwatch.stream.series import Series, SeriesTable


class MaxLogits:
    """`max_attention_logit{block,layer,head}`: the maximum over the step's micro-steps; NaN if any of them is.

    `qk_clip_threshold` goes with it where QK clip is on.
    """

    def __init__(self, layers: Sequence[Labels], clip_threshold: float | None = None) -> None:
        self.layers = tuple(layers)
        self._clip_threshold = clip_threshold
        self._layout: Layout | None = None
        self._series: Series | None = None
        self._highest: Stack | None = None

    def register(self, table: SeriesTable) -> None:
        self._table = table

    def micro_step(self, logits: Stack) -> None:
        """The heads of each layer."""
        self._highest = logits if self._highest is None else _maximum(self._highest, logits)

    def flush(self, frame: Frame) -> None:
        highest, self._highest = self._highest, None
        if highest is not None and highest.values.size:
            frame.add(self._series_of(highest.layout), highest.values)
            if self._clip_threshold is not None:
                frame.add(self._table.register("qk_clip_threshold", [{}]), self._clip_threshold)

    def _series_of(self, layout: Layout) -> Series:
        if self._series is None or layout != self._layout:
            labels = layout.labels(self.layers, "head")
            self._layout, self._series = layout, self._table.register("max_attention_logit", labels)
        return self._series


def _maximum(before: Stack, now: Stack) -> Stack:
    if before.sizes == now.sizes:
        return Stack(now.sizes, np.maximum(before.values, now.values))
    return Stack.of(_of_layer(*pair) for pair in zip(before.arrays(), now.arrays(), strict=True))


def _of_layer(before: NDArray[np.float64] | None, now: NDArray[np.float64] | None) -> NDArray[np.float64] | None:
    if before is None or now is None or before.size != now.size:
        return before if now is None else now
    return np.maximum(before, now)
