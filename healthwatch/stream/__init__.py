"""Samples on the step axis: ticks, series, frames and their history."""

from __future__ import annotations

from healthwatch.stream.frame import Column, Frame
from healthwatch.stream.history import ABSENT, STALE, History
from healthwatch.stream.series import LabelSet, Series, SeriesTable
from healthwatch.stream.ticks import TICKS_PER_STEP, Duration, parse_duration, step_of, tick_of

__all__ = [
    "ABSENT",
    "STALE",
    "TICKS_PER_STEP",
    "Column",
    "Duration",
    "Frame",
    "History",
    "LabelSet",
    "Series",
    "SeriesTable",
    "parse_duration",
    "step_of",
    "tick_of",
]
