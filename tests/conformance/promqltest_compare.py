"""What is wrong with a result."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable, Mapping
from typing import TypeAlias

from promqltest_script import Expected
from promqltest_series import Histogram, WrittenSeries

from healthwatch.stream.series import METRIC_NAME, LabelSet
from healthwatch.stream.ticks import TICKS_PER_STEP

TOLERANCE = 1e-6

Value: TypeAlias = float | Histogram
Points: TypeAlias = dict[LabelSet, dict[int, Value]]
"""Values by label set (with the metric's name) and tick."""


class WrongResultError(Exception):
    """A result that is not what the script expects."""


class SkippedError(Exception):
    """A result that can't be compared, and why."""


HISTOGRAM_NEEDED = "a histogram is needed in the result"
"""It takes more of a histogram than passing it on."""


def at_steps(series: Iterable[WrittenSeries], start: int, end: int, step: int) -> Points:
    """Where expected samples stand: at start, start + step ... up to `end`."""
    return {
        each.labels: {
            start + i * step: sample
            for i, sample in enumerate(each.samples)
            if isinstance(sample, float | Histogram) and start + i * step <= end
        }
        for each in series
    }


def compare(found: Points, wanted: Points) -> None:
    """Raises WrongResultError, or SkippedError where the engine would have to compute one."""
    for labels in dict.fromkeys([*wanted, *found]):
        ours, theirs = found.get(labels, {}), wanted.get(labels, {})
        for tick in sorted(ours.keys() | theirs.keys()):
            wrong = _difference(ours.get(tick), theirs.get(tick))
            if wrong:
                raise WrongResultError(f"{series_text(labels)} at {tick / TICKS_PER_STEP:g}: {wrong}")


def _difference(found: Value | None, wanted: Value | None) -> str:
    if isinstance(wanted, Histogram):
        if found != wanted:
            raise SkippedError(HISTOGRAM_NEEDED)
        return ""
    if wanted is None:
        return f"expected nothing, got {found!r}" if isinstance(found, float) else ""
    if not isinstance(found, float):
        return f"expected {wanted!r}, got {found or 'nothing'}"
    return "" if almost_equal(found, wanted) else f"expected {wanted!r}, got {found!r}"


def compare_order(found: list[LabelSet], expected: Expected) -> None:
    wanted = [series.labels for series in expected.series if not series.has_histogram]
    if found != wanted:
        texts = (", ".join(map(series_text, labels)) for labels in (wanted, found))
        raise WrongResultError("expected in the order {}; got {}".format(*texts))


def compare_scalars(found: float | None, wanted: float) -> None:
    if found is None or not almost_equal(found, wanted):
        raise WrongResultError(f"expected the number {wanted!r}, got {'a vector' if found is None else repr(found)}")


def compare_strings(found: str | None, wanted: str) -> None:
    if found != wanted:
        raise WrongResultError(f"expected the string {wanted!r}, got {found!r}")


def compare_failure(message: str, expected: Expected) -> None:
    """Whether a failure is what the script wants."""
    wanted = expected.fail
    if wanted is None:
        raise WrongResultError(f"it fails: {message}")
    if wanted not in message if isinstance(wanted, str) else not wanted.search(message):
        pattern = wanted if isinstance(wanted, str) else wanted.pattern
        raise WrongResultError(f"it fails with {message!r}, not with {pattern!r}")


def almost_equal(left: float, right: float) -> bool:
    """Equal within a relative error of 1e-6; NaN equals NaN."""
    if math.isnan(left) or math.isnan(right):
        return math.isnan(left) and math.isnan(right)
    if left == right:
        return True
    total, difference = abs(left) + abs(right), abs(left - right)
    if left == 0 or right == 0 or total < sys.float_info.min:
        return difference < TOLERANCE * sys.float_info.min
    return difference < TOLERANCE * min(total, sys.float_info.max)


def series_text(labels: LabelSet) -> str:
    named: Mapping[str, str] = dict(labels)
    inner = ", ".join(f'{key}="{value}"' for key, value in labels if key != METRIC_NAME)
    return f"{named.get(METRIC_NAME, '')}{{{inner}}}"
