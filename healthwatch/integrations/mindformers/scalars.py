"""What the trainer itself has measured at the end of a step: Python numbers, at no cost."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from healthwatch.stream.frame import Frame
    from healthwatch.stream.series import SeriesTable

TRACKED: Mapping[str, tuple[str, float]] = {  # name in the trainer's tracker: metric, and its unit in ours
    "loss-scale": ("loss_scale", 1.0),
    "load-balancing-loss": ("load_balancing_loss", 1.0),
    "throughput": ("throughput", 1e12),
    "batch-size": ("global_batch_size", 1.0),
    "indexer-loss": ("indexer_loss", 1.0),
}
_MTP = re.compile(r"mtp-(\d+)-loss")


class Scalars:
    """A monitor of step-level numbers; what the trainer does not say at a step has no sample there."""

    def __init__(self) -> None:
        self._values: dict[tuple[str, str], float] = {}  # metric, mtp_idx

    def register(self, table: SeriesTable) -> None:
        self._table = table

    def take(self, tracked: Mapping[str, Any], state: Any) -> None:
        """The tracker's data and the trainer's state, as they stand when the step's callbacks run."""
        for name, value in tracked.items():
            if name in TRACKED and value is not None:
                metric, unit = TRACKED[name]
                self._values[metric, ""] = float(value) * unit
            mtp = _MTP.fullmatch(name)
            if mtp and value is not None:
                self._values["mtp_loss", str(int(mtp[1]) - 1)] = float(value)
        samples = getattr(state, "consumed_samples", None)
        if samples is not None:
            self._values["consumed_samples", ""] = float(samples)

    def flush(self, frame: Frame) -> None:
        values, self._values = self._values, {}
        by_metric: dict[str, list[tuple[str, float]]] = {}
        for (metric, mtp), value in values.items():
            by_metric.setdefault(metric, []).append((mtp, value))
        for metric, found in by_metric.items():
            series = self._table.register(metric, [{"mtp_idx": mtp} for mtp, _ in found])
            frame.add(series, np.array([value for _, value in found], np.float64))


def tracker() -> Mapping[str, Any]:
    """What LossCallback has published of the step; empty where this version of the trainer publishes nothing."""
    try:
        from mindformers.pynative.tools.monitor_utils import get_monitor_data_tracker
    except ImportError:
        return {}
    data: Mapping[str, Any] = get_monitor_data_tracker().data
    return data
