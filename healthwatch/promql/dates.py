"""What a Unix time (seconds, UTC) says: hour, weekday, month ..."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from healthwatch.stream.ring import Floats

_DAY = 86_400


def _seconds(values: Floats) -> NDArray[np.int64]:
    """Whole seconds towards zero; what is no time stands for the beginning of time."""
    return np.where(np.isfinite(values), values, 0.0).astype(np.int64)


def _days(values: Floats) -> NDArray[np.datetime64]:
    return _seconds(values).astype("datetime64[s]").astype("datetime64[D]")


def _where_time(values: Floats, result: NDArray[np.int64]) -> Floats:
    return np.where(np.isfinite(values), result, np.nan)


def minute(values: Floats) -> Floats:
    return _where_time(values, _seconds(values) // 60 % 60)


def hour(values: Floats) -> Floats:
    return _where_time(values, _seconds(values) // 3600 % 24)


def day_of_week(values: Floats) -> Floats:
    """0 is Sunday; 1 January 1970 was a Thursday."""
    return _where_time(values, (_seconds(values) // _DAY + 4) % 7)


def day_of_month(values: Floats) -> Floats:
    days = _days(values)
    return _where_time(values, (days - days.astype("datetime64[M]")).astype(np.int64) + 1)


def day_of_year(values: Floats) -> Floats:
    days = _days(values)
    return _where_time(values, (days - days.astype("datetime64[Y]")).astype(np.int64) + 1)


def days_in_month(values: Floats) -> Floats:
    months = _days(values).astype("datetime64[M]")
    lengths = (months + 1).astype("datetime64[D]") - months.astype("datetime64[D]")
    return _where_time(values, lengths.astype(np.int64))


def month(values: Floats) -> Floats:
    return _where_time(values, _days(values).astype("datetime64[M]").astype(np.int64) % 12 + 1)


def year(values: Floats) -> Floats:
    return _where_time(values, _days(values).astype("datetime64[Y]").astype(np.int64) + 1970)


DATES: dict[str, Callable[[Floats], Floats]] = {
    function.__name__: function
    for function in (minute, hour, day_of_week, day_of_month, day_of_year, days_in_month, month, year)
}
