"""`max_over_time(...) == 0` and its like: one sample on the wrong side of the bound proves its series clear.

Nearly every series has one in the newest row, and the rest are looked up row by row until none is left.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from healthwatch.promql import ast
from healthwatch.promql.node import VectorNode
from healthwatch.promql.operators import COMPARISON, MIRRORED
from healthwatch.promql.over_time import OVER_TIME
from healthwatch.promql.vector import Moment, Vector, everything, nothing
from healthwatch.promql.window import Window
from healthwatch.stream.ring import CLEAN, Floats

if TYPE_CHECKING:
    from healthwatch.promql.plan import Place, Planner

_PROOF = {
    ("max_over_time", "=="): ">",
    ("max_over_time", "<="): ">",
    ("max_over_time", "<"): ">=",
    ("min_over_time", "=="): "<",
    ("min_over_time", ">="): "<",
    ("min_over_time", ">"): "<=",
}
"""How a sample that proves a series clear compares with the bound."""

_MOST_LEFT = 1 / 8


def narrowed(planner: Planner, node: ast.Binary, plain: VectorNode, place: Place) -> VectorNode:
    """The comparison decided from the newest row on, or `plain` if it is none of these."""
    left, operator, right = ast.unwrapped(node.left), node.op, ast.unwrapped(node.right)
    if isinstance(left, ast.Number) and operator in MIRRORED:
        left, operator, right = right, MIRRORED[operator], left
    if not isinstance(left, ast.Call) or not isinstance(right, ast.Number) or node.bool_modifier:
        return plain
    proof = _PROOF.get((left.function, operator))
    if proof is None or not isinstance(ast.unwrapped(left.args[0]), ast.MatrixSelector):
        return plain
    source, function, bound = planner.window(left.args[0], place), left.function, right.value
    disproved, holds = COMPARISON[proof], COMPARISON[operator]

    def decide(moment: Moment) -> Vector:
        window = source.at(moment)
        if window.present is not None or window.state > CLEAN or not len(window.ticks):
            return plain.at(moment)
        which = (~disproved(window.blocks[-1][-1], bound)).nonzero()[0]
        if len(which) > _MOST_LEFT * len(window.labels):
            return plain.at(moment)
        labels = window.labels.nameless()
        for row in _earlier(window) if len(which) else ():
            which = which[~disproved(row[which], bound)]
            if not len(which):
                break
        if not len(which):
            return labels.clear()
        blocks = tuple(block.take(which, axis=1) for block in window.blocks)
        found, _ = OVER_TIME[function](replace(window, blocks=blocks, total=None, _whole=[], _packed=[]))
        values, kept = np.zeros(len(labels)), nothing(len(labels)).copy()
        values[which], kept[which] = found, holds(found, bound)
        return Vector(labels, values, kept, everything(len(labels)))

    return VectorNode(plain.text, decide, plain.inputs, plain.timeless)


def _earlier(window: Window) -> list[Floats]:
    """The rows before the newest, newest first."""
    return [row for block in reversed(window.blocks) for row in block[::-1]][1:]
