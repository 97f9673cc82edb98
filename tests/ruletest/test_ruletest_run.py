"""Rule tests that pass, that fail, and that can't be run."""

from __future__ import annotations

import json

import numpy as np
import pytest

from healthwatch.cli.check import check
from healthwatch.recording import Recording
from healthwatch.stream import Frame, SeriesTable

NORMS = """
  - input_series:
      - {series: 'micro_norm{param="wq"}', values: 1x39 50 1x10}
      - {series: 'micro_norm{param="wk"}', values: 1x50}
"""


def problems(report):
    return [(found.code, found.span.line, found.message) for file in report.files for found in file.diagnostics]


class TestAlerts:
    def test_as_expected(self, run):
        report = run(
            NORMS
            + """
    alert_rule_test:
      - {eval_time: 39, alertname: NormSpike}
      - {eval_time: 40, alertname: NormSpike, exp_alerts: [{exp_labels: {severity: warning, param: wq}}]}
      - {eval_time: 45, alertname: NormSpike, exp_alerts: [{exp_labels: {severity: warning, param: wq}, exp_value: 50}]}
      - {eval_time: 46, alertname: NormSpike, exp_alerts: []}
"""
        )
        assert (report.exit_code, report.passed) == (0, 1), problems(report)

    @pytest.mark.parametrize(
        "expected",
        [
            "[]",
            "[{exp_labels: {severity: critical, param: wq}}]",
            "[{exp_labels: {severity: warning}}]",
            "[{exp_labels: {severity: warning, param: wq}, exp_value: 49}]",
            "[{exp_labels: {severity: warning, param: wq}}, {exp_labels: {severity: warning, param: wk}}]",
        ],
    )
    def test_not_as_expected(self, run, expected):
        report = run(
            f"{NORMS}\n    alert_rule_test:\n      - {{eval_time: 40, alertname: NormSpike, exp_alerts: {expected}}}\n"
        )
        assert (report.exit_code, report.failed) == (1, 1)

    def test_annotations_are_compared_where_they_are_given(self, run):
        series = "  - input_series: [{series: loss, values: 1 9.5}]\n    alert_rule_test:\n"
        test = "      - {{eval_time: 1, alertname: High, exp_alerts: [{{exp_labels: {{severity: critical}}{}}}]}}\n"
        assert run(series + test.format("")).exit_code == 0
        assert run(series + test.format(", exp_annotations: {summary: loss is 9.5}")).exit_code == 0
        assert run(series + test.format(", exp_annotations: {summary: loss is 9}")).exit_code == 1

    def test_label_values_are_text_whatever_yaml_makes_of_them(self, run):
        series = "  - input_series: [{series: 'micro_norm{layer=\"1.50\"}', values: 1x9 50}]\n    alert_rule_test:\n"
        labels = "{severity: warning, layer: 1.50}"
        test = f"      - {{eval_time: 10, alertname: NormSpike, exp_alerts: [{{exp_labels: {labels}}}]}}\n"
        report = run(series + test)
        assert report.exit_code == 0


class TestExpressions:
    def test_as_expected(self, run):
        report = run(
            """
  - input_series:
      - {series: 'x{a="1"}', values: 0+1x20}
      - {series: 'x{a="2"}', values: 0+2x20}
    promql_expr_test:
      - {expr: x, eval_time: 3, exp_samples: [{labels: 'x{a="2"}', value: 6}, {labels: 'x{a="1"}', value: 3}]}
      - expr: avg_over_time(x[4]) > 5
        eval_time: 10
        exp_samples: [{labels: '{a="1"}', value: 8.5}, {labels: '{a="2"}', value: 17}]
      - {expr: 'x > 100', eval_time: 10}
      - {expr: 'sum(x)', eval_time: 10, exp_samples: [{labels: '{}', value: 30}]}
"""
        )
        assert report.exit_code == 0, problems(report)

    def test_not_a_number(self, run):
        test = "  - input_series: [{series: x, values: NaN Inf}]\n    promql_expr_test:\n"
        good = "      - {expr: x, eval_time: 0, exp_samples: [{labels: x, value: NaN}]}\n"
        assert run(test + good).exit_code == 0
        assert run(test + good.replace("NaN", "1")).exit_code == 1
        assert run(test + good.replace("time: 0", "time: 1").replace("NaN", "Inf")).exit_code == 0

    def test_stale_ends_a_series(self, run):
        test = "  - input_series: [{series: x, values: 1 1 stale 1}]\n    promql_expr_test:\n"
        one = "[{labels: x, value: 1}]"
        times = "".join(
            f"      - {{expr: x, eval_time: {step}, lookback: 10, exp_samples: {samples}}}\n"
            for step, samples in ((1, one), (2, "[]"), (3, one))
        )
        assert run(test + times).exit_code == 0

    def test_clashing_labels_are_no_result(self, run, texts):
        report = run(
            """
  - input_series: [{series: 'x{a="1"}', values: 1}, {series: 'x{a="2"}', values: 1}]
    promql_expr_test: [{expr: 'x + on () x', eval_time: 0, exp_samples: [{value: 2}]}]
"""
        )
        assert report.exit_code == 1
        assert "no result: " in texts(report)[0]

    def test_what_was_read_stands_below_a_failure(self, run, texts):
        report = run(
            """
  - input_series: [{series: 'x{a="1"}', values: 1 2}, {series: 'x{a="2"}', values: 3 4}, {series: loss, values: 1 9}]
    promql_expr_test:
      - {expr: 'sum(x)', eval_time: 1, exp_samples: [{value: 5}]}
      - {expr: 'x + on () x', eval_time: 1, exp_samples: [{value: 5}]}
      - {expr: 'count(ALERTS{alertstate="pending"})', eval_time: 1, exp_samples: [{value: 1}]}
      - {expr: none_such, eval_time: 1, exp_samples: [{value: 5}]}
"""
        )
        tables = [text.rpartition("\n\n")[2].split("\n") for text in texts(report)]
        read = ["step      0  1", 'x{a="1"}  1  2', 'x{a="2"}  3  4']
        alerts = ["step  0       1", "loss  1       9", "High  .  firing"]
        missing = ["nothing that it reads has a sample from step 0 to 1"]
        shown = [[line.strip() for line in table] for table in tables]
        assert shown == [read, read, alerts, missing]


class TestMicroSteps:
    def test_values_take_turns(self, run):
        report = run(
            """
  - input_series:
      - {series: 'micro_norm{param="wq"}', micro_steps: 4, values: 1x41 50 1x10}
      - {series: loss, values: 1x12}
    start: 1
    exp_incidents: [{rule: NormSpike, since: 11, micro_step: 3, alerts: 1}]
    promql_expr_test:
      - {expr: micro_norm, eval_time: 11, micro_step: 3, exp_samples: [{labels: 'micro_norm{param="wq"}', value: 50}]}
      - {expr: micro_norm, eval_time: 11, exp_samples: [{labels: 'micro_norm{param="wq"}', value: 1}]}
"""
        )
        assert report.exit_code == 0, problems(report)


class TestTimelines:
    TEST = """
  - input_series: [{series: loss, values: 1 9 9 1 9 1}]
"""

    def test_every_incident_is_listed(self, run):
        first, second = "{rule: High, opened: 1, ended: 3, ending: resolved}", "{rule: High, opened: 4, ended: 5}"
        both = f"    exp_incidents: [{first}, {second}]\n"
        assert run(self.TEST + both).exit_code == 0
        assert run(self.TEST + "    exp_incidents: [{rule: High, opened: 1}]\n").exit_code == 1
        assert run(self.TEST + "    exp_incidents: []\n").exit_code == 1
        assert run(self.TEST.replace("9", "2") + "    exp_incidents: []\n").exit_code == 0

    def test_actions_follow_the_ladder(self, run):
        ladder = "escalation: {critical: [{log: error}, {notify: oncall, after: 1}, {profile: {steps: 5}}]}\n"
        actions = """
    exp_actions:
      - {step: 1, action: log, argument: error, reason: opened, rules: [High]}
      - {step: 1, action: profile, argument: {steps: 5}}
      - {step: 2, action: notify, argument: oncall, reason: opened}
      - {step: 3, action: log, reason: resolved}
      - {step: 3, action: notify, argument: oncall, reason: resolved}
"""
        test = "  - input_series: [{series: loss, values: 1 9 9 1}]\n"
        report = run(test + actions, head=f"rule_files: [rules.yaml]\n{ladder}")
        assert report.exit_code == 0, [
            text for file in report.files for case in file.cases for _, text in case.failures
        ]
        assert run(test + "    exp_actions: []\n", head=f"rule_files: [rules.yaml]\n{ladder}").exit_code == 1

    def test_what_the_rules_of_an_action_read_stands_below_it(self, run, texts):
        test = "  - input_series: [{series: loss, values: 1 9 9 1}]\n    exp_actions: "
        reports = [run(f"{test}{expected}\n") for expected in ("[]", "[{step: 2, rules: [High]}]")]
        tables = [texts(report)[0].rpartition("\n\n")[2].split("\n") for report in reports]
        shown = ["step  0       1       2  3", "loss  1       9       9  1", "High  .  firing  firing  ."]
        assert [[line.strip() for line in table] for table in tables] == [shown, shown]

    def test_of_what_no_rule_brings_about_nothing_is_said_to_be_missing(self, run, texts):
        report = run("  - input_series: [{series: loss, values: 1 2}]\n    exp_actions: [{step: 1, action: log}]\n")
        assert [line.strip() for line in texts(report)[0].split("\n")[1:]] == [
            "- expected     step: 1  action: log",
            "+ got          nothing",
        ]

    @pytest.mark.parametrize("expr", ["time()", "5", "vector(time()) * 2", "vector(5)"])
    def test_of_what_reads_nothing_no_sample_is_said_to_be_missing(self, run, texts, expr):
        series = "  - input_series: [{series: loss, values: 1 2 3}]\n    promql_expr_test: "
        (told,) = texts(run(f"{series}[{{expr: '{expr}', eval_time: 2, exp_samples: [{{value: 99}}]}}]\n"))
        assert ("99" in told, "sample" in told) == (True, False), told
        (told,) = texts(run(f"{series}[{{expr: los, eval_time: 2, exp_samples: [{{value: 99}}]}}]\n"))
        assert "nothing that it reads has a sample from step 0 to 2" in told

    def test_parameters_can_be_overridden(self, run):
        rule = "{alert: High, expr: loss > $most, params: {most: 5}, labels: {severity: info}}"
        rules = f"groups: [{{name: g, rules: [{rule}]}}]"
        head = "rule_files: [rules.yaml]\noverride: {High: {params: {most: 20}}}\n"
        test = "  - input_series: [{series: loss, values: 1 9 30 1}]\n    exp_incidents: [{rule: High, opened: 2}]\n"
        assert run(test, rules, head).exit_code == 0

    def test_what_an_override_brings_about_is_told_where_it_stands(self, run):
        rule = "{alert: High, expr: 'spike_ratio(loss[$w]) > 3', params: {w: 5}, labels: {severity: info}}"
        rules = f"groups: [{{name: g, rules: [{rule}]}}]"
        head = "rule_files: [rules.yaml]\noverride:\n  High: {params: {w: -2, x: 1}}\n  Hihg: {params: {w: 3}}\n"
        report = run("  - input_series: [{series: loss, values: 1 9}]\n", rules, head)
        assert report.exit_code == 2
        assert {(found.span.file.rpartition("/")[2], found.code) for found in report.files[0].diagnostics} == {
            ("x.test.yaml", "HW019"),
            ("x.test.yaml", "HW014"),
            ("x.test.yaml", "HW114"),
        }
        assert [line for _, line, _ in problems(report)] == [3, 3, 4]

    def test_what_an_override_hardly_means_is_a_warning_beside_the_others(self, run):
        head = "rule_files: [rules.yaml]\noverride:\n  High: {labels: {severity: critcal}}\n"
        report = run("  - input_series: [{series: loss, values: 1 9}, {series: lss, values: 1}]\n", head=head)
        found = [(each.code, each.severity, each.span.line) for each in report.files[0].diagnostics]
        assert (report.exit_code, found) == (0, [("HW020", "warning", 3), ("HW043", "warning", 5)])

    def test_check_tells_of_unknown_rules_too_and_of_each_problem_once(self, run, tmp_path):
        tests = "  - {input_series: [{series: loss, values: 1}], alert_rule_test: [{eval_time: 1, alertname: Hihg}]}\n"
        report = run(tests)
        assert [(found.code, found.span.column) for found in report.files[0].diagnostics] == [
            ("HW014", tests.index("Hihg") + 1)
        ]
        found = check([str(tmp_path / "x.test.yaml"), str(tmp_path / "rules.yaml")]).diagnostics
        assert [(each.code, each.severity) for each in found if each.severity == "error"] == [("HW014", "error")]
        broken = "groups: [{name: g, rules: [{alert: A, expr: 'loss >'}]}]"
        (tmp_path / "rules.yaml").write_text(broken, encoding="utf-8")
        found = check([str(tmp_path / "x.test.yaml"), str(tmp_path / "rules.yaml")]).diagnostics
        assert len([each for each in found if each.severity == "error"]) == 1

    def test_files_that_are_not_there_are_told_beside_all_else(self, run):
        head = "rule_files: [rules.yaml, here/none.yaml, nor_here.yaml]\nevaluation_intervall: 3\n"
        report = run("  - input_series: [{series: loss, values: 1 9}]\n", head=head)
        assert [(code, line) for code, line, _ in problems(report)] == [("HW018", 1), ("HW018", 1), ("HW007", 2)]
        assert [found.span.column for found in report.files[0].diagnostics[:2]] == [26, 42]


class TestFilesWithSamples:
    def test_json_lines(self, run, tmp_path):
        lines = [{"step": step, "loss": 9.0 if step == 3 else 1.0, 'x{a="b"}': step} for step in range(1, 6)]
        lines[3]["loss"] = None
        text = "".join(json.dumps(line) + "\n" for line in lines)
        (tmp_path / "log.jsonl").write_text(text, encoding="utf-8")
        report = run(
            """
  - jsonl: log.jsonl
    alert_rule_test:
      - {eval_time: 4, alertname: High, exp_alerts: [{exp_labels: {severity: critical}}]}
      - {eval_time: 5, alertname: High}
    promql_expr_test: [{expr: x, eval_time: 5, exp_samples: [{labels: 'x{a="b"}', value: 5}]}]
    exp_incidents: [{rule: High, opened: 3, ended: 5}]
"""
        )
        assert report.exit_code == 0, problems(report)

    @pytest.mark.parametrize(
        ("line", "message"),
        [
            ("{", "no JSON"),
            ("[]", 'whole number under "step"'),
            ('{"step": "1"}', 'whole number under "step"'),
            ('{"step": 1, "a b": 2}', "is no series"),
            ('{"step": 1, "loss": "2"}', "is not a number"),
            ('{"step": 1, "micro_step": 0}', "count from 1"),
        ],
    )
    def test_json_lines_that_cannot_be_read(self, run, tmp_path, line, message):
        (tmp_path / "log.jsonl").write_text(f'{{"step": 0}}\n{line}\n', encoding="utf-8")
        report = run("  - {jsonl: log.jsonl, exp_incidents: []}\n")
        assert report.exit_code == 2
        ((code, number, found),) = problems(report)
        assert (code, number) == ("HW202", 2)
        assert message in found

    def test_going_back(self, run, tmp_path):
        steps = [(1, 1, 1.0), (1, 2, 9.0), (1, 3, 9.0), (2, 2, 1.0), (2, 3, 1.0)]
        text = "".join(json.dumps({"attempt": a, "step": s, "loss": v}) + "\n" for a, s, v in steps)
        (tmp_path / "log.jsonl").write_text(text, encoding="utf-8")
        report = run("  - {jsonl: log.jsonl, exp_incidents: [{rule: High, opened: 2, ended: 2, ending: resolved}]}\n")
        assert report.exit_code == 0, problems(report)

    def test_a_recorded_run(self, run, tmp_path):
        table = SeriesTable()
        series = table.register("loss", [{}])
        recording = Recording.create(tmp_path / "rank_0.sqlite", {"run": "r"})
        recorded(recording, series, [1.0, 9.0, 1.0])
        report = run("  - {run: rank_0.sqlite, exp_incidents: [{rule: High, opened: 2, ended: 3}]}\n")
        assert report.exit_code == 0, problems(report)


def recorded(recording, series, values):
    from healthwatch.alerting.model import Now
    from healthwatch.engine import Outcome

    for step, value in enumerate(values, start=1):
        frame = Frame(step, time=float(step))
        frame.add(series, np.array([value], np.float32))
        frame.close()
        recording.commit(frame, Outcome(Now(step, float(step))), (), (), ())
    recording.close("done")


class TestMistakes:
    @pytest.mark.parametrize(
        ("test", "code", "message"),
        [
            ("  - {input_seriess: []}\n", "HW007", "input_seriess"),
            ("  - input_series: [{series: loss, values: 1 2 x}]\n", "HW201", '"x" is no value'),
            ("  - input_series: [{series: 'loss{', values: 1}]\n", "HW201", ""),
            ("  - alert_rule_test: [{eval_time: 1, alertname: Hihg}]\n", "HW014", '"Hihg"'),
            ("  - {exp_incidents: [{rule: Hihg}]}\n", "HW014", '"Hihg"'),
            ("  - promql_expr_test: [{expr: 'sum(', eval_time: 1}]\n", "HW101", ""),
            ("  - alert_rule_test: [{eval_time: 1.5, alertname: High}]\n", "HW009", "eval_time"),
            ("  - alert_rule_test: [{eval_time: 500ms, alertname: High}]\n", "HW010", "whole number of steps"),
            (
                "  - input_series: [{series: a, micro_steps: 2, values: 1}, {series: b, micro_steps: 3, values: 1}]\n",
                "HW010",
                "the first series has 2 micro-steps a step, this one 3",
            ),
            ("  - {run: a, jsonl: b}\n", "HW011", "exclude"),
            ("  - promql_expr_test: [{expr: x, eval_time: 1, exp_samples: [{value: five}]}]\n", "HW009", "five"),
        ],
    )
    def test_told_at_its_place(self, run, test, code, message):
        report = run(test)
        assert report.exit_code == 2
        found = [each for each in problems(report) if each[0] == code]
        assert [line for _, line, _ in found] == [3], problems(report)
        assert message in found[0][2]

    def test_one_rule_file_is_a_list_too(self, run):
        test = "  - input_series: [{series: loss, values: 1}]\n    alert_rule_test: [{eval_time: 0, alertname: High}]\n"
        (found,) = run(test, head="rule_files: rules.yaml\n").files[0].diagnostics
        assert (found.code, found.help) == ("HW009", "write [rules.yaml]")

    @pytest.mark.parametrize(
        ("name", "mend"),
        [
            ("ExpertDead", "it is in builtin:moe, which is not loaded"),
            ("ExprtDead", 'did you mean "ExpertDead" of builtin:moe?'),
            ("Hihg", 'did you mean "High"?'),
            ("Zzz", "loaded rules: High, NormSpike"),
        ],
    )
    def test_a_rule_that_is_not_loaded_is_found_where_it_is(self, run, name, mend):
        (found,) = run(f"  - alert_rule_test: [{{eval_time: 1, alertname: {name}}}]\n").files[0].diagnostics
        assert (found.code, found.help) == ("HW014", mend)

    @pytest.mark.parametrize(
        ("test", "told"),
        [
            (
                "  - input_series: [{series: 'los{a=\"b\"}', values: 1}]\n",
                'no rule and no expression of this test reads "los"',
            ),
            (
                "  - {input_series: [{series: loss, values: 1}], promql_expr_test: [{expr: sum(lss), eval_time: 1}]}\n",
                'no series of this test is called "lss"',
            ),
        ],
    )
    def test_what_would_pass_for_no_reason_is_told(self, run, test, told):
        report = run(test)
        assert report.exit_code == 0
        (found,) = report.files[0].diagnostics
        assert (found.code, found.severity, found.span.line, found.message) == ("HW043", "warning", 3, told)
        assert found.help == 'did you mean "loss"?'

    def test_a_selector_without_a_name_reads_what_it_matches(self, run):
        rules = "groups: [{name: g, rules: [{alert: A, expr: '{__name__=~\"lo.*\"} > 5', labels: {severity: info}}]}]"
        report = run("  - input_series: [{series: loss, values: 1}, {series: grad_norm, values: 1}]\n", rules=rules)
        assert [found.message for found in report.files[0].diagnostics] == [
            'no rule and no expression of this test reads "grad_norm"'
        ]

    def test_rules_that_cannot_be_used(self, run):
        report = run("  - {}\n", rules="groups: [{name: g, rules: [{alert: A, expr: 'los > 1'}]}]")
        assert report.exit_code == 2
        assert [code for code, _, _ in problems(report)] == ["HW012"]

    def test_rules_that_are_not_there(self, run):
        report = run("  - {}\n", head="rule_files: [nowhere.yaml]\n")
        assert (report.exit_code, problems(report)[0][0]) == (2, "HW018")

    def test_one_file_of_two(self, tmp_path, run):
        from healthwatch.ruletest import run_files

        run("  - {name: fine}\n")
        (tmp_path / "y.test.yaml").write_text("rule_files: 5\n", encoding="utf-8")
        report = run_files([tmp_path])
        assert (report.exit_code, report.passed, len(report.files)) == (2, 1, 2)


def test_a_failure_shows_expected_against_got_and_the_values_around(run, texts, tmp_path):
    report = run(
        """
  - name: one spike
    input_series:
      - {series: 'micro_norm{param="wq"}', values: 1x39 50 1x10}
      - {series: loss, values: 1x50}
    alert_rule_test:
      - eval_time: 40
        alertname: NormSpike
        exp_alerts:
          - exp_labels: {severity: warning, param: wk}
"""
    )
    assert texts(report) == [
        f"""{tmp_path.as_posix()}/x.test.yaml:9:20: NormSpike: alerts that fire at step 40
    - expected     param="wk"  severity="warning"
    + got          param="wq"  severity="warning"  value: 50
      difference   other value: param

    step                    37  38  39      40      41      42      43
    micro_norm{{param="wq"}}   1   1   1      50       1       1       1
    NormSpike                .   .   .  firing  firing  firing  firing"""
    ]


ONE = "[{exp_labels: {severity: warning%s}, exp_annotations: {%s}%s}]"
RULE_WITH_TEXTS = """
groups:
  - name: g
    rules:
      - {alert: High, expr: loss > 5, labels: {severity: warning, team: x}, annotations: {summary: s, action: a}}
"""


@pytest.mark.parametrize(
    ("expected", "difference"),
    [
        (ONE % (", team: x", "summary: s", ""), "only got: annotation action"),
        (
            ONE % (", team: x", "summary: t, action: a, note: n", ""),
            "only expected: annotation note; other value: annotation summary",
        ),
        (ONE % ("", "summary: s, action: a", ", exp_value: 8"), "only got: team; other value: value"),
        ("[{exp_labels: {severity: warning}}]", "only got: team"),
    ],
)
def test_a_failure_names_what_differs(run, texts, expected, difference):
    """What an expectation does not speak of, its value or its annotations, is no difference."""
    series = "  - input_series: [{series: loss, values: 1 9}]\n    alert_rule_test:\n"
    report = run(f"{series}      - {{eval_time: 1, alertname: High, exp_alerts: {expected}}}\n", RULE_WITH_TEXTS)
    (shown,) = texts(report)
    assert [line for line in shown.splitlines() if "difference" in line] == [f"      difference   {difference}"]


def test_each_expectation_is_held_against_what_is_most_like_it(run, texts):
    rules = "groups: [{name: g, rules: [{alert: High, expr: norm > 5, labels: {severity: info}}]}]"
    series = "\n".join(f"      - {{series: 'norm{{param=\"{name}\"}}', values: 9 9}}" for name in "abc")
    alerts = "{exp_labels: {severity: warning, param: c}}, {exp_labels: {severity: info, param: a, tier: x}}"
    test = f"{{eval_time: 1, alertname: High, exp_alerts: [{alerts}]}}"
    (shown,) = texts(run(f"  - input_series:\n{series}\n    alert_rule_test: [{test}]\n", rules))
    differences = [line.split("difference   ")[1] for line in shown.splitlines() if "difference" in line]
    assert differences == ["other value: severity", "only expected: tier"]
    timeline = "  - input_series: [{series: norm, values: 1 1 9}]\n"
    (shown,) = texts(run(timeline + "    exp_incidents: [{rule: High, opened: 1}]\n", rules))
    assert "      difference   other value: opened\n" in shown


def test_a_pending_alert_is_seen_in_the_values(run, texts):
    rules = "groups: [{name: g, rules: [{alert: High, expr: loss > 5, for: 2, labels: {severity: info}}]}]"
    test = "  - input_series: [{series: loss, values: 1 9 9 9 1}]\n"
    shown = texts(run(test + "    exp_incidents: [{rule: High, opened: 2}]\n", rules))[0]
    assert [line.split() for line in shown.splitlines() if line.strip().startswith("High")] == [
        ["High", ".", "pending", "pending", "firing", "."]
    ]
