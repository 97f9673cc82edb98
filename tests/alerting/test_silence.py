"""Matchers, and what a silence holds back."""

from __future__ import annotations

import numpy as np
import pytest

from healthwatch.alerting.book import Book
from healthwatch.alerting.model import Alert, Incident, Now, Phase, Sample
from healthwatch.alerting.rows import row_of
from healthwatch.alerting.silence import Silence, mark, parse_matcher

NOW = Now(100, 1000.0)


@pytest.mark.parametrize(
    ("text", "labels", "fits"),
    [
        ("alertname=Spike", {"alertname": "Spike"}, True),
        ("rule=Spike", {"alertname": "Spike"}, True),
        ("alertname!=Spike", {"alertname": "Spike"}, False),
        ('param=~".*attention.*"', {"param": "layers.0.attention.wq"}, True),
        ("param=~attention", {"param": "layers.0.attention.wq"}, False),
        ("param!~.*attention.*", {}, True),
        ("rank=", {}, True),
        ('note="say \\"hi\\""', {"note": 'say "hi"'}, True),
    ],
)
def test_matchers(text, labels, fits):
    matcher = parse_matcher(text)
    assert matcher.matches(labels) == fits
    assert parse_matcher(str(matcher)) == matcher


@pytest.mark.parametrize("text", ["", "alertname", "1a=b", "param=~(", "=x"])
def test_no_matchers(text):
    with pytest.raises(ValueError, match=r"matcher|regular expression"):
        parse_matcher(text)


def book(*labels):
    made = Book()
    fires = Alert(Phase.FIRING, NOW, breaches=1, fired=NOW, last_verdict=NOW, value=9.0)
    made.page("Spike").ledger.revive(labels, np.array([row_of(fires) for _ in labels]))
    return made


def silence(*matchers, **limits):
    return Silence("s", tuple(parse_matcher(each) for each in matchers), **{"starts": 0.0, **limits})


INCIDENT = Incident("Spike@1", "Spike", "critical", NOW, NOW, None, (Sample((), 1.0),), 2, 2)
TWO = ((("param", "a"),), (("param", "b"),))


@pytest.mark.parametrize(
    ("silences", "held"),
    [
        ([silence("alertname=Spike")], True),
        ([silence("alertname=Other")], False),
        ([silence("severity=critical", "run=r")], True),
        ([silence("run=other")], False),
        ([silence("param=a")], False),
        ([silence("param=a"), silence("param=b")], True),
        ([silence("param=~a|b", "alertname=Spike")], True),
        ([silence("alertname=Spike", ends=999.0)], False),
        ([silence("alertname=Spike", starts=1001.0)], False),
        ([silence("alertname=Spike", until_step=99)], False),
        ([silence("alertname=Spike", until_step=100)], True),
        ([], False),
    ],
)
def test_every_alert_that_fires_must_be_silenced(silences, held):
    assert mark(INCIDENT, silences, {"run": "r"}, book(*TWO), NOW).silenced == held
