"""The ledger agrees with `advance` on every alert; its rows survive a changed set of series."""

from __future__ import annotations

import gc
import math
import sys
from dataclasses import replace
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from healthwatch.alerting.incident import Subject, worst_alerts
from healthwatch.alerting.ledger import Ledger
from healthwatch.alerting.lifecycle import INACTIVE, Timing, advance, rewind
from healthwatch.alerting.model import Now, Observation, Phase, Verdict
from healthwatch.alerting.verdicts import fold
from healthwatch.promql import Vector
from healthwatch.stream.ticks import Duration

WIDTH = 6
LABELS = tuple(((("expert", str(number)),)) for number in range(WIDTH))

letters = st.sampled_from("bc.")
rows = st.lists(letters, min_size=WIDTH, max_size=WIDTH)
# Each step has one or two ticks, and a permutation of the label sets it knows.
step = st.tuples(st.lists(rows, min_size=0, max_size=2), st.permutations(range(WIDTH)), st.integers(0, WIDTH))
durations = st.builds(
    lambda n, wall: Duration(seconds=n * 2.0) if wall else Duration(steps=n), st.integers(0, 5), st.booleans()
)
timings = st.builds(Timing, durations, st.none() | st.integers(1, 4), durations, st.integers(1, 8))


def vector(row, order, labels, base, *, placed=False):
    states = [row[number] for number in order]
    found = Vector(
        labels,
        np.array([base + number for number in order], float),
        np.array([state == "b" for state in states], bool),
        np.array([state != "." for state in states], bool),
    )
    found.places = found.kept.nonzero()[0] if placed else None
    return found


def observed(ticks, number):
    """What `advance` is given, worked out one label set at a time."""
    seen = [
        (tick, found, found.labels.index(LABELS[number])) for tick, found in ticks if LABELS[number] in found.labels
    ]
    for tick, found, place in seen:
        if found.kept[place]:
            return Observation(Verdict.BREACH, float(found.values[place]), tick)
    known = any(found.known[place] for _, found, place in seen)
    return Observation(Verdict.CLEAR if known else Verdict.NO_DATA)


@pytest.mark.parametrize(
    ("many", "few", "handful"),
    [(0, 0, 64), (2, 0, 0), (2, 0, 64), (3, 2, 2), (4, 3, 64), (100, 100, 0), (100, 100, 64)],
)
@settings(max_examples=150)
@given(st.lists(step, max_size=25), timings, st.integers(0, 25), st.booleans())
def test_the_ledger_agrees_with_advance(many, few, handful, steps, timing, back_at, stable):
    """Whether its alerts go one by one, as columns, both beside each other, or now the one and now the other."""
    with patch.multiple("healthwatch.alerting.ledger", _MANY=many, _FEW=few, _HANDFUL=handful):
        agrees_with_advance(steps, timing, back_at, stable)


def agrees_with_advance(steps, timing, back_at, stable):
    ledger, alerts = Ledger(), [INACTIVE] * WIDTH
    stable_labels = LABELS
    for number, (states, shuffled, width) in enumerate(steps, start=1):
        now = Now(number, 10.0 * number, 1, 2.0 * number)
        order = list(range(WIDTH)) if stable else shuffled[:width]
        labels = stable_labels if stable else tuple(LABELS[each] for each in order)
        ticks = [
            (tick, vector(row, order, labels, 100.0 * number + 10 * tick, placed=number % 3 > 0))
            for tick, row in enumerate(states, 1)
        ]
        expected = []
        tellings = {}
        for each in range(WIDTH):
            before = alerts[each]
            alerts[each], change = advance(before, observed(ticks, each), now, timing)
            if change:
                expected.append((LABELS[each], change))
                told = before if alerts[each] is INACTIVE else alerts[each]
                tellings[each] = (told.micro_step, told.value)
        found = flat(ledger.advance("R", fold(ticks, ledger.result, lambda tick: tick), now, timing))
        assert sorted((transition.labels, transition.reason) for transition in found) == sorted(expected)
        told = {transition.labels: (transition.micro_step, transition.value) for transition in found}
        for each, change in expected:
            assert told[each] == pytest.approx(tellings[LABELS.index(each)], nan_ok=True), change
        if number == back_at:
            to = Now(max(1, number - 2), now.time, 1, now.clock)
            turned = [rewind(alert, to) for alert in alerts]
            alerts = [alert for alert, _ in turned]
            gone = flat(ledger.rewind("R", to))
            expected = [(LABELS[each], change) for each, (_, change) in enumerate(turned) if change]
            assert sorted((transition.labels, transition.reason) for transition in gone) == sorted(expected)
        check(ledger, alerts)


def flat(found):
    return [transition for alike in found for transition in alike]


def check(ledger, alerts):
    standing = {labels: ledger.alert(row) for row, labels in enumerate(ledger.labels)}
    for number, alert in enumerate(alerts):
        held = standing.get(LABELS[number], INACTIVE)
        assert held._replace(value=0.0) == alert._replace(value=0.0)
        if alert is not INACTIVE:
            assert held.value == alert.value or math.isnan(held.value)
    assert len(ledger) == sum(alert.phase is not Phase.INACTIVE for alert in alerts)


def test_what_until_keeps_up_neither_resolves_nor_expires_and_keeps_its_value():
    ledger, timing = Ledger(), Timing(no_data_after=5)
    for number in range(1, 50):
        now = Now(number, float(number))
        state = vector(["b" if number == 1 else "c"] * WIDTH, range(WIDTH), LABELS, 0.0)
        seen = fold([(1, state)], ledger.result, lambda tick: None)
        found = flat(ledger.advance("R", replace(seen, kept_up=(2,)), now, timing))
        if number == 2:
            assert [(transition.labels, transition.reason) for transition in found] == [
                (LABELS[each], "resolved") for each in range(WIDTH) if each != 2
            ]
    assert [ledger.labels[row] for row in ledger.firing()] == [LABELS[2]]
    assert ledger.values(ledger.firing()) == [2.0]


def test_which_series_are_listed_does_not_depend_on_how_the_alerts_are_kept():
    """Nor, therefore, on whether the run was taken up again meanwhile."""
    labels, subject = tuple((("expert", str(number)),) for number in range(30)), Subject("R", "warning", limit=10)
    live, again = Ledger(), Ledger()
    for number, firing in enumerate((range(5, 25), range(25), range(1, 26)), start=1):
        kept = np.isin(np.arange(30), firing)
        seen = fold([(1, Vector(labels, np.zeros(30), kept, np.ones(30, bool)))], (), lambda tick: None)
        if number == 3:
            again.revive(*live.live())
            again.advance("R", seen, Now(number, 1.0), Timing())
        live.advance("R", seen, Now(number, 1.0), Timing())
    assert [live.labels[row] for row in live.firing()] == [labels[place] for place in range(1, 26)]
    assert worst_alerts(live, live.firing(), subject) == worst_alerts(again, again.firing(), subject)


def python_calls(function):
    """How many functions of Python one call takes; those that somebody runs at a garbage collection are not its own."""
    calls = []
    gc.disable()
    sys.setprofile(lambda frame, event, argument: calls.append(event) if event == "call" else None)
    try:
        function()
    finally:
        sys.setprofile(None)
        gc.enable()
    return len(calls)


def test_many_alerts_take_as_many_calls_as_a_few():
    """Whether they go on, begin, fire or end."""
    counts = {}
    for count in (20, 5000):
        labels = tuple((("param", str(number)),) for number in range(count))
        ledger, timing, counts[count] = Ledger(), Timing(Duration(steps=2), keep_firing_for=Duration(steps=1)), []
        for number, breaches in enumerate((True, True, True, True, False, False, False), start=1):
            kept = np.full(count, breaches)
            state = Vector(labels, np.arange(count, dtype=float), kept, np.ones(count, bool))
            seen = fold([(1, state)], (), lambda tick: None)
            counts[count].append(python_calls(lambda: ledger.advance("R", seen, Now(number, 1.0), timing)))  # noqa: B023
        assert len(ledger) == 0
    assert counts[20] == counts[5000]
