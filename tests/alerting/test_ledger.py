"""The ledger agrees with `advance` on every alert; its rows survive a changed set of series."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from healthwatch.alerting.ledger import Ledger
from healthwatch.alerting.lifecycle import INACTIVE, Timing, advance, rewind
from healthwatch.alerting.model import Now, Observation, Phase, Verdict
from healthwatch.alerting.verdicts import fold
from healthwatch.promql import Vector
from healthwatch.stream.ticks import Duration

WIDTH = 4
LABELS = tuple(((("expert", str(number)),)) for number in range(WIDTH))

letters = st.sampled_from("bc.")
rows = st.lists(letters, min_size=WIDTH, max_size=WIDTH)
# Each step has one or two ticks, and a permutation of the label sets it knows.
step = st.tuples(st.lists(rows, min_size=0, max_size=2), st.permutations(range(WIDTH)), st.integers(1, WIDTH))
durations = st.builds(
    lambda n, wall: Duration(seconds=n * 2.0) if wall else Duration(steps=n), st.integers(0, 5), st.booleans()
)
timings = st.builds(Timing, durations, st.none() | st.integers(1, 4), durations, st.integers(1, 8))


def vector(row, order, labels, base):
    states = [row[number] for number in order]
    return Vector(
        labels,
        np.array([base + number for number in order], float),
        np.array([state == "b" for state in states]),
        np.array([state != "." for state in states]),
    )


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


@settings(max_examples=300)
@given(st.lists(step, max_size=25), timings, st.integers(0, 25), st.booleans())
def test_the_ledger_agrees_with_advance(steps, timing, back_at, stable):
    ledger, alerts = Ledger(), [INACTIVE] * WIDTH
    stable_labels = LABELS
    for number, (states, shuffled, width) in enumerate(steps, start=1):
        now = Now(number, 10.0 * number, 1, 2.0 * number)
        order = list(range(WIDTH)) if stable else shuffled[:width]
        labels = stable_labels if stable else tuple(LABELS[each] for each in order)
        ticks = [(tick, vector(row, order, labels, 100.0 * number + 10 * tick)) for tick, row in enumerate(states, 1)]
        expected = []
        for each in range(WIDTH):
            alerts[each], change = advance(alerts[each], observed(ticks, each), now, timing)
            if change:
                expected.append((LABELS[each], change))
        found = ledger.advance("R", fold(ticks, ledger.result, lambda tick: tick), now, timing)
        assert sorted((transition.labels, transition.reason) for transition in found) == sorted(expected)
        if number == back_at:
            to = Now(max(1, number - 2), now.time, 1, now.clock)
            alerts = [rewind(alert, to)[0] for alert in alerts]
            ledger.rewind("R", to)
        check(ledger, alerts)


def check(ledger, alerts):
    standing = {labels: ledger.alert(row) for row, labels in enumerate(ledger.labels)}
    for number, alert in enumerate(alerts):
        held = standing.get(LABELS[number], INACTIVE)
        assert replace(held, value=0.0) == replace(alert, value=0.0)
        if alert is not INACTIVE:
            assert held.value == alert.value or math.isnan(held.value)
    assert len(ledger) == sum(alert.phase is not Phase.INACTIVE for alert in alerts)


def test_what_until_keeps_up_neither_resolves_nor_expires_and_keeps_its_value():
    ledger, timing = Ledger(), Timing(no_data_after=5)
    for number in range(1, 50):
        now = Now(number, float(number))
        state = vector(["b" if number == 1 else "c"] * WIDTH, range(WIDTH), LABELS, 0.0)
        seen = fold([(1, state)], ledger.result, lambda tick: None)
        found = ledger.advance("R", replace(seen, kept_up=(2,)), now, timing)
        if number == 2:
            assert [(transition.labels, transition.reason) for transition in found] == [
                (LABELS[each], "resolved") for each in (0, 1, 3)
            ]
    assert list(ledger.firing()) == [2]
    assert ledger.values(ledger.firing()) == [2.0]


@pytest.mark.parametrize("count", [5000])
def test_many_alerts_that_go_on_are_held_without_one_call_of_advance(count, monkeypatch):
    labels = tuple((("param", str(number)),) for number in range(count))
    state = Vector(labels, np.arange(count, dtype=float), np.ones(count, bool), np.ones(count, bool))
    ledger = Ledger()
    assert len(ledger.advance("R", fold([(1, state)], (), lambda tick: None), Now(1, 1.0), Timing())) == count
    monkeypatch.setattr("healthwatch.alerting.ledger.advance", None)
    assert ledger.advance("R", fold([(1, state)], (), lambda tick: None), Now(2, 2.0), Timing()) == []
    assert len(ledger) == count
