"""Standstills in a rule test: what rules on the wall clock say while no step ends, and what waits for steps."""

from __future__ import annotations

import pytest

RULES = """
groups:
  - name: clock
    rules:
      - alert: Stalled
        when: {stalled: {after: 10m}}
        labels: {severity: critical}
      - alert: High
        expr: loss > 5
        labels: {severity: warning}
"""
CASE = """
  - standstills: [{after_step: 5, lasts: %s}]
    start: 1
    input_series: [{series: loss, values: 1x9}]
"""


def test_it_fires_at_the_end_of_the_standstill_and_the_next_step_resolves_it(run, texts):
    alerts = """
    alert_rule_test:
      - {eval_time: 4, alertname: Stalled}
      - {eval_time: 5, alertname: Stalled, exp_alerts: [{exp_labels: {severity: critical}, exp_value: 660}]}
      - {eval_time: 6, alertname: Stalled}
    exp_incidents: [{rule: Stalled, since: 5, opened: 5, ended: 6, ending: resolved}]
"""
    report = run(CASE % "11m" + alerts, RULES)
    assert (report.exit_code, texts(report)) == (0, [])


@pytest.mark.parametrize("lasts", ["10m", "9m59s"])
def test_a_shorter_one_is_none(run, texts, lasts):
    report = run(CASE % lasts + "    exp_incidents: []\n", RULES)
    assert (report.exit_code, texts(report)) == (0, [])


def test_an_expectation_that_is_wrong_fails(run, texts):
    report = run(CASE % "11m" + "    exp_incidents: []\n", RULES)
    assert report.exit_code == 1
    assert "+ got          rule: Stalled" in texts(report)[0]


def test_the_clock_goes_on_by_it(run, texts):
    """`for` by the clock: twelve seconds of steps are not ten minutes, the standstill makes them so."""
    rules = RULES.replace("expr: loss > 5", "expr: loss > 0\n        for: 10m")
    alerts = """
    alert_rule_test:
      - {eval_time: 5, alertname: High}
      - {eval_time: 6, alertname: High, exp_alerts: [{exp_labels: {severity: warning}}]}
"""
    report = run(CASE % "10m" + alerts, rules)
    assert (report.exit_code, texts(report)) == (0, [])


def test_what_waits_for_steps_is_done_after_a_minute(run, texts):
    """R6: joins wait for the group's interval of 50 steps, but not for steps that never come."""
    head = "rule_files: [rules.yaml]\nescalation: {warning: [{notify: oncall}]}\n"
    case = """
  - start: 1
    standstills: [{after_step: 6, lasts: %s}]
    input_series:
      - {series: 'loss{part="a"}', values: 9x5}
      - {series: 'loss{part="b"}', values: 1x2 9x2}
      - {series: 'loss{part="c"}', values: 1x2 9x2}
    exp_actions: [%s]
"""
    opened, joined = "{step: 1, reason: opened}", "{step: 6, reason: joined}"
    for lasts, expected in (("59s", opened), ("70s", f"{opened}, {joined}")):
        report = run(case % (lasts, expected), RULES, head)
        assert (report.exit_code, texts(report)) == (0, []), lasts


@pytest.mark.parametrize(
    ("standstill", "code", "message"),
    [
        ("{after_step: 5, lasts: 600}", "HW009", '"lasts" must be a wall-clock time'),
        ("{after_step: 5, lasts: long}", "HW010", '"lasts": "long" is not a wall-clock time'),
        ("{after_step: 5}", "HW008", 'standstill lacks the key "lasts"'),
        ("{after: 5, lasts: 10m}", "HW007", 'unknown key "after" in standstill'),
        ("{after_step: 5, lasts: 1m}, {after_step: 5, lasts: 2m}", "HW010", "two standstills after step 5"),
    ],
)
def test_mistakes(run, standstill, code, message):
    case = f"  - {{standstills: [{standstill}], input_series: [{{series: loss, values: 1x9}}]}}\n"
    report = run(case, RULES)
    (found,) = report.files[0].diagnostics
    assert (found.code, report.exit_code) == (code, 2)
    assert message in found.message


def test_only_written_series_take_one(run):
    report = run("  - {jsonl: x.jsonl, standstills: [{after_step: 5, lasts: 1m}]}\n", RULES)
    assert [each.code for each in report.files[0].diagnostics] == ["HW011"]


def test_a_step_that_takes_long_is_a_standstill_like_any_other(run, texts):
    """Live nobody knows that it will end."""
    case = "  - {start: 1, step_time: %d, input_series: [{series: loss, values: 1x3}], exp_incidents: %s}\n"
    each = ", ".join(f"{{rule: Stalled, opened: {step}, ended: {step + 1}}}" for step in (1, 2, 3))
    for seconds, expected in ((600, "[]"), (650, f"[{each}]")):
        report = run(case % (seconds, expected), RULES)
        assert (report.exit_code, texts(report)) == (0, []), seconds


def test_times_of_json_lines_are_looked_at(run, texts, tmp_path):
    lines = [f'{{"step": {step}, "time": {time}, "loss": 1}}\n' for step, time in ((1, 0), (2, 10), (3, 900), (4, 910))]
    (tmp_path / "log.jsonl").write_text("".join(lines), encoding="utf-8")
    report = run("  - {jsonl: log.jsonl, exp_incidents: [{rule: Stalled, opened: 2, ended: 3}]}\n", RULES)
    assert (report.exit_code, texts(report)) == (0, [])
