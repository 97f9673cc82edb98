"""The incident about receivers that fail."""

from __future__ import annotations

from healthwatch.actions.notify import LaneState
from healthwatch.alerting.model import Now
from healthwatch.session.failing import FAILURES, FailingReceivers


def lane(receiver: str, failures: int, target: int = 1) -> LaneState:
    why = "HTTP 500" if failures else None
    return LaneState(receiver, "json://***", 1, 0, failures, 0, why, target, failures)


def test_what_comes_more_than_once_between_two_steps_has_names_of_its_own():
    """A training that stands still has one step for hours; the outbox takes each id once."""
    failing, now, found, told = FailingReceivers("r", 0, ("a", "b", "c")), Now(7, 100.0), [], []
    for lanes in (
        [lane("a", FAILURES)],
        [lane("a", FAILURES), lane("b", FAILURES)],
        [lane("a", 0), lane("b", 0)],
        [lane("a", 0), lane("b", 0), lane("c", FAILURES)],
        [lane("a", 0), lane("b", 0), lane("c", 0)],
    ):
        incidents, notices = failing.look(lanes, now)
        found += incidents
        told += notices
    assert [each.id for each in found] == [*["ReceiverFailing@7"] * 3, *["ReceiverFailing@7#1.4"] * 2]
    assert [notice.reason for notice in told if notice.receiver == "b"] == ["opened", "resolved", "opened", "resolved"]
    assert len({notice.id for notice in told}) == len(told)


def test_the_next_step_counts_anew():
    failing = FailingReceivers("r", 0, ("a", "b"))
    ids = []
    for step in (3, 4):
        (opened,), _ = failing.look([lane("a", FAILURES)], Now(step, 4000.0 * step))
        failing.look([lane("a", 0)], Now(step, 4000.0 * step))
        ids.append(opened.id)
    assert ids == ["ReceiverFailing@3", "ReceiverFailing@4"]
