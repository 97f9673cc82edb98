"""The log action."""

from __future__ import annotations

import logging
import math
from dataclasses import dataclass

import pytest

from healthwatch.actions import log
from healthwatch.alerting.model import Incident, Intent, Now, Sample
from healthwatch.rulefile.template import Template, compile_template

NOW = Now(153, 0.0)


def incident(**fields) -> Incident:
    given = {
        "id": "GradNormSpike@153",
        "rule": "GradNormSpike",
        "severity": "critical",
        "opened": NOW,
        "since": Now(151, 0.0),
        "micro_step": 2,
        "firing": (Sample((("__name__", "micro_norm"), ("param", "wq")), 12.5), Sample((("param", "wk"),), 9.0)),
        "count": 5,
        "joined": 6,
    }
    return Incident(**{**given, **fields})


def test_one_line_names_rule_series_value_step_micro_step_and_severity(caplog):
    log.write(Intent("log", "error", "opened", (incident(),), NOW))
    [record] = caplog.records
    assert record.name == "healthwatch"
    assert record.levelno == logging.ERROR
    assert record.getMessage() == (
        'GradNormSpike firing (critical): micro_norm{param="wq"} = 12.5 and 4 more since step 151, micro-step 2'
    )


def test_a_series_without_labels_has_no_braces(caplog):
    caplog.set_level(logging.INFO)
    alone = incident(firing=(Sample((), 2.38),), count=1, ended=Now(163, 0.0), ending="resolved", micro_step=None)
    log.write(Intent("log", "error", "resolved", (alone,), NOW))
    [record] = caplog.records
    assert record.getMessage() == "GradNormSpike resolved (critical): 2.38 since step 151, until step 163"


def test_the_end_is_told_as_info(caplog):
    caplog.set_level(logging.INFO)
    ended = incident(ended=Now(163, 0.0), ending="resolved", micro_step=None)
    log.write(Intent("log", "error", "resolved", (ended,), NOW))
    [record] = caplog.records
    assert record.levelno == logging.INFO
    assert record.getMessage().endswith("and 4 more since step 151, until step 163")
    assert "GradNormSpike resolved (critical)" in record.getMessage()


def test_expired_is_never_called_resolved(caplog):
    caplog.set_level(logging.INFO)
    log.write(Intent("log", "error", "resolved", (incident(ended=Now(400, 0.0), ending="expired"),), NOW))
    assert "stopped reporting" in caplog.text
    assert "resolved" not in caplog.text


@pytest.mark.parametrize(
    ("argument", "level"), [("info", 20), ("warning", 30), ("ERROR", 40), ("critical", 50), ("debug", 10), (None, 30)]
)
def test_the_ladder_sets_the_level(argument, level, caplog):
    caplog.set_level(1)
    log.write(Intent("log", argument, "repeat", (incident(),), NOW))
    assert caplog.records[0].levelno == level
    assert "still firing" in caplog.text


def test_a_name_can_not_forge_a_line(caplog):
    forged = Sample((("param", "x\nERROR forged %s %(a)s"),), math.nan)
    log.write(Intent("log", "error", "opened", (incident(firing=(forged,)),), NOW))
    assert len(caplog.records[0].getMessage().splitlines()) == 1
    assert "NaN" in caplog.text


def test_every_incident_has_its_line(caplog):
    log.write(Intent("log", "error", "opened", (incident(), incident(rule="NaNLoss", firing=())), NOW))
    assert [record.getMessage().split()[0] for record in caplog.records] == ["GradNormSpike", "NaNLoss"]


@dataclass(frozen=True)
class Rule:
    annotations: dict[str, Template]
    limit: int = 10


def test_the_rules_own_words_come_first_while_it_fires(caplog):
    caplog.set_level(logging.INFO)
    rules = {"GradNormSpike": Rule({"summary": compile_template("{{ $value }} times\n its median.")[0]})}
    log.write(Intent("log", "error", "opened", (incident(),), NOW), rules)
    log.write(Intent("log", "error", "opened", (incident(firing=(Sample((), 12.5),), count=1),), NOW), rules)
    ended = incident(ended=Now(160, 9.0), ending="expired", last_verdict=Now(155, 4.0))
    log.write(Intent("log", "error", "resolved", (ended,), NOW), rules)
    worst = 'micro_norm{param="wq"} = 12.5 and 4 more'
    when = "since step 151, micro-step 2, until step 160"
    assert caplog.messages == [
        f"GradNormSpike firing (critical): 12.5 times its median, {worst} (since step 151, micro-step 2)",
        "GradNormSpike firing (critical): 12.5 times its median (since step 151, micro-step 2)",
        f"GradNormSpike stopped reporting since step 155 (critical): {worst} {when}",
    ]
