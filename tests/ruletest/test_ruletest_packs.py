"""The tests beside the shipped packs: all pass, and each rule has one that fires and one that is quiet."""

from __future__ import annotations

from pathlib import Path

import pytest

from healthwatch import resources, yamlfile
from healthwatch.promql import Program
from healthwatch.rulefile import load_rules
from healthwatch.ruletest import run_files
from healthwatch.ruletest.read import read
from healthwatch.stream import History, SeriesTable, tick_of

BY_CLOCK = {"TrainingStalled"}  # fires between steps: below
RULES = Path(__file__).resolve().parents[2] / "rules"


@pytest.mark.parametrize("pack", resources.packs())
def test_pack_passes(pack):
    report = run_files([RULES / f"{pack}.test.yaml"])
    shown = [text for file in report.files for case in file.cases for _, text in case.failures]
    assert (report.exit_code, shown) == (0, []), [file.diagnostics for file in report.files]


@pytest.mark.parametrize("pack", resources.packs())
def test_each_rule_fires_once_and_is_quiet_once(pack):
    test, problems = read(yamlfile.load(RULES / f"{pack}.test.yaml"))
    assert test is not None, problems
    fires = {each.rule for case in test.cases for each in case.alerts if each.expected}
    fires |= {each.fields["rule"] for case in test.cases for each in case.incidents or ()}
    quiet = {case.name.partition(": quiet")[0] for case in test.cases if ": quiet" in case.name}
    names = {rule.name for rule in load_rules([f"builtin:{pack}"]).rules}
    assert names - BY_CLOCK <= fires
    assert names <= quiet


def test_a_training_that_stands_still_is_told():
    (rule,) = (rule for rule in load_rules(["builtin:throughput"]).rules if rule.name == "TrainingStalled")
    program = Program(History(SeriesTable()))
    query = program.add(rule.expression)
    program.stalled_seconds = 1199.0
    assert not query.evaluate(tick_of(5)).kept.any()
    program.stalled_seconds = 1201.0
    assert query.evaluate(tick_of(5)).kept.all()
