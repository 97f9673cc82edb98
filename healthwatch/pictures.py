"""A series around the step at which an alert fired, as a PNG. Needs the `plots` extra."""

from __future__ import annotations

import io
import json
import math
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from importlib.util import find_spec
from typing import Any

SECONDS = 30.0  # a picture that takes longer is left out

_SIZE = (8.0, 3.6)  # inches
_DPI = 110
_COLOURS = ("#1f5fa8", "#2f8f6b", "#8a5fa8")
_ALERT = "#c0392b"
_FONT = "DejaVu Sans"
_FALLBACKS = (
    *("Noto Sans CJK SC", "Source Han Sans SC", "WenQuanYi Micro Hei", "WenQuanYi Zen Hei", "Droid Sans Fallback"),
    *("Microsoft YaHei", "PingFang SC", "SimHei", "Noto Emoji", "Symbola"),
)


_drawn: dict[str, bytes] = {}
_KEPT = 4  # pictures: one for all URLs of a receiver


def drawn_apart(plot: str, give_up: Callable[[], bool] = lambda: False) -> bytes | None:
    """The PNG of a plot given as JSON, drawn in a process of its own; None where matplotlib is missing or fails.

    Drawing takes most of a second of pure Python, which would hold up the training's own thread. `give_up` is asked
    now and then whether there is still time.
    """
    if plot not in _drawn and not give_up() and find_spec("matplotlib") is not None:
        found = _draw_apart(plot, give_up)
        if found:
            for oldest in list(_drawn)[: -_KEPT + 1]:
                _drawn.pop(oldest, None)
            _drawn[plot] = found
    return _drawn.get(plot)


def _draw_apart(plot: str, give_up: Callable[[], bool]) -> bytes | None:
    command = [sys.executable, "-c", "from healthwatch.pictures import main; main()"]
    with tempfile.TemporaryFile() as asked, tempfile.TemporaryFile() as found:
        asked.write(plot.encode())
        asked.seek(0)
        try:
            child = subprocess.Popen(command, stdin=asked, stdout=found, stderr=subprocess.DEVNULL)
        except OSError:
            return None
        end = time.monotonic() + SECONDS
        while child.poll() is None:
            if give_up() or time.monotonic() > end:
                child.kill()
                child.wait()
                return None
            time.sleep(0.05)
        found.seek(0)
        return found.read() if child.returncode == 0 else None


def main() -> None:
    """Plot as JSON on standard input, PNG on standard output."""
    sys.stdout.buffer.write(draw(json.load(sys.stdin)))


def draw(plot: Mapping[str, Any]) -> bytes:
    """A PNG of `{"title", "fired", "series": [{"name", "steps", "values", "threshold"}]}`; steps may be fractions.

    Values that are not finite are the texts NaN, +Inf and -Inf; they are marked at the upper edge.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure
    from matplotlib.ticker import MaxNLocator

    families = _families()
    figure = Figure(figsize=_SIZE, dpi=_DPI, layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    for colour, series in zip(_COLOURS, plot["series"], strict=False):
        _series(axes, series, colour)
    bounds = [each["threshold"] for each in plot["series"]]
    for colour, bound in zip(_COLOURS if len(set(bounds)) > 1 else (_ALERT,), bounds, strict=False):
        if bound is not None:
            axes.axhline(bound, color=colour, linestyle="--", linewidth=1.0, label=f"threshold {bound:.4g}")
    axes.axvline(plot["fired"], color=_ALERT, linewidth=1.2, alpha=0.8, label=f"alert, step {plot['fired']:.7g}")
    if _wide([float(value) for series in plot["series"] for value in series["values"]]):
        axes.set_yscale("log")
    axes.set_title(_drawable(_short(plot["title"], 90), families), fontsize=10, loc="left", family=families)
    axes.set_xlabel("step", fontsize=9)
    axes.tick_params(labelsize=8)
    axes.grid(visible=True, alpha=0.25)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    legend = axes.legend(fontsize=7, loc="upper left", framealpha=0.85)
    for text in legend.get_texts():
        text.set(text=_drawable(text.get_text(), families), family=families)
    found = io.BytesIO()
    figure.savefig(found, format="png")
    return found.getvalue()


def _families() -> list[str]:
    """The font that comes with matplotlib, then those of this machine that have Chinese or emoji."""
    from matplotlib.font_manager import fontManager

    installed = {font.name for font in fontManager.ttflist}
    return [_FONT, *(name for name in _FALLBACKS if name in installed)]


def _drawable(text: str, families: list[str]) -> str:
    """The text with an ellipsis for what none of the fonts has: a row of empty boxes says less."""
    from matplotlib.font_manager import FontProperties, findfont, get_font

    known = {code for name in families for code in get_font(findfont(FontProperties(family=name))).get_charmap()}
    return re.sub("\0+", "…", "".join(each if ord(each) in known else "\0" for each in text))


def _series(axes: Any, series: Mapping[str, Any], colour: str) -> None:
    steps, values = series["steps"], [float(value) for value in series["values"]]
    finite = [value if math.isfinite(value) else math.nan for value in values]
    name = _short(series["name"], 70)
    axes.plot(steps, finite, color=colour, linewidth=1.3, marker="." if len(steps) < 60 else None, label=name)
    wild = [step for step, value in zip(steps, values, strict=True) if not math.isfinite(value)]
    if wild:
        edge = axes.get_xaxis_transform()
        marks = [0.96] * len(wild)
        axes.plot(wild, marks, "x", color=colour, markersize=7, transform=edge, label="NaN or infinite")


def _wide(values: list[float]) -> bool:
    """Whether a spike would press everything else to the ground."""
    finite = [value for value in values if math.isfinite(value)]
    return len(finite) > 2 and min(finite) > 0 and max(finite) > 50 * sorted(finite)[len(finite) // 2]


def _short(text: str, most: int) -> str:
    text = text.replace("$", r"\$")  # no formulas
    return text if len(text) <= most else text[: most // 2] + " … " + text[-(most // 2 - 3) :]
