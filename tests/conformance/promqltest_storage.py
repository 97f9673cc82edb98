"""The samples of a script, as the engine is given them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from promqltest_script import Load
from promqltest_series import Histogram, Sample

from healthwatch.stream.history import ABSENT, STALE, History
from healthwatch.stream.series import METRIC_NAME, LabelSet, SeriesTable

HISTOGRAM_BITS = 0x7FF8_0001_0000_0000


@dataclass(slots=True)
class Storage:
    """The samples that a script has loaded.

    The engine has no histograms. A histogram sample is a marked NaN to it: a sample that can be selected, counted and
    passed on. What is computed from one is marked too, as NaN payloads survive arithmetic, and left out of the result.
    For functions that pass over histograms a stale mark stands in its place: no sample, and it hides older ones.
    """

    series: dict[LabelSet, dict[int, Sample]] = field(default_factory=dict)
    _histories: dict[bool, History] = field(default_factory=dict)
    _histograms: list[Histogram] = field(default_factory=list)

    def load(self, command: Load) -> None:
        for written in command.series:
            samples = self.series.setdefault(written.labels, {})
            for position, sample in enumerate(written.samples):
                if sample is not None:
                    samples[position * command.gap] = sample
        for labels, samples in _converted(command).items():
            self.series.setdefault(labels, {}).update(samples)
        self._histories.clear()

    def history(self, *, histograms: bool) -> History:
        if histograms not in self._histories:
            self._histories[histograms] = _history(
                {
                    labels: {tick: self._value(sample, histograms) for tick, sample in samples.items()}
                    for labels, samples in self.series.items()
                }
            )
        return self._histories[histograms]

    def _value(self, sample: Sample, histograms: bool) -> float:
        if isinstance(sample, float):
            return sample
        if not (histograms and isinstance(sample, Histogram)):
            return STALE
        if sample not in self._histograms:
            self._histograms.append(sample)
        return _marked(self._histograms.index(sample))

    def has_histograms(self, metrics: set[str | None]) -> bool:
        """Whether a series of these metrics has one; None is a selector without a metric."""
        return any(
            (None in metrics or dict(labels).get(METRIC_NAME) in metrics)
            and any(isinstance(each, Histogram) for each in samples.values())
            for labels, samples in self.series.items()
        )

    def sample(self, value: float) -> float | Histogram:
        """What a value of a result stands for."""
        place = _mark_of(value)
        return value if place is None else self._histograms[place]


def _marked(place: int) -> float:
    return float(np.array(HISTOGRAM_BITS + place, dtype=np.int64).view(np.float64))


def _mark_of(value: float) -> int | None:
    place = (int(np.array(value).view(np.int64)) & (2**63 - 1)) - HISTOGRAM_BITS
    return place if 0 <= place < 2**32 else None


def _history(series: Mapping[LabelSet, Mapping[int, float]]) -> History:
    table = SeriesTable()
    history = History(table)
    metrics: dict[str, list[LabelSet]] = {}
    for labels in series:
        metrics.setdefault(dict(labels).get(METRIC_NAME, ""), []).append(labels)
    for metric, sets in metrics.items():
        registered = table.register(metric, [dict(labels) for labels in sets])
        for tick in sorted({tick for labels in sets for tick in series[labels]}):
            values = np.array([series[labels].get(tick, ABSENT) for labels in sets])
            history.append(tick, registered, values)
    return history


def _converted(command: Load) -> dict[LabelSet, dict[int, Sample]]:
    """The histograms that `load_with_nhcb` makes of classic ones; nothing is known of them but where they stand."""
    found: dict[LabelSet, dict[int, Sample]] = {}
    for written in command.series if command.converts else ():
        labels = dict(written.labels)
        if labels.pop("le", None) is None or not labels[METRIC_NAME].endswith("_bucket"):
            continue
        labels[METRIC_NAME] = labels[METRIC_NAME].removesuffix("_bucket")
        samples = found.setdefault(tuple(sorted(labels.items())), {})
        for position, sample in enumerate(written.samples):
            if sample is not None:
                samples[position * command.gap] = Histogram("converted") if isinstance(sample, float) else sample
    return found
