"""Conditions on what does not come."""

from __future__ import annotations

from collections.abc import Iterable

from healthwatch.rulefile.conditions.spec import (
    SERIES,
    Arguments,
    Condition,
    Expansion,
    Issue,
    Parameter,
    Test,
    number,
    steps,
)


def _missing(args: Arguments) -> Expansion:
    known = f"present_over_time({args.window(name='known')})"
    text = f"{known} unless present_over_time({args.window()})"
    return Expansion((Test(text, text, known),), negatable=False)


def _check_missing(args: Arguments) -> Iterable[Issue]:
    if args["known"] <= args["window"]:
        message = f'"known" ({args["known"]}) must be longer than "window" ({args["window"]})'
        yield Issue("known" if args["known"] != 200 else "window", message, kind="out of range")


MISSING = Condition(
    name="missing",
    summary="A series that used to come and no longer does.",
    finds="A metric that vanishes from the log, a rank or a layer that stops reporting while the training goes on.",
    formula="a sample in the last `known` steps and none in the last `window`",
    source="PromQL's `unless`; `absent()` names no series, and is false for ever once its metric has come.",
    example={"metric": "loss", "window": 50, "known": 200},
    not_for="A training that stands still: no step, no evaluation. That is `stalled`.",
    labels="those of the series",
    value="1",
    parameters=(
        *SERIES,
        steps("window", "Breach when there was no sample for this many steps.", 50),
        steps("known", "For how many steps a series is remembered; afterwards it is forgotten.", 200),
    ),
    expand=_missing,
    check=_check_missing,
)


def _stalled(args: Arguments) -> Expansion:
    value = "vector(stalled_seconds())"
    test = Test.of(value, ">", number(args["after"]))
    return Expansion((test,), shape="none", negatable=False)


STALLED = Condition(
    name="stalled",
    summary="No step has ended for a while, by the wall clock.",
    finds="A training that hangs: a collective that waits for a dead rank, a data loader that has nothing.",
    formula="seconds since the last step ended > after",
    source="The wall clock of the source; recorded with the transition that it causes, so that a replay agrees.",
    example={"after": "10m"},
    not_for=(
        "Slow steps: compare `step_time` with its own past. Choose `after` above the longest checkpoint and evaluation."
    ),
    labels="none",
    value="seconds",
    parameters=(Parameter("after", "wall", "Breach after this time, such as 10m.", required=True, example="10m"),),
    expand=_stalled,
)

CONDITIONS = (MISSING, STALLED)
