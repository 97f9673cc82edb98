"""Small cases written by hand: the rules of the life of an alert, and the places where we part from Prometheus."""

from __future__ import annotations

from dialects import AlertRule, Case

NAN = float("nan")


def _one(name: str, values: list[float], expr: str = "x > 5", **timing: int) -> Case:
    return Case(name, {'x{a="1"}': values}, [AlertRule("R", expr, **timing)])


SAME = (
    _one("fires at once without for", [1, 9, 9, 1, 9, 1]),
    _one("for 3 takes four breaches in a row", [1, 9, 9, 9, 1, 9, 9, 9, 9, 9, 1], for_=3),
    _one("keep_firing_for counts from the first clear", [9, 1, 1, 1, 1, 9, 1, 9, 1, 1, 1, 1], keep_firing_for=3),
    _one("a breach in between starts it anew", [9, 1, 9, 1, 1, 1, 9], keep_firing_for=2),
    _one("pending is not kept", [9, 1, 9, 9, 9, 1, 1, 1, 1], for_=2, keep_firing_for=2),
    _one("an infinite value breaches", [1, float("inf"), 1]),
    _one("absent never ends", [1, 2, 3], 'absent(x{a="2"})'),
    _one("a constant", [1, 2, 3], "vector(time() > bool 1) > 0", for_=0),
)

APART = (
    _one("a NaN holds a firing alert", [9, 9, NAN, 9, 1]),
    _one("a NaN does not interrupt pending", [9, NAN, 9, 9, 1], for_=3),
    Case(
        "two metrics under one rule are two alerts",
        {'x{a="1"}': [1, 9, 9], 'y{a="1"}': [9, 9, 1]},
        [AlertRule("R", '{__name__=~"x|y"} > 5')],
    ),
)
"""Rules R4 and R7: no data holds, and a name that the result still has is part of the identity."""

OURS = {
    "a NaN holds a firing alert": {'R{__name__="x", a="1"}': "ffff."},
    "a NaN does not interrupt pending": {'R{__name__="x", a="1"}': "pppf."},
    "two metrics under one rule are two alerts": {
        'R{__name__="x", a="1"}': ".ff",
        'R{__name__="y", a="1"}': "ff.",
    },
}
"""What we make of the cases in which we part."""
