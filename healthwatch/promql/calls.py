"""Function calls: for each kind of function, how its node is built."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from healthwatch.promql import ast, relabel, training
from healthwatch.promql.baselines import baseline_source
from healthwatch.promql.check import type_of
from healthwatch.promql.functions import ELEMENTWISE
from healthwatch.promql.node import VectorNode, WindowNode
from healthwatch.promql.oldest import quick_growth
from healthwatch.promql.over_time import KEEPS_NAME, OVER_TIME, OverTime
from healthwatch.promql.screens import range_of
from healthwatch.promql.vector import (
    FINITE,
    NO_LABELS,
    Labels,
    Moment,
    Vector,
    both,
    everything,
    full_vector,
    nothing,
    scalar_vector,
)
from healthwatch.promql.window import Window
from healthwatch.stream.ring import Floats, Mask
from healthwatch.stream.series import METRIC_NAME, label_set
from healthwatch.stream.ticks import TICKS_PER_STEP

if TYPE_CHECKING:
    from healthwatch.promql.plan import Place, Planner

Builder: TypeAlias = Callable[["Planner", ast.Call, "Place"], VectorNode]

BUILDERS: dict[str, Builder] = {}
"""Functions that are more than arithmetic on values or on a window."""


def build(planner: Planner, node: ast.Call, place: Place) -> VectorNode:
    name = node.function
    if name in BUILDERS:
        return BUILDERS[name](planner, node, place)
    if name in ELEMENTWISE:
        return _elementwise(planner, node, place)
    if name in training.TRAINING:
        return _training(planner, node, place)
    return _over_time(planner, node, place)


def _builder(*names: str) -> Callable[[Builder], Builder]:
    def enter(builder: Builder) -> Builder:
        BUILDERS.update(dict.fromkeys(names, builder))
        return builder

    return enter


def _numbers(planner: Planner, args: tuple[ast.Expr, ...], place: Place) -> tuple[VectorNode, ...]:
    return tuple(planner.vector(each, place) for each in args)


def _timeless(inputs: tuple[VectorNode | WindowNode, ...]) -> bool:
    return all(each.timeless for each in inputs)


def _elementwise(planner: Planner, node: ast.Call, place: Place) -> VectorNode:
    """A function of one value at a time; the date functions take the evaluation's time where they have no argument."""
    function = ELEMENTWISE[node.function]
    numbers = _numbers(planner, node.args[1:], place)
    source = planner.vector(node.args[0], place) if node.args else VectorNode("time()", _time)

    def apply(moment: Moment) -> Vector:
        vector = source.at(moment)
        values = function(vector.values, *(each.at(moment).scalar for each in numbers))
        labels = vector.labels.nameless()
        if values is None:
            return Vector(labels, vector.values, nothing(len(labels)), vector.known)
        return Vector(labels, values, vector.kept, vector.known)

    return VectorNode(node.function, apply, (source, *numbers), _timeless((source, *numbers)))


def _over_time(planner: Planner, node: ast.Call, place: Place) -> VectorNode:
    function = OVER_TIME[node.function]
    window_arg = next(each for each in node.args if type_of(each) == "matrix")
    others = tuple(each for each in node.args if each is not window_arg)
    source, numbers = planner.window(window_arg, place), _numbers(planner, others, place)
    keeps_name = node.function in KEEPS_NAME
    needs_now = node.function == "predict_linear"

    def apply(moment: Moment) -> Vector:
        window = source.at(moment)
        arguments = [each.at(moment).scalar for each in numbers]
        if needs_now:
            arguments.append(moment.tick / TICKS_PER_STEP)
        return over_window(function, window, window.labels if keeps_name else window.labels.nameless(), arguments)

    return VectorNode(node.function, apply, (source, *numbers), _timeless((source, *numbers)))


def over_window(function: OverTime, window: Window, labels: Labels, arguments: list[float]) -> Vector:
    there = window.any()
    if not there.any():
        return Vector(labels, np.zeros(len(labels)), there, _known(window, there))
    values, kept = function(window, *arguments)
    kept = both(there, kept)
    return Vector(labels, values, kept, _known(window, kept))


def _known(window: Window, kept: Mask) -> Mask:
    """Beside what has a result: what the inner expression of a subquery found clear."""
    return kept if window.known is None else kept | (window.known & ~window.any())


def _training(planner: Planner, node: ast.Call, place: Place) -> VectorNode:
    function = training.TRAINING[node.function]
    source, inputs = baseline_source(planner, node.args[0], place)
    numbers = _numbers(planner, node.args[1:], place)

    def apply(moment: Moment) -> Vector:
        labels, baseline = source(moment)
        minimum = numbers[0].at(moment).scalar if numbers else function.min_samples
        if baseline is None:
            none = nothing(len(labels))
            return Vector(labels.nameless(), np.zeros(len(labels)), none, none)
        values, kept = training.evaluate(function, baseline, minimum)
        return Vector(labels.nameless(), values, kept, kept)

    plain = VectorNode(node.function, apply, (*inputs, *numbers), _timeless((*inputs, *numbers)))
    if (window := range_of(node)) is not None:
        plain.rows = planner.selection(window.selector).rows_kept
    return quick_growth(planner, node, plain) if node.function == "growth" and planner.shortcuts else plain


@_builder("nonfinite")
def _nonfinite(planner: Planner, node: ast.Call, place: Place) -> VectorNode:
    """Keeps NaN and infinities, names too; a finite sample is clear."""
    source = planner.vector(node.args[0], place)

    def nonfinite(moment: Moment) -> Vector:
        vector = source.at(moment)
        if vector.grade >= FINITE and vector.complete():
            return vector.labels.clear()
        if vector.grade >= FINITE:
            return Vector(vector.labels, vector.values, nothing(len(vector.kept)), vector.known)
        finite = np.isfinite(vector.values)
        return replace(vector, kept=vector.kept & ~finite, order=None)

    return VectorNode("nonfinite", nonfinite, (source,), source.timeless)


def _time(moment: Moment) -> Vector:
    return scalar_vector(moment.tick / TICKS_PER_STEP)


def _leaf(name: str, compute: Callable[[Moment], Vector], *, timeless: bool = True) -> None:
    BUILDERS[name] = lambda *_: VectorNode(f"{name}()", compute, timeless=timeless)


_PI = scalar_vector(math.pi)

_leaf("time", _time)
_leaf("pi", lambda _: _PI)
_leaf("start", lambda moment: scalar_vector(moment.start / TICKS_PER_STEP), timeless=False)
_leaf("end", lambda moment: scalar_vector(moment.end / TICKS_PER_STEP), timeless=False)
_leaf("step", lambda moment: scalar_vector(moment.step / TICKS_PER_STEP), timeless=False)
_leaf("range", lambda moment: scalar_vector((moment.end - moment.start) / TICKS_PER_STEP), timeless=False)


@_builder("stalled_seconds")
def _stalled_seconds(planner: Planner, *_: object) -> VectorNode:
    clock = planner.clock
    return VectorNode("stalled_seconds()", lambda _: scalar_vector(clock()), timeless=False)


@_builder("min_of", "max_of")
def _of(planner: Planner, node: ast.Call, place: Place) -> VectorNode:
    choose = np.minimum if node.function == "min_of" else np.maximum
    left, right = _numbers(planner, node.args, place)
    return VectorNode(
        node.function,
        lambda moment: full_vector(NO_LABELS, choose(left.at(moment).values, right.at(moment).values)),
        (left, right),
        _timeless((left, right)),
    )


@_builder("vector")
def _vector(planner: Planner, node: ast.Call, place: Place) -> VectorNode:
    return planner.vector(node.args[0], place)


@_builder("scalar")
def _scalar(planner: Planner, node: ast.Call, place: Place) -> VectorNode:
    """The value of a vector's only element, NaN if there is none or more than one."""
    source = planner.vector(node.args[0], place)

    def only(moment: Moment) -> Vector:
        vector = source.at(moment)
        found = np.flatnonzero(vector.kept)
        return scalar_vector(float(vector.values[found[0]]) if len(found) == 1 else math.nan)

    return VectorNode("scalar", only, (source,), source.timeless)


@_builder("absent", "absent_over_time")
def _absent(planner: Planner, node: ast.Call, place: Place) -> VectorNode:
    """1 where nothing is kept; always known."""
    labels = Labels((absent_labels(node.args[0]),))
    if node.function == "absent":
        source = planner.vector(node.args[0], place)

        def empty(moment: Moment) -> bool:
            return not source.at(moment).kept.any()

        return VectorNode("absent", lambda moment: _one_if(labels, empty(moment)), (source,), source.timeless)
    window = planner.window(node.args[0], place)

    def empty_window(moment: Moment) -> bool:
        return not window.at(moment).any().any()

    return VectorNode(node.function, lambda moment: _one_if(labels, empty_window(moment)), (window,), window.timeless)


def _one_if(labels: Labels, holds: bool) -> Vector:
    return Vector(labels, np.ones(1), everything(1) if holds else nothing(1), everything(1))


def absent_labels(node: ast.Expr) -> tuple[tuple[str, str], ...]:
    """The labels that the selector's `=` matchers give for sure; one that is matched twice is left out."""
    node = ast.unwrapped(node)
    selector = node.selector if isinstance(node, ast.MatrixSelector) else node
    if not isinstance(selector, ast.VectorSelector):
        return ()
    found: dict[str, str] = {}
    seen: set[str] = set()
    for matcher in selector.matchers:
        if matcher.op == "=" and matcher.name not in seen:
            found[matcher.name] = matcher.value
            seen.add(matcher.name)
        else:
            found.pop(matcher.name, None)
    return label_set(found)


@_builder("timestamp")
def _timestamp(planner: Planner, node: ast.Call, place: Place) -> VectorNode:
    """Of a selector: when its samples were taken; of anything else: the time of the evaluation."""
    source = planner.vector(node.args[0], place)
    times = planner.sample_times(node.args[0], place)

    def timestamp(moment: Moment) -> Vector:
        vector = source.at(moment)
        seconds: Floats = times(moment) / TICKS_PER_STEP * np.ones(len(vector.values))
        return Vector(vector.labels.nameless(), seconds, vector.kept, vector.known)

    return VectorNode("timestamp", timestamp, (source,), source.timeless)


def _text(node: ast.Expr) -> str:
    node = ast.unwrapped(node)
    if not isinstance(node, ast.String):
        raise TypeError(f"{type(node).__name__} is no string")
    return node.value


@_builder("label_replace", "label_join")
def _relabel(planner: Planner, node: ast.Call, place: Place) -> VectorNode:
    source = planner.vector(node.args[0], place)
    make = relabel.label_replace if node.function == "label_replace" else relabel.label_join
    texts = [_text(each) for each in node.args[1:]]
    change = relabel.Relabel(make(*texts), texts[0] == METRIC_NAME)
    return VectorNode(node.function, lambda moment: change(source.at(moment)), (source,), source.timeless)


@_builder("sort", "sort_desc", "sort_by_label", "sort_by_label_desc")
def _sort(planner: Planner, node: ast.Call, place: Place) -> VectorNode:
    source = planner.vector(node.args[0], place)
    order: Callable[[Vector], Vector]
    if node.function in ("sort", "sort_desc"):
        order = relabel.sort if node.function == "sort" else relabel.sort_desc
    else:
        names = tuple(_text(each) for each in node.args[1:])
        order = relabel.SortByLabel(names, node.function.endswith("_desc"))
    return VectorNode(node.function, lambda moment: order(source.at(moment)), (source,), source.timeless)
