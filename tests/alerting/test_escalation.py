"""The ladder and the groups: what is told follows what is active now."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from healthwatch.alerting.escalation import Policy, Standing, escalate, rewind
from healthwatch.alerting.model import Incident, Now, Sample
from healthwatch.config import LadderStep
from healthwatch.stream.ticks import Duration

CRITICAL = (LadderStep("log", "error"), LadderStep("profile", {"steps": 3}), LadderStep("notify", "oncall"))
WARNING = (LadderStep("log", "warning"), LadderStep("notify", "oncall", after=Duration(steps=20)))
LADDERS = {"critical": CRITICAL, "warning": WARNING}


def policy(ladders=LADDERS, interval=50):
    return Policy(
        ladder=lambda incident: ladders.get(incident.severity, ()),
        group=lambda incident: (("run", "demo"),),
        group_interval=lambda receiver: Duration(steps=interval),
    )


def at(step: int) -> Now:
    return Now(step, float(step), 1, float(step))


def incident(rule: str, opened: int, severity: str = "critical", **changes) -> Incident:
    made = Incident(
        id=f"{rule}@{opened}",
        rule=rule,
        severity=severity,
        opened=at(opened),
        since=at(opened),
        micro_step=None,
        firing=(Sample((), 9.0),),
        count=1,
        joined=1,
    )
    return replace(made, **changes)


def run(timeline, rules=None, steps=400):
    """`timeline` maps an incident to the step at which it ends (None: never); yields (step, action, reason, rules)."""
    standing, told = Standing(), []
    for step in range(1, steps + 1):
        current = [
            replace(made, ended=at(step), ending="resolved") if end == step else made
            for made, end in timeline
            if made.opened.step <= step and (end is None or step <= end)
        ]
        intents, standing = escalate(current, standing, rules or policy(), at(step))
        told += [
            (step, intent.action, intent.reason, tuple(member.rule for member in intent.incidents))
            for intent in intents
        ]
    return told


def notices(told):
    return [(step, reason, rules) for step, action, reason, rules in told if action == "notify"]


def test_one_message_when_it_opens_and_one_when_it_ends():
    told = run([(incident("A", 10), 60)])
    assert told == [
        (10, "log", "opened", ("A",)),
        (10, "profile", "opened", ("A",)),
        (10, "notify", "opened", ("A",)),
        (60, "log", "resolved", ("A",)),
        (60, "notify", "resolved", ("A",)),
    ]


def test_the_log_says_once_that_it_is_over():
    ladder = (
        LadderStep("log", "warning"),
        LadderStep("log", "error", after=Duration(steps=10)),
        LadderStep("log", "info", when_state="resolved"),
    )
    told = run([(incident("A", 10), 60), (incident("B", 55), 58)], policy({"critical": ladder}))
    assert told == [
        (10, "log", "opened", ("A",)),
        (20, "log", "opened", ("A",)),
        (55, "log", "opened", ("B",)),
        (58, "log", "resolved", ("B",)),
        (60, "log", "resolved", ("A",)),
    ]


def test_joins_wait_for_the_group_interval_and_ride_together():
    told = notices(run([(incident("A", 10), 200), (incident("B", 20), 200), (incident("C", 30), 200)]))
    assert told == [(10, "opened", ("A",)), (60, "joined", ("A", "B", "C")), (200, "resolved", ("A", "B", "C"))]


def test_a_higher_severity_is_told_at_once():
    ladders = {"critical": CRITICAL, "warning": (LadderStep("notify", "oncall"),)}
    told = notices(run([(incident("A", 10, "warning"), 100), (incident("B", 12), 50)], policy(ladders)))
    assert told == [(10, "opened", ("A",)), (12, "severity", ("A", "B")), (100, "resolved", ("A", "B"))]


def test_what_joined_and_ended_between_two_messages_stands_in_the_next():
    told = notices(run([(incident("A", 10), 100), (incident("B", 20), 25)]))
    assert told == [(10, "opened", ("A",)), (100, "resolved", ("A", "B"))]


def test_after_waits_for_a_warning_that_stays():
    short, long = (incident("A", 10, "warning"), 25), (incident("B", 100, "warning"), 200)
    assert notices(run([short, long])) == [(120, "opened", ("B",)), (200, "resolved", ("B",))]


def test_a_new_group_opens_after_the_last_one_has_ended():
    told = notices(run([(incident("A", 10), 20), (incident("B", 20), 30), (incident("A", 40), 50)]))
    assert [(step, reason) for step, reason, _ in told] == [
        (10, "opened"),
        (30, "resolved"),
        (40, "opened"),
        (50, "resolved"),
    ]


def test_repeat_comes_as_often_as_asked_and_not_with_the_end():
    ladders = {"critical": (LadderStep("notify", "oncall", repeat=Duration(steps=100)),)}
    told = notices(run([(incident("A", 10), 310)], policy(ladders)))
    assert [(step, reason) for step, reason, _ in told] == [
        (10, "opened"),
        (110, "repeat"),
        (210, "repeat"),
        (310, "resolved"),
    ]


def test_a_doubled_count_is_told_once_per_interval():
    standing, told = Standing(), []
    for step in range(1, 200):
        grown = incident("A", 1, joined=1 + step // 10)
        intents, standing = escalate([grown], standing, policy(), at(step))
        told += [(step, intent.reason) for intent in intents if intent.action == "notify"]
    assert told == [(1, "opened"), (51, "joined"), (110, "joined")]


def test_inhibition_holds_back_everything_but_the_log():
    told = run([(incident("A", 10, inhibited=True), 60)])
    assert [(step, action) for step, action, _, _ in told] == [(10, "log"), (60, "log")]


def test_whoever_was_told_firing_is_told_resolved_though_inhibited_since():
    standing = Standing()
    _, standing = escalate([incident("A", 10)], standing, policy(), at(10))
    held = incident("A", 10, inhibited=True)
    intents, standing = escalate([held], standing, policy(), at(11))
    assert not intents
    intents, standing = escalate([replace(held, ended=at(12), ending="resolved")], standing, policy(), at(12))
    assert [(intent.action, intent.reason) for intent in intents] == [("log", "resolved"), ("notify", "resolved")]
    assert not standing.told
    assert not standing.climbed


def test_a_shadow_incident_is_never_escalated():
    assert run([(incident("A", 10, shadow=True), 60)]) == []


def test_when_state_resolved_acts_at_the_end_alone():
    ladders = {"critical": (LadderStep("profile", {"steps": 1}, when_state="resolved"),)}
    assert run([(incident("A", 10), 60)], policy(ladders)) == [(60, "profile", "resolved", ("A",))]


def test_receivers_are_told_apart():
    ladders = {"critical": (LadderStep("notify", "oncall"), LadderStep("notify", "lead", after=Duration(steps=30)))}
    told = run([(incident("A", 10), 60)], policy(ladders))
    assert [step for step, *_ in told] == [10, 40, 60, 60]


def test_going_back_makes_no_clock_stand_in_the_future():
    ladders = {"critical": (LadderStep("notify", "oncall", repeat=Duration(steps=50)),)}
    _, standing = escalate([incident("A", 10)], Standing(), policy(ladders), at(10))
    _, standing = escalate([incident("A", 10)], standing, policy(ladders), at(60))
    standing = rewind(standing, at(31))
    silent, standing = escalate([incident("A", 10)], standing, policy(ladders), at(31))
    assert not silent
    intents, _ = escalate([incident("A", 10)], standing, policy(ladders), at(80))
    assert [intent.reason for intent in intents] == ["repeat"]


spells = st.lists(
    st.tuples(st.integers(1, 120), st.integers(1, 60), st.sampled_from(["warning", "critical"])), max_size=8
)


@given(spells, st.integers(1, 60))
def test_a_group_is_told_from_opened_to_resolved_and_of_everyone(spells, interval):
    ladders = {name: (LadderStep("notify", "oncall"),) for name in ("warning", "critical")}
    timeline = [
        (incident(f"R{number}", start, severity), start + length)
        for number, (start, length, severity) in enumerate(spells)
    ]
    told = notices(run(timeline, policy(ladders, interval), steps=200))
    open_, last = False, None
    for step, reason, _ in told:
        assert open_ == (reason != "opened")
        open_ = reason != "resolved"
        if reason == "joined":
            assert step - last >= interval
        last = step
    assert not open_
    assert {rule for _, _, rules in told for rule in rules} == {made.rule for made, _ in timeline}
    if timeline:
        assert told[-1][0] == max(end for _, end in timeline)


@pytest.mark.parametrize("severity", ["warning", "critical"])
def test_no_ladder_no_intent(severity):
    assert run([(incident("A", 10, severity), 60)], policy({})) == []
