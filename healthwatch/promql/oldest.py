"""`growth` from two rows: in a window without gaps the oldest finite sample of every series is in its first row."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from healthwatch.promql import ast, training
from healthwatch.promql.moving import Moving, Span
from healthwatch.promql.node import VectorNode
from healthwatch.promql.screens import min_samples_of, range_of
from healthwatch.promql.vector import Moment, Vector

if TYPE_CHECKING:
    from healthwatch.promql.plan import Planner

_GROWTH = training.TRAINING["growth"]


def quick_growth(planner: Planner, node: ast.Call, plain: VectorNode) -> VectorNode:
    """The call computed from two rows, series with gaps the plain way; `plain` where the call is too unusual for it."""
    window, minimum = range_of(node), min_samples_of(node, _GROWTH)
    if window is None or minimum is None:
        return plain
    moving = planner.moving(window)

    def growth(moment: Moment) -> Vector:
        span = moving.at(moment)
        if span is None or span.count < minimum:
            return plain.at(moment)
        return _growth(moving, span, minimum)

    return VectorNode(plain.text, growth, plain.inputs, plain.timeless)


def _growth(moving: Moving, span: Span, minimum: float) -> Vector:
    now, oldest = span.row(span.now), span.row(span.start)
    values = now / oldest
    kept = oldest > 0
    kept &= ~np.isnan(now)
    if span.tick - span.part.ring.tick(span.start) <= span.window / 2:
        kept[:] = False
    which = span.irregular
    if len(which):
        found, defined = training.evaluate(_GROWTH, span.baseline(which), minimum)
        values[which], kept[which] = found, defined
    return Vector(moving.selection.labels.nameless(), values, kept, kept)
