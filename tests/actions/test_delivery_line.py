"""The line before one URL: what is kept, in which order, and when it is tried."""

from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st
from loopback import notice

from healthwatch.actions.notify.line import Answer, Line, Pace, admit, back_off, settle, take, wakes
from healthwatch.alerting.model import SEVERITIES

PACE = Pace()
OK = Answer(accepted=True)

statuses = st.sampled_from([None, 400, 401, 403, 404, 413, 429, 500, 503])
answers = st.one_of(
    st.just(OK),
    st.builds(Answer, accepted=st.just(False), status=statuses, retry_after=st.floats(0, 1e6)),
)
notices = st.builds(
    lambda number, reason, severity: notice(str(number), reason=reason, severity=severity),
    st.integers(0, 10_000),
    st.sampled_from(["opened", "joined", "severity", "repeat", "resolved"]),
    st.sampled_from(SEVERITIES),
)


@given(st.integers(1, 2000), answers, st.floats(0, 1, exclude_max=True))
def test_back_off_is_bounded(failures, answer, draw):
    wait = back_off(failures, answer, draw, PACE)
    assert wait >= PACE.first / 2
    assert wait >= PACE.after_429 or not answer.busy
    assert wait >= min(answer.retry_after, 3600)
    assert wait <= max(PACE.longest, min(answer.retry_after, 3600))


@given(st.integers(1, 100), st.floats(0, 1, exclude_max=True))
def test_back_off_never_shrinks_as_failures_go_on(failures, draw):
    failed = Answer(accepted=False)
    assert back_off(failures + 1, failed, draw, PACE) >= back_off(failures, failed, draw, PACE)


@given(st.floats(0, 1, exclude_max=True), st.floats(0, 1, exclude_max=True))
def test_jitter_spreads_receivers_that_failed_together(one, other):
    failed = Answer(accepted=False)
    apart = back_off(5, failed, one, PACE) - back_off(5, failed, other, PACE)
    assert math.isclose(apart, 16 * (one - other), abs_tol=1e-9), "half of 2 * 2**4 s"


@given(st.lists(notices, max_size=40), st.integers(1, 10))
def test_a_full_line_never_drops_what_matters_more(coming, backlog):
    line, dropped = Line(), []
    for one in coming:
        line, gone = admit(line, one, backlog)
        dropped += [gone] if gone else []
        assert len(line.waiting) <= backlog
        kept = [entry.notice for entry in line.waiting]
        if gone and gone.reason != "repeat":
            assert all(other.reason != "repeat" for other in kept)
        if gone and gone.severity == "critical" and gone.reason in ("opened", "severity", "resolved"):
            assert all(other.severity == "critical" for other in kept)
    assert len(line.waiting) + len(dropped) == len(coming), "every notice waits or is counted"
    order = [id(one) for one in coming]
    assert [order.index(id(entry.notice)) for entry in line.waiting] == sorted(
        order.index(id(entry.notice)) for entry in line.waiting
    )


@given(st.lists(notices, min_size=1, max_size=10), st.lists(answers, max_size=60), st.floats(0, 0.999))
def test_every_notice_is_delivered_once_by_a_service_that_recovers(coming, answered, draw):
    """Whatever it answers at first: nothing is lost, told twice, or sent before its time."""
    line = Line()
    for one in coming:
        line, _ = admit(line, one, PACE.backlog)
    told, now = [], 0.0
    for answer in (*answered, *[OK] * len(coming)):
        due = wakes(line)
        if due is None:
            break
        early, same = take(line, math.nextafter(due, -math.inf))
        assert early is None
        assert same == line
        now = max(now, due)
        entry, line = take(line, now)
        assert entry is not None
        before = len(line.waiting)
        line = settle(line, entry, answer, now, draw, PACE)
        assert len(line.waiting) == before + (not answer.accepted)
        assert wakes(line) is None or line.opens >= now + min(PACE.interval, PACE.first / 2)
        told += [entry.notice] if answer.accepted else []
    assert sorted(map(id, told)) == sorted(map(id, coming))


@given(st.lists(st.floats(0, 0.999), min_size=1, max_size=30), st.integers(1, 100_000))
def test_a_refused_message_gets_shorter_down_to_a_floor(draws, size):
    line, _ = admit(Line(), notice(body="x" * size), PACE.backlog)
    limits: list[int] = []
    for draw in draws:
        entry, line = take(line, wakes(line) or 0.0)
        line = settle(line, entry, Answer(accepted=False, status=400), wakes(line) or 0.0, draw, PACE)
        limits.append(line.waiting[0].limit or 0)
    assert limits == sorted(limits, reverse=True)
    assert 500 <= limits[-1] <= 2000
    assert line.failures == 0, "the service is well"
