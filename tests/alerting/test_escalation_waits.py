"""Waits end by wall clock and at the end of the run, and what is held back is told when nothing holds it any more."""

from __future__ import annotations

from dataclasses import replace

from healthwatch.alerting.escalation import Policy, Standing, escalate
from healthwatch.alerting.model import Incident, Now, Sample
from healthwatch.config import LadderStep
from healthwatch.stream.ticks import Duration

LADDER = (LadderStep("log", "error"), LadderStep("notify", "oncall", repeat=Duration(steps=500)))
LATE = (LadderStep("notify", "oncall", after=Duration(steps=20)),)


def policy(ladder=LADDER, interval=50):
    return Policy(lambda _: ladder, lambda _: (("run", "r"),), lambda _: Duration(steps=interval))


def at(step: int, clock: float) -> Now:
    return Now(step, clock, 1, clock)


def incident(rule: str, now: Now, **changes) -> Incident:
    made = Incident(f"{rule}@{now.step}", rule, "critical", now, now, None, (Sample((), 9.0),), 1, 1)
    return replace(made, **changes)


def told(intents):
    return [
        (intent.reason, tuple(one.rule for one in intent.incidents)) for intent in intents if intent.action == "notify"
    ]


A, B, C = incident("A", at(10, 0.0)), incident("B", at(12, 2.0)), incident("C", at(10, 0.0))


def test_joins_wait_no_longer_than_a_minute_of_wall_clock():
    _, standing = escalate([A], Standing(), policy(), at(10, 0.0))
    intents, standing = escalate([A, B], standing, policy(), at(12, 59.0))
    assert told(intents) == []
    intents, _ = escalate([A, B], standing, policy(), at(13, 60.0))
    assert told(intents) == [("joined", ("A", "B"))]


def test_at_a_standstill_joins_are_told_and_a_repeat_once():
    _, standing = escalate([A], Standing(), policy(), at(10, 0.0))
    _, standing = escalate([A, B], standing, policy(), at(12, 2.0))
    intents, standing = escalate([A, B], standing, policy(), at(12, 70.0), "standstill")
    assert told(intents) == [("joined", ("A", "B"))]
    intents, standing = escalate([A, B], standing, policy(), at(12, 140.0), "standstill")
    assert told(intents) == [], "nothing has happened since"
    _, standing = escalate([A, B], standing, policy(), at(13, 150.0))
    intents, standing = escalate([A, B], standing, policy(), at(13, 220.0), "standstill")
    assert told(intents) == [("repeat", ("A", "B"))]
    intents, _ = escalate([A, B], standing, policy(), at(13, 290.0), "standstill")
    assert told(intents) == []


def test_repeats_in_steps_stay_in_steps_while_the_training_goes_on():
    _, standing = escalate([A], Standing(), policy(), at(10, 0.0))
    for step in range(11, 100):
        intents, standing = escalate([A], standing, policy(), at(step, 100.0 * step))
        assert told(intents) == []


def test_after_ends_at_a_standstill_and_at_the_end():
    for mode, expected in [("step", []), ("standstill", [("opened", ("A",))]), ("end", [("opened", ("A",))])]:
        _, standing = escalate([A], Standing(), policy(LATE), at(10, 0.0))
        intents, _ = escalate([A], standing, policy(LATE), at(11, 70.0), mode)
        assert told(intents) == expected


def test_the_end_tells_what_waits_and_repeats_nothing():
    _, standing = escalate([A], Standing(), policy(), at(10, 0.0))
    intents, _ = escalate([A], standing, policy(), at(600, 1.0), "end")
    assert told(intents) == [], "open incidents are not messaged at the end"
    _, standing = escalate([A, B], standing, policy(), at(12, 2.0))
    intents, _ = escalate([A, B], standing, policy(), at(12, 3.0), "end")
    assert told(intents) == [("joined", ("A", "B"))]


def test_nothing_but_messages_between_steps():
    intents, _ = escalate([A], Standing(), policy(), at(10, 0.0), "standstill")
    assert {intent.action for intent in intents} == {"notify"}


def test_a_silenced_incident_is_told_when_the_silence_ends():
    quiet = replace(A, silenced=True)
    intents, standing = escalate([quiet], Standing(), policy(), at(10, 0.0))
    assert [intent.action for intent in intents] == ["log"]
    intents, standing = escalate([A], standing, policy(), at(20, 10.0))
    assert told(intents) == [("opened", ("A",))]
    over = replace(A, silenced=True, ended=at(30, 20.0), ending="resolved")
    intents, _ = escalate([over], standing, policy(), at(30, 20.0))
    assert told(intents) == [("resolved", ("A",))], "whoever was told of it is told of its end"


def test_what_doubles_while_it_is_silenced_is_no_news():
    grown, quiet = replace(A, joined=40), replace(A, joined=40, silenced=True)
    _, standing = escalate([A], Standing(), policy(), at(10, 0.0))
    intents, standing = escalate([quiet], standing, policy(), at(300, 50.0))
    assert told(intents) == []
    intents, standing = escalate([quiet, B], standing, policy(), at(301, 51.0))
    assert told(intents) == [("joined", ("A", "B"))]
    intents, standing = escalate([quiet, B], standing, policy(), at(600, 99.0))
    assert told(intents) == []
    intents, standing = escalate([grown, B], standing, policy(), at(601, 100.0))
    assert told(intents) == [("joined", ("A", "B"))], "the silence is over, and the message before was not about it"


def test_where_all_are_inhibited_nothing_is_sent():
    _, standing = escalate([A], Standing(), policy(), at(10, 0.0))
    intents, _ = escalate([replace(A, joined=40, inhibited=True)], standing, policy(), at(300, 50.0))
    assert told(intents) == []


def test_what_is_more_severe_than_all_that_is_not_silenced_is_told_at_once():
    worse, small, quiet = replace(B, severity="critical"), replace(A, severity="warning"), replace(C, silenced=True)
    _, standing = escalate([C], Standing(), policy(), at(10, 0.0))
    intents, standing = escalate([quiet, small], standing, policy(), at(100, 50.0))
    assert told(intents) == [("joined", ("C", "A"))]
    intents, _ = escalate([quiet, small, worse], standing, policy(), at(101, 51.0))
    assert told(intents) == [("severity", ("C", "A", "B"))]


def test_what_joins_while_it_is_silenced_rides_with_nobody():
    _, standing = escalate([A], Standing(), policy(), at(10, 0.0))
    _, standing = escalate([A, B], standing, policy(), at(12, 2.0))  # B waits
    quiet = replace(B, silenced=True)
    intents, standing = escalate([A, quiet], standing, policy(), at(100, 50.0))
    assert told(intents) == []
    intents, _ = escalate([A, B], standing, policy(), at(101, 51.0))
    assert told(intents) == [("joined", ("A", "B"))]
