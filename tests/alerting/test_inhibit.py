"""Which alerts hold back which, for any labels; the definition is the plain twin of what is fast with thousands."""

from __future__ import annotations

import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from healthwatch.alerting.book import Book
from healthwatch.alerting.inhibit import belong, mark
from healthwatch.alerting.model import Alert, Incident, Now, Phase
from healthwatch.alerting.rows import WIDTH, row_of

NOW = Now(5, 5.0)
FIRES = Alert(Phase.FIRING, NOW, breaches=1, fired=NOW, last_verdict=NOW, value=9.0)
INCIDENT = Incident("Low@5", "Low", "warning", NOW, NOW, None, (), 1, 1)

label_sets = st.dictionaries(st.sampled_from(["A", "__name__", "a", "b", "c"]), st.sampled_from("xy"), max_size=4).map(
    lambda labels: tuple(sorted(labels.items()))
)
alerts = st.lists(label_sets, max_size=6, unique=True)


def fire(book, rule, labels):
    rows = np.array([row_of(FIRES)] * len(labels) or np.zeros((0, WIDTH)))
    book.page(rule).ledger.revive(labels, rows)


@given(alerts.filter(bool), alerts, alerts)
def test_an_incident_is_held_back_while_each_of_its_alerts_belongs_to_an_inhibitor(low, high, other):
    book = Book()
    for rule, labels in (("Low", low), ("High", high), ("Other", other)):
        fire(book, rule, labels)
    for rules, shadows, sources in (
        (["High"], (), high),
        (["High", "Other"], (), [*high, *other]),
        (["High", "Other"], ("High",), other),
    ):
        expected = all(belong(labels, sources) for labels in low)
        assert mark(INCIDENT, rules, book, shadows, NOW).inhibited == expected


def test_what_fires_now_counts_and_not_what_fired_at_the_last_look():
    book = Book()
    fire(book, "Low", [(("a", "x"),), (("a", "y"),)])
    fire(book, "High", [(("a", "x"),)])
    assert not mark(INCIDENT, ["High"], book, (), NOW).inhibited
    fire(book, "High", [(("a", "x"),), (("a", "y"),)])
    held = mark(INCIDENT, ["High"], book, (), NOW)
    assert held.inhibited
    fire(book, "High", [])
    assert not mark(held, ["High"], book, (), NOW).inhibited


@pytest.mark.parametrize("shared", [True, False])
def test_ten_thousand_hold_back_ten_thousand_in_no_time(shared):
    """Each against each would be a hundred million comparisons, minutes."""
    many = [(("layer", str(number // 100)), ("param", f"w{number}")) for number in range(10_000)]
    book = Book()
    fire(book, "Low", many)
    fire(book, "High", many if shared else [(*labels, ("rank", "0")) for labels in many])
    began = time.perf_counter()
    assert mark(INCIDENT, ["High"], book, (), NOW).inhibited
    assert time.perf_counter() - began < 5
