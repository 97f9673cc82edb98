"""A silence within a group that was told already: later messages are about the others."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner
from killable import write_config
from receiving import wait_for

import healthwatch
from healthwatch.cli import group

pytestmark = pytest.mark.usefixtures("quick")


def cli(*arguments):
    result = CliRunner().invoke(group, [str(each) for each in arguments])
    assert result.exit_code == 0, result.output
    return result.stdout


def step(session, loss=2.0, norm=1.0, times=1):
    for _ in range(times):
        session.log(norm=norm)
        session.step(loss)


def test_what_is_silenced_leads_no_later_message(inbox, tmp_path):
    session = healthwatch.load(write_config(tmp_path, [inbox.url], group_by=["run"])).attach()
    output = tmp_path / "output"
    step(session, times=5)
    step(session, loss=9.0)
    wait_for(lambda: inbox.titles)
    cli("silence", "add", output, "alertname=LossHigh", "--for", "1h")
    wait_for(lambda: session._pipeline.engine._silences)
    step(session, loss=9.0)
    [shown] = json.loads(cli("incidents", output, "-o", "json"))
    assert (shown["ended"], shown["silenced"]) == (None, True), "within a step"
    assert "LossHigh@6 (critical) firing [silenced]" in cli("incidents", output)
    step(session, loss=9.0, norm=7.5, times=4)  # joins, and is told five steps after the first message
    wait_for(lambda: len(inbox.titles) == 2)
    assert inbox.titles[1] == "WARNING: NormJump, run killed"
    body = inbox.taken[1]["message"].strip()
    assert body.count("LossHigh") == 1
    assert body.splitlines()[-1] == "Held back: `LossHigh` (critical, silenced)"
    assert "alertname=NormJump --for 2h`" in body
    step(session, times=10)
    session.close()
    assert inbox.titles[2:] == ["RESOLVED: LossHigh (critical) and 1 more, run killed"], "who was told is told its end"
