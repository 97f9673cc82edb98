"""Where the functions of our own take their samples from: now, and the rows before it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from healthwatch.promql import ast
from healthwatch.promql.node import WindowNode
from healthwatch.promql.select import Selection, newest_row, row_at, window_of
from healthwatch.promql.training import MIN_ROWS, Baseline
from healthwatch.promql.vector import Labels, Moment
from healthwatch.promql.window import Window

if TYPE_CHECKING:
    from healthwatch.promql.plan import Place, Planner

_BEFORE_ALL = -(1 << 62)

Source: TypeAlias = Callable[[Moment], "tuple[Labels, Baseline | None]"]
"""The series, and their samples; None where the selector has no row at all yet."""


def baseline_source(planner: Planner, node: ast.Expr, place: Place) -> tuple[Source, tuple[WindowNode, ...]]:
    """The samples of a range argument, and the nodes they come from."""
    from healthwatch.promql.plan import time_of

    node = ast.unwrapped(node)
    if isinstance(node, ast.MatrixSelector):
        selection, when, window = planner.selection(node.selector), time_of(node.selector), node.window
        planner.demand(node.selector, place, window, MIN_ROWS + 1)
        return (lambda moment: (selection.labels, of_selection(selection, when(moment), window))), ()
    source, width = planner.window(node, place), window_ticks(node)
    return (lambda moment: _of_window(source.at(moment), width)), (source,)


def window_ticks(node: ast.Expr) -> int:
    """How many ticks a range expression spans."""
    match node:
        case ast.MatrixSelector(window=window) | ast.Subquery(window=window):
            return window
        case ast.Paren(expr=inner) | ast.Call(args=(inner,)):
            return window_ticks(inner)
        case _:
            raise TypeError(f"{type(node).__name__} is no range of samples")


def of_selection(selection: Selection, tick: int, window: int) -> Baseline | None:
    """The selector's row at a tick and what lies before it: `window` ticks, or `MIN_ROWS` rows if that is more."""
    row = row_at(selection, tick)
    if row is None:
        return None
    after = tick - window
    furthest = selection.rows_back(row - 1, MIN_ROWS)
    after = min(after, _BEFORE_ALL if furthest is None else furthest - 1)
    now = newest_row(selection, row)
    before = window_of(selection, after, row - 1)
    return Baseline(now.values, before.values, lambda: before.ticks, row, window)


def _of_window(window: Window, width: int) -> tuple[Labels, Baseline | None]:
    """The last row of a window that has a sample is now."""
    if window.present is None:
        last = len(window.ticks) - 1
    else:
        rows = np.flatnonzero(window.present.any(axis=1))
        last = int(rows[-1]) if len(rows) else -1
    if last < 0:
        return window.labels, None
    values = window.values if window.present is None else np.where(window.present, window.values, np.nan)
    before = values[:last]
    tick = int(window.ticks[last])
    return window.labels, Baseline(values[last], before, lambda: window.ticks[:last], tick, width)
