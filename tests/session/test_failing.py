"""The incident about receivers that fail."""

from __future__ import annotations

import pytest

from healthwatch.actions.notify import LaneState
from healthwatch.alerting.model import Now
from healthwatch.alerting.silence import Silence, parse_matcher
from healthwatch.engine import Engine
from healthwatch.session.failing import FAILURES, FailingReceivers
from healthwatch.stream import SeriesTable

ENGINE = Engine([], SeriesTable())


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
        incidents, notices = failing.look(lanes, now, ENGINE.silences)
        found += incidents
        told += notices
    assert [each.id for each in found] == [*["ReceiverFailing@7"] * 3, *["ReceiverFailing@7#1.4"] * 2]
    assert [notice.reason for notice in told if notice.receiver == "b"] == ["opened", "resolved", "opened", "resolved"]
    assert len({notice.id for notice in told}) == len(told)


def test_the_next_step_counts_anew():
    failing = FailingReceivers("r", 0, ("a", "b"))
    ids = []
    for step in (3, 4):
        (opened,), _ = failing.look([lane("a", FAILURES)], Now(step, 4000.0 * step), ENGINE.silences)
        failing.look([lane("a", 0)], Now(step, 4000.0 * step), ENGINE.silences)
        ids.append(opened.id)
    assert ids == ["ReceiverFailing@3", "ReceiverFailing@4"]


def silenced(*matchers: str, **limits: float) -> Engine:
    engine = Engine([], SeriesTable())
    engine.silence([Silence("s", tuple(map(parse_matcher, matchers)), 0.0, **limits)], {"run": "r", "rank": "0"})
    return engine


@pytest.mark.parametrize(
    ("matchers", "told"),
    [
        (["alertname=ReceiverFailing"], []),
        (["rule=ReceiverFailing", "run=r"], []),
        (["severity=warning"], []),
        (["receiver=a"], []),
        (["receiver=b"], ["b"]),
        (["alertname=ReceiverFailing", "run=other"], ["b"]),
    ],
)
def test_a_silence_is_kept_here_too(matchers: list[str], told: list[str]) -> None:
    failing, engine = FailingReceivers("r", 0, ("a", "b")), silenced(*matchers)
    (opened,), notices = failing.look([lane("a", FAILURES)], Now(3, 30.0), engine.silences)
    assert [notice.receiver for notice in notices] == told
    assert opened.silenced == (not told)
    assert failing.look([lane("a", FAILURES + 1)], Now(4, 40.0), engine.silences) == ([], [])
    (ended,), notices = failing.look([lane("a", 0)], Now(5, 50.0), engine.silences)
    assert ended.id == opened.id
    assert [notice.receiver for notice in notices] == told


def test_whoever_was_not_told_hears_of_it_when_the_silence_ends() -> None:
    failing, engine = FailingReceivers("r", 0, ("a", "b", "c")), silenced("alertname=ReceiverFailing", ends=100.0)
    assert failing.look([lane("a", FAILURES)], Now(3, 30.0), engine.silences)[1] == []
    (incident,), notices = failing.look([lane("a", FAILURES + 5)], Now(9, 100.0), engine.silences)
    assert not incident.silenced
    assert [(notice.receiver, notice.reason) for notice in notices] == [("b", "opened"), ("c", "opened")]
    assert failing.look([lane("a", FAILURES + 6)], Now(10, 110.0), engine.silences) == ([], [])
