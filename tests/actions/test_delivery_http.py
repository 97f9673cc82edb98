"""Delivery over real HTTP: the answers that a webhook gives, and those that it does not give."""

from __future__ import annotations

import socket
import time
from dataclasses import replace

import apprise
from loopback import FAST, black_hole, delivery, http, notice, wait_for

MARKDOWN = not apprise.__version__.startswith("1.")  # whether json:// takes it


def test_a_notice_is_accepted_once():
    with http(200) as server, delivery(oncall=server.url()) as sent:
        before = time.time()
        sent.send([notice("a"), notice("a")])
        sent.send([notice("a")])
        wait_for(lambda: sent.state()[0].accepted)
        [found] = sent.drain()
        assert (found.notice, found.target, found.whole) == ("a", 1, True)
        assert before <= found.time <= time.time()
        assert sent.drain() == []
        sent.close()
    [message] = server.messages
    assert message["title"] == "CRITICAL: Rule a"
    assert message["message"] == ("**Rule** `a`" if MARKDOWN else "Rule a")
    assert message["type"] == "failure"


def test_nothing_runs_before_the_first_notice():
    with delivery(oncall="json://127.0.0.1:9/") as sent:
        assert sent.state() == ()
        assert sent.drain() == []
        assert sent.problems() == []


def test_an_error_is_retried_and_told_once():
    with http(500, 503, 500, 200) as server, delivery(oncall=server.url()) as sent:
        sent.send([notice("a"), notice("b")])
        wait_for(lambda: sent.state()[0].accepted == 2)
        assert [each.notice for each in sent.drain() if each.whole] == ["a", "b"]
        [problem] = sent.problems()
        assert "oncall" in problem.message
        assert "HTTP 500" in problem.message
        assert sent.state()[0].failed == 3
        assert sent.state()[0].failing is None


def test_a_second_failing_spell_is_told_again():
    with http(500, 200, 500, 200) as server, delivery(oncall=server.url()) as sent:
        sent.send([notice("a"), notice("b")])
        wait_for(lambda: sent.state()[0].accepted == 2)
        assert len(sent.problems()) == 2


def test_a_connection_torn_down_is_retried():
    with http("reset", 200) as server, delivery(oncall=server.url()) as sent:
        sent.send([notice()])
        wait_for(lambda: sent.state()[0].accepted)
        [problem] = sent.problems()
        assert "no connection" in problem.message


def test_a_busy_service_is_left_alone_and_loses_nothing():
    """Case 066: five at once, two accepted, then 429."""
    with http(200, 200, 429, 200) as server, delivery(oncall=server.url()) as sent:
        sent.send([notice(name) for name in "abcde"])
        wait_for(lambda: sent.state()[0].accepted == 5)
        assert [message["title"][-1] for message in server.accepted] == list("abcde")
        assert server.times[3] - server.times[2] >= FAST.after_429
        assert sent.problems() == [], "one 429 is the service's way of pacing, not a failing receiver"


def test_a_service_that_stays_busy_is_a_problem():
    with http(429) as server, delivery(replace(FAST, after_429=0.05), oncall=server.url()) as sent:
        sent.send([notice()])
        wait_for(lambda: sent.state()[0].failing)
        assert "HTTP 429" in sent.problems()[0].message


def test_messages_keep_their_distance():
    with http(200) as server, delivery(replace(FAST, interval=0.3), oncall=server.url()) as sent:
        sent.send([notice(name) for name in "abc"])
        wait_for(lambda: len(server.times) == 3)
        assert min(later - earlier for earlier, later in zip(server.times, server.times[1:], strict=False)) >= 0.3


def test_a_refused_message_is_told_shorter():
    """Case 061: the service answers 400 to what is longer than it allows."""
    with http(400, 400, 200) as server, delivery(oncall=server.url()) as sent:
        sent.send([notice(body="rule grad_norm_spike, step 31216\n" + "梯度范数 9.1\n" * 900)])
        wait_for(lambda: sent.state()[0].accepted)
        sizes = [len(message["message"]) for message in server.messages]
        assert sizes == sorted(sizes, reverse=True)
        assert sizes[2] < sizes[1] < sizes[0]
        told = server.accepted[0]["message"]
        assert told.startswith("rule grad_norm_spike, step 31216")
        assert "cut here" in told
        assert "HTTP 400" in sent.problems()[0].message


def test_a_message_that_is_always_refused_lets_the_others_pass():
    with (
        http(*[400] * 4, 200, 400) as server,
        delivery(replace(FAST, longest=60.0, first=30.0), oncall=server.url()) as sent,
    ):
        sent.send([notice("poison", body="x" * 4000), notice("b")])
        wait_for(lambda: sent.state()[0].accepted == 1)
        assert [each.notice for each in sent.drain() if each.whole] == ["b"]
        assert sent.state()[0].waiting == 1, "it waits for its next chance"


def test_a_slow_service_is_not_asked_twice():
    """Slower than apprise's own read timeout of 4 s would allow."""
    with http(4.5) as server, delivery(replace(FAST, read=15.0), oncall=server.url()) as sent:
        sent.send([notice()])
        wait_for(lambda: sent.state()[0].accepted)
        assert len(server.messages) == 1


def test_a_black_hole_ends_by_its_timeout():
    with black_hole() as port, delivery(oncall=f"json://127.0.0.1:{port}/?rto=0.5") as sent:
        sent.send([notice()])
        wait_for(lambda: sent.state()[0].failed)
        assert "no answer in time" in sent.problems()[0].message


def test_a_black_hole_holds_up_nobody_else():
    with (
        black_hole() as port,
        http(200) as server,
        delivery(
            hole=f"json://127.0.0.1:{port}/", both=(f"json://127.0.0.1:{port}/", server.url()), oncall=server.url()
        ) as sent,
    ):
        sent.send([notice("a", "hole"), notice("b", "both"), notice("c", "oncall")])
        assert not sent.problems(), "sending is queueing: nobody waits until a socket's time is over"
        wait_for(lambda: sum(lane.accepted for lane in sent.state()) == 2)
        assert {message["title"][-1] for message in server.accepted} == {"b", "c"}
        whole = [each.notice for each in sent.drain() if each.whole]
        assert whole == ["c"], "accepted by every URL of its receiver, or not accepted"
        sent.close(timeout=0.5)
        assert sum("stay in the outbox" in problem.message for problem in sent.problems()) == 2


def test_a_full_line_drops_repeats_first_and_counts():
    """Case 063: what is critical is kept."""
    with socket.create_server(("127.0.0.1", 0)) as hole:
        url = f"json://127.0.0.1:{hole.getsockname()[1]}/"
        with delivery(replace(FAST, backlog=4, read=60.0), oncall=url) as sent:
            sent.send([notice("first")])
            hole.settimeout(20)
            on_the_wire, _ = hole.accept()
            with on_the_wire:
                sent.send([notice(f"warning{number}", severity="warning") for number in range(3)])
                sent.send([notice("repeat", reason="repeat"), notice("critical1"), notice("critical2")])
                state = sent.state()[0]
                sent.close(timeout=0.1)
                said = [problem.message for problem in sent.problems()]
    assert any(
        "7 notices are not delivered and stay in the outbox, 2 of them gave way to others" in each for each in said
    )
    assert state.dropped == 2, "the repeat and the oldest warning"
    assert state.waiting == 5, "four in line and one on the wire"


def test_what_is_left_at_the_end_is_tried_once_more():
    """A receiver in back-off gets a last attempt, without waiting for its next turn."""
    with http(500, 200) as server, delivery(replace(FAST, first=60.0, longest=60.0), oncall=server.url()) as sent:
        sent.send([notice("a"), notice("b")])
        wait_for(lambda: sent.state()[0].failed)
        sent.close(timeout=5.0)
        assert [each.notice for each in sent.drain() if each.whole] == ["a", "b"]


def test_a_message_that_is_refused_at_the_end_is_still_told_shorter():
    """The training dies at the very step that fired, and the service takes no long message."""
    with http(400, 200) as server, delivery(oncall=server.url()) as sent:
        sent.send([notice("a", body="x" * 4000), notice("b")])
        sent.close(timeout=5.0)
        assert sorted(each.notice for each in sent.drain() if each.whole) == ["a", "b"]
        assert "cut here" in "".join(message["message"] for message in server.accepted)


def test_a_message_that_is_refused_at_any_length_does_not_hold_up_the_end():
    with http(400) as server, delivery(replace(FAST, first=60.0, longest=60.0), oncall=server.url()) as sent:
        sent.send([notice("a", body="x" * 4000)])
        begin = time.monotonic()
        sent.close(timeout=30.0)
        assert time.monotonic() - begin < 30.0, "the next try would come after the end"
        assert len(server.messages) > 1


def test_the_end_does_not_press_a_busy_service():
    with http(429) as server, delivery(replace(FAST, after_429=60.0), oncall=server.url()) as sent:
        sent.send([notice("a")])
        wait_for(lambda: sent.state()[0].failed)
        begin = time.monotonic()
        sent.close(timeout=30.0)
        assert time.monotonic() - begin < 30.0, "the service may be asked again after the end only"
        assert len(server.messages) == 1
        assert sent.drain() == []


def test_closing_twice_and_sending_afterwards_is_harmless():
    with http(200) as server, delivery(oncall=server.url()) as sent:
        sent.close()
        sent.close()
        sent.send([notice()])
    assert server.messages == []


def test_an_unknown_receiver_is_told_once():
    with delivery(oncall="json://127.0.0.1:9/") as sent:
        sent.send([notice("a", "nobody"), notice("b", "nobody")])
        [problem] = sent.problems()
        assert "nobody" in problem.message


def test_a_url_that_apprise_cannot_read_is_a_failing_receiver():
    with delivery(oncall="slack://x") as sent:
        sent.send([notice()])
        wait_for(lambda: sent.state()[0].failed)
        assert "slack://***" in sent.problems()[0].message


def test_a_long_message_of_emoji_and_chinese_arrives_whole():
    body = "👩‍👩‍👧 梯度范数 𝒙 naïve\n" * 40
    with http(200) as server, delivery(oncall=server.url()) as sent:
        sent.send([notice(body=body)])
        wait_for(lambda: server.accepted)
        assert server.accepted[0]["message"].strip() == body.strip()


def test_64_kb_are_cut_to_what_the_service_takes():
    body = "".join(f"- 梯度 👩‍👩‍👧 {number}\n" for number in range(4000))
    assert len(body.encode()) > 64 * 1024
    with http(200) as server, delivery(oncall=server.url()) as sent:
        sent.send([notice(body=body)])
        wait_for(lambda: server.accepted)
        told = server.accepted[0]["message"]
        assert len(told) <= 32768
        head, mark, _ = told.rpartition("\n… (cut here, ")
        assert mark
        assert body.startswith(head)
        assert head.endswith(tuple("0123456789")), "cut at the end of a line"
