"""How Go and Prometheus print numbers, so that annotations read exactly as Prometheus would write them."""

from __future__ import annotations

import math
from decimal import Decimal

_LARGE = ("k", "M", "G", "T", "P", "E", "Z", "Y")
_SMALL = ("m", "u", "n", "p", "f", "a", "z", "y")


def go_float(value: float) -> str:
    """`%v` of a float64: the shortest digits that read back, with an exponent below 1e-4 and from 1e+06 on.

    The bounds are those of `strconv.FormatFloat(value, 'g', -1, 64)`.
    """
    if not math.isfinite(value):
        return _special(value)
    if value == 0:
        return "-0" if math.copysign(1.0, value) < 0 else "0"
    number = Decimal(repr(value)).normalize()
    exponent = number.adjusted()
    if -4 <= exponent < 6:
        return f"{number:f}"
    digits = "".join(map(str, number.as_tuple().digits))
    mantissa = digits[0] + ("." + digits[1:] if len(digits) > 1 else "")
    return f"{'-' if number < 0 else ''}{mantissa}e{exponent:+03d}"


def go_verb(flags: str, width: str, precision: str | None, verb: str, operand: float | str) -> str:
    """One `printf` verb: e, f, g, E, G, v of a number, s and v of a text."""
    if isinstance(operand, str):
        shown = operand if precision is None else operand[: int(precision)]
        return _pad(shown, flags.replace("0", ""), width)
    if not math.isfinite(operand):
        return _pad(_special(operand), flags.replace("0", ""), width)
    if precision is None and verb in "gGv":
        shown = go_float(operand)
        shown = shown.upper() if verb == "G" else shown
        return _pad(_signed(shown, flags), flags, width)
    places = "6" if precision is None else precision
    return _pad(_signed(f"%.{places}{'g' if verb == 'v' else verb}" % operand, flags), flags, width)


def humanize(value: float) -> str:
    """Four significant digits and an SI prefix: 1234567 is `1.235M`."""
    if value == 0 or not math.isfinite(value):
        return _four(value)
    prefix = ""
    if abs(value) >= 1:
        for prefix_above in _LARGE:
            if abs(value) < 1000:
                break
            prefix, value = prefix_above, value / 1000
        return _four(value) + prefix
    for prefix_below in _SMALL:
        if abs(value) >= 1:
            break
        prefix, value = prefix_below, value * 1000
    return _four(value) + prefix


def humanize_percentage(value: float) -> str:
    """A ratio as a percentage: 0.1234 is `12.34%`."""
    return _four(value * 100) + "%"


def _four(value: float) -> str:
    return f"{value:.4g}" if math.isfinite(value) else _special(value)


def _special(value: float) -> str:
    if math.isnan(value):
        return "NaN"
    return "+Inf" if value > 0 else "-Inf"


def _signed(shown: str, flags: str) -> str:
    if shown.startswith("-"):
        return shown
    return "+" + shown if "+" in flags else " " + shown if " " in flags else shown


def _pad(shown: str, flags: str, width: str) -> str:
    wanted = int(width or 0)
    if "-" in flags:
        return shown.ljust(wanted)
    return shown.zfill(wanted) if "0" in flags else shown.rjust(wanted)
