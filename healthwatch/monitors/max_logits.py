"""The largest attention logit of every head."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from healthwatch.monitors.layout import Labels, Layout, lay_out

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
        self._highest: list[NDArray[Any] | None] = [None] * len(self.layers)

    def register(self, table: SeriesTable) -> None:
        self._table = table

    def micro_step(self, logits: Sequence[NDArray[Any] | None]) -> None:
        """One array of heads per layer; None where a layer has none now."""
        self._highest = [_maximum(before, now) for before, now in zip(self._highest, logits, strict=True)]

    def flush(self, frame: Frame) -> None:
        layout, values = lay_out(self._highest)
        self._highest = [None] * len(self.layers)
        if layout.layers:
            frame.add(self._series_of(layout), values)
            if self._clip_threshold is not None:
                frame.add(self._table.register("qk_clip_threshold", [{}]), self._clip_threshold)

    def _series_of(self, layout: Layout) -> Series:
        if self._series is None or layout != self._layout:
            labels = layout.labels(self.layers, "head")
            self._layout, self._series = layout, self._table.register("max_attention_logit", labels)
        return self._series


def _maximum(before: NDArray[Any] | None, now: NDArray[Any] | None) -> NDArray[Any] | None:
    if before is None or now is None or before.shape != now.shape:
        return before if now is None else now
    return np.asarray(np.maximum(before, now))
