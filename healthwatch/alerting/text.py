"""How series, numbers, places and times are written for people."""

from __future__ import annotations

import math
import re
from datetime import datetime, tzinfo

from healthwatch.alerting.model import LabelSet


def series_text(labels: LabelSet) -> str:
    """A series as Prometheus writes it: `local_norm{param="wq"}`."""
    named = dict(labels)
    metric = named.pop("__name__", "")
    inside = ", ".join(f'{name}="{_escaped(value)}"' for name, value in named.items())
    return f"{metric}{{{inside}}}" if inside or not metric else metric


def reading_text(labels: LabelSet, value: float) -> str:
    """`loss = 2.38`; where a series has no name and no labels, as a sum has none, the number alone."""
    return f"{series_text(labels)} = {number_text(value)}" if labels else number_text(value)


def number_text(value: float) -> str:
    """At most six significant digits; NaN and infinities as Prometheus writes them."""
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "+Inf" if value > 0 else "-Inf"
    return f"{value:.6g}"


def place_text(step: int, micro_step: int | None) -> str:
    return f"step {step}" + (f", micro-step {micro_step}" if micro_step is not None else "")


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\r", "\\r")


def time_text(unix: float, zone: tzinfo | None = None) -> str:
    """A point in time to the second, with its offset from UTC."""
    moment = datetime.fromtimestamp(unix, zone) if zone is not None else datetime.fromtimestamp(unix).astimezone()
    return moment.isoformat(sep=" ", timespec="seconds")


def code(text: str) -> str:
    """A code span whatever the text holds: its fence is longer than any run of backticks inside."""
    runs = [len(run) for run in re.findall("`+", text)]
    fence = "`" * (max(runs, default=0) + 1)
    pad = " " if text.startswith("`") or text.endswith("`") else ""
    return f"{fence}{pad}{one_line(text)}{pad}{fence}"


def one_line(text: str) -> str:
    return " ".join(text.split())
