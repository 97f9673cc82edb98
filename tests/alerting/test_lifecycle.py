"""`advance`: only legal changes, firing only after the breaches it needs, and no data that never counts either way."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from healthwatch.alerting.lifecycle import INACTIVE, Timing, advance, rewind
from healthwatch.alerting.model import Alert, Now, Observation, Phase, Verdict
from healthwatch.stream.ticks import Duration

BREACH, CLEAR, NO_DATA = Verdict.BREACH, Verdict.CLEAR, Verdict.NO_DATA

verdicts = st.lists(st.sampled_from([BREACH, CLEAR, NO_DATA]), max_size=60)
steps = st.integers(0, 6)
timings = st.builds(
    lambda for_, records, keep, patience: Timing(
        Duration(steps=0 if records else for_), records, Duration(steps=keep), patience
    ),
    steps,
    st.none() | st.integers(1, 6),
    steps,
    st.integers(1, 12),
)

LEGAL = {
    ("inactive", "inactive", None),
    ("inactive", "pending", "breach"),
    ("inactive", "firing", "fired"),
    ("pending", "pending", None),
    ("pending", "firing", "fired"),
    ("pending", "inactive", "clear"),
    ("pending", "inactive", "expired"),
    ("firing", "firing", None),
    ("firing", "inactive", "resolved"),
    ("firing", "inactive", "expired"),
}


def run(sequence: list[Verdict], timing: Timing) -> list[tuple[int, Alert, str | None]]:
    alert, history = INACTIVE, []
    for step, verdict in enumerate(sequence, start=1):
        alert, change = advance(
            alert, Observation(verdict, float(step), 1), Now(step, float(step), 1, float(step)), timing
        )
        history.append((step, alert, change))
    return history


def changes(sequence: str, timing: Timing) -> list[tuple[int, str]]:
    verdict = {"b": BREACH, "c": CLEAR, ".": NO_DATA}
    return [(step, change) for step, _, change in run([verdict[letter] for letter in sequence], timing) if change]


@given(verdicts, timings)
def test_only_legal_changes(sequence, timing):
    before = INACTIVE.phase
    for _, alert, change in run(sequence, timing):
        assert (before.value, alert.phase.value, change) in LEGAL
        before = alert.phase


@given(verdicts, timings)
def test_firing_needs_its_breaches_with_no_clear_between(sequence, timing):
    for step, _, change in run(sequence, timing):
        if change != "fired":
            continue
        spell = []
        for verdict in reversed(sequence[:step]):
            if verdict is CLEAR:
                break
            spell.append(verdict)
        if timing.for_records is not None:
            assert spell.count(BREACH) >= timing.for_records
        else:
            oldest = max(age for age, verdict in enumerate(spell) if verdict is BREACH)
            assert oldest >= timing.for_.steps
        assert sequence[step - 1] is BREACH


@given(verdicts, timings)
def test_firing_and_its_end_alternate(sequence, timing):
    firing = False
    for _, alert, change in run(sequence, timing):
        if change == "fired":
            assert not firing
            firing = True
        elif change in {"resolved", "expired"} and firing:
            firing = False
        assert firing == (alert.phase is Phase.FIRING)


@given(verdicts, timings)
def test_no_data_never_fires_and_never_resolves(sequence, timing):
    for step, _, change in run(sequence, timing):
        if sequence[step - 1] is NO_DATA:
            assert change in {None, "expired"}


@given(verdicts, timings)
def test_no_data_alone_changes_no_count(sequence, timing):
    """Counting by records, a run with its gaps taken out goes through the same changes."""
    patient = replace(
        timing, no_data_after=1000, for_records=timing.for_records or 2, keep_firing_for=Duration(steps=0)
    )
    dense = [verdict for verdict in sequence if verdict is not NO_DATA]
    with_gaps = [change for _, _, change in run(sequence, patient) if change]
    assert with_gaps == [change for _, _, change in run(dense, patient) if change]


@pytest.mark.parametrize(
    ("sequence", "timing", "expected"),
    [
        pytest.param("cbbbb", Timing(Duration(steps=3)), [(2, "breach"), (5, "fired")], id="for 3 is four breaches"),
        pytest.param("cbb.b", Timing(for_records=3), [(2, "breach"), (5, "fired")], id="a gap keeps the count"),
        pytest.param(
            "cbbcbbb",
            Timing(for_records=3),
            [(2, "breach"), (4, "clear"), (5, "breach"), (7, "fired")],
            id="a clear starts anew",
        ),
        pytest.param("b.b", Timing(), [(1, "fired")], id="a gap does not resolve"),
        pytest.param("bcbc", Timing(), [(1, "fired"), (2, "resolved"), (3, "fired"), (4, "resolved")], id="no keeping"),
        pytest.param(
            "bcccbccc",
            Timing(keep_firing_for=Duration(steps=3)),
            [
                (1, "fired"),
            ],
            id="a breach starts keeping anew",
        ),
        pytest.param(
            "bcccc",
            Timing(keep_firing_for=Duration(steps=3)),
            [(1, "fired"), (5, "resolved")],
            id="keep from the first clear",
        ),
        pytest.param("b...", Timing(no_data_after=3), [(1, "fired"), (4, "expired")], id="a held alert expires"),
        pytest.param(
            "b..", Timing(for_records=2, no_data_after=2), [(1, "breach"), (3, "expired")], id="a pending one too"
        ),
    ],
)
def test_examples(sequence, timing, expected):
    assert changes(sequence, timing) == expected


def test_wall_clock_duration_is_measured_on_the_runs_own_clock():
    timing = Timing(Duration(seconds=10.0))
    alert, _ = advance(INACTIVE, Observation(BREACH, 1.0), Now(1, 100.0, 1, 0.0), timing)
    alert, change = advance(alert, Observation(BREACH, 1.0), Now(2, 5000.0, 2, 9.0), timing)
    assert change is None
    _, change = advance(alert, Observation(BREACH, 1.0), Now(3, 5001.0, 2, 10.0), timing)
    assert change == "fired"


def test_going_back_forgets_pending_and_keeps_firing():
    timing = Timing(for_records=2)
    at = [Now(step, float(step)) for step in range(20)]
    pending, _ = advance(INACTIVE, Observation(BREACH, 1.0), at[12], timing)
    firing, _ = advance(pending, Observation(BREACH, 1.0), at[13], timing)
    assert rewind(pending, at[10]) == (INACTIVE, "rewound")
    assert rewind(pending, at[13])[0].phase is Phase.PENDING
    kept, change = rewind(firing, at[10])
    assert change is None
    assert kept.since == at[12]
    assert kept.last_verdict.step == 9
    assert advance(kept, Observation(CLEAR), at[10], timing)[1] == "resolved"
