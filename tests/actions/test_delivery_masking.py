"""A URL is a credential: how it is shown, and what libraries may log while they use it."""

from __future__ import annotations

import logging
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from healthwatch.actions.notify.masking import mask_url, overheard


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("slack://T000AAA/B000BBB/XXXXSECRETXXXX", "slack://***"),
        ("tgram://123456:AAtelegramtoken/-100200300", "tgram://***"),
        ("mailto://user:p%40ssw0rd@smtp.example.invalid", "mailto://smtp.example.invalid/***"),
        ("json://hooks.example.invalid/hook?token=hunter2token", "json://hooks.example.invalid/***"),
        ("jsons://u:s@127.0.0.1:8080/a", "jsons://127.0.0.1:8080/***"),
        ("json://[::1]:80/secret", "json://::1:80/***"),
        ("https://hooks.slack.com/services/T000AAA/B000BBB/XXXX", "https://hooks.slack.com/***"),
        ("mailto://u:pw@smtp.example/?from=a@b.example&to=c@d.example", "mailto://smtp.example/***"),
        ("json://us.er:pa?ss@host.example/", "json://***"),
        ("json://user:pa/ss.word@host.example/", "json://***"),
        ("json://user:pa#s@host.example/", "json://***"),
        ("json://tokenwithoutdots/hook", "json://***"),
        ("json://host.example:port/hook", "json://***"),
        ("json://", "json://***"),
        ("xoxb-secret", "***"),
        ("my secret ://x", "***"),
        ("", "***"),
    ],
)
def test_only_the_scheme_and_a_certain_host_are_shown(url, shown):
    assert mask_url(url) == shown


secrets = st.text("abcdefghijklmnopqrstuvwxyzABCDEFGH0123456789.:/?#%@&=-_", min_size=4).map(
    lambda text: f"CANARY{text}"
)


@given(
    st.sampled_from(["json", "mailtos", "slack", "discord", "https", "ntfy", "unknown"]),
    st.sampled_from(
        ["{0}://u:{1}@host.example/", "{0}://host.example/{1}", "{0}://host.example?x={1}", "{0}://u:x@h.example/#{1}"]
    ),
    secrets,
)
def test_no_part_of_a_url_but_its_host_is_shown(scheme, form, secret):
    assert "CANARY" not in mask_url(form.format(scheme, secret))


def test_what_libraries_log_meanwhile_is_withheld(caplog):
    caplog.set_level(1)
    with overheard() as heard:
        logging.getLogger("apprise").warning("Failed to send to %s: error=%d", "CANARY", 500)
        logging.getLogger("urllib3.connectionpool").debug("POST /%s", "CANARY")
        logging.getLogger("a.library.seen.for.the.first.time").error("CANARY", exc_info=ValueError("CANARY"))
        logging.error("CANARY")
        logging.getLogger("apprise").warning("%d", "not a number")
    assert caplog.records == []
    assert "Failed to send to CANARY: error=500" in heard
    assert len(heard) == 5


def test_other_threads_and_other_times_log_as_before(caplog):
    caplog.set_level(1)
    logger = logging.getLogger("apprise")
    with overheard() as heard:
        other = threading.Thread(target=lambda: logger.warning("from %s", "elsewhere"))
        other.start()
        other.join()
    logger.warning("afterwards")
    assert [record.getMessage() for record in caplog.records] == ["from elsewhere", "afterwards"]
    assert heard == []


def test_a_record_factory_set_by_somebody_else_is_kept(caplog):
    before = logging.getLogRecordFactory()

    def factory(*given, **named):
        record = before(*given, **named)
        record.trainer = "theirs"
        return record

    logging.setLogRecordFactory(factory)
    try:
        with overheard():
            logging.getLogger("apprise").warning("CANARY")
        logging.getLogger("other").warning("hello")
        [record] = caplog.records
        assert record.trainer == "theirs"
        assert record.getMessage() == "hello"
    finally:
        logging.setLogRecordFactory(before)
