"""Frames in, transitions, incidents and intents out, through real rule files."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import pytest

from healthwatch.alerting.escalation import Policy
from healthwatch.alerting.message import notice_id
from healthwatch.config import LadderStep
from healthwatch.engine import Engine
from healthwatch.recording import recall
from healthwatch.rulefile import load_rules
from healthwatch.stream import Duration, Frame, SeriesTable

NOTIFY = Policy(
    ladder=lambda incident: (LadderStep("log", "error"), LadderStep("notify", "oncall")),
    group=lambda incident: (("run", "test"),),
    group_interval=lambda receiver: Duration(steps=50),
)


@pytest.fixture
def engine(tmp_path: Path):
    """Builds an engine from the text of one rule group's rules."""

    def build(rules: str, policy: Policy = NOTIFY, **settings) -> tuple[Engine, SeriesTable]:
        path = tmp_path / "rules.yaml"
        path.write_text("groups:\n  - name: test\n    rules:\n" + rules, encoding="utf-8")
        loaded = load_rules([path])
        assert not [found for found in loaded.diagnostics if found.severity == "error"], loaded.diagnostics
        table = SeriesTable()
        return Engine(loaded.rules, table, policy, **settings), table

    return build


def feed(engine: Engine, table: SeriesTable, values, metric="loss", start=1, attempt=1):
    """One value a step (None: no sample; a list: one a micro-step); returns (step, outcome) of every step."""
    series = table.register(metric, [{}])
    outcomes = []
    for step, value in enumerate(values, start=start):
        frame = Frame(step, attempt, 10.0 * step)
        micro_steps = value if isinstance(value, list) else None
        if micro_steps is not None:
            for number, each in enumerate(micro_steps):
                frame.add(series, [each], micro_step=number)
        elif value is not None:
            frame.add(series, [value])
        frame.close()
        outcomes.append((step, engine.step(frame)))
    return outcomes


def changes(outcomes):
    return [(step, each.reason) for step, outcome in outcomes for each in outcome.transitions]


def notices(outcomes):
    return [
        (step, intent.reason, [incident.rule for incident in intent.incidents])
        for step, outcome in outcomes
        for intent in outcome.intents
        if intent.action == "notify"
    ]


HIGH = """
      - alert: High
        expr: loss > 5
        labels: {severity: critical}
"""


def test_for_records_counts_breaches_without_a_clear_between(engine):
    rule = HIGH + "        for_records: 3\n"
    assert changes(feed(*engine(rule), [1, 9, 9, None, 9])) == [(2, "breach"), (5, "fired")]
    assert changes(feed(*engine(rule), [1, 9, 9, 1, 9, 9, 9])) == [
        (2, "breach"),
        (4, "clear"),
        (5, "breach"),
        (7, "fired"),
    ]
    gap = feed(*engine(rule), [9, 9, 9, None, 9])
    assert changes(gap) == [(1, "breach"), (3, "fired")]
    assert [step for step, *_ in notices(gap)] == [3]


def test_a_nan_holds_what_a_clear_would_resolve(engine):
    assert changes(feed(*engine(HIGH), [9, math.nan, 9])) == [(1, "fired")]
    assert changes(feed(*engine(HIGH), [9, 1, 9])) == [(1, "fired"), (2, "resolved"), (3, "fired")]


def test_the_step_breaches_if_one_micro_step_does_and_names_the_first(engine):
    (_, first), (_, second) = feed(*engine(HIGH), [[1.0, 1.0, 1.0], [1.0, 9.0, 8.0]])
    assert not first.transitions
    (incident,) = second.incidents
    assert (incident.micro_step, incident.firing[0].value) == (2, 9.0)


def test_a_message_has_the_values_of_its_step_and_the_last_one_those_of_the_end(engine):
    again = LadderStep("notify", "oncall", repeat=Duration(steps=3))
    outcomes = feed(*engine(HIGH, replace(NOTIFY, ladder=lambda _: (again,))), [9, 10, 11, 12, 13, 1])
    told = [
        (step, intent.reason, intent.incidents[0].firing[0].value) for step, out in outcomes for intent in out.intents
    ]
    assert told == [(1, "opened", 9.0), (4, "repeat", 12.0), (6, "resolved", 13.0)]
    assert outcomes[-1][1].incidents[0].last_verdict.step == 6


def test_a_firing_series_that_vanishes_is_held_then_told_to_have_stopped(engine):
    outcomes = feed(*engine(HIGH, no_data_after=10), [9] + [None] * 20)
    assert changes(outcomes) == [(1, "fired"), (11, "expired")]
    (ended,) = outcomes[10][1].incidents
    assert ended.ending == "expired"
    assert notices(outcomes) == [(1, "opened", ["High"]), (11, "resolved", ["High"])]


def test_an_alert_does_not_expire_before_three_usual_distances(engine):
    sparse = [value for _ in range(6) for value in (9, *[None] * 9)] + [None] * 60
    outcomes = feed(*engine(HIGH, no_data_after=5), sparse)
    assert changes(outcomes) == [(1, "fired"), (6, "expired"), (11, "fired"), (81, "expired")]


def test_a_rule_whose_metric_never_comes_is_told_once(engine):
    outcomes = feed(*engine(HIGH, no_data_after=10), [1.0] * 40, metric="grad_norm")
    assert [(step, problem.kind) for step, outcome in outcomes for problem in outcome.problems] == [(11, "no data")]


def test_inhibition_holds_back_until_the_next_breach(engine):
    rules = """
      - alert: NonFinite
        expr: nonfinite(loss)
        keep_firing_for: 2
        labels: {severity: critical}
      - alert: High
        expr: loss > 5
        keep_firing_for: 3
        inhibited_by: [NonFinite]
        labels: {severity: critical}
"""
    outcomes = feed(*engine(rules), [math.inf, 1, 1, 1, 9, 1, 1, 1, 1])
    assert notices(outcomes) == [
        (1, "opened", ["NonFinite"]),
        (4, "resolved", ["NonFinite"]),
        (5, "opened", ["High"]),
        (9, "resolved", ["High"]),
    ]


def test_until_keeps_a_firing_alert_through_an_adapted_baseline(engine):
    rule = """
      - alert: Jump
        expr: spike_ratio(loss[20], 3) > 2
        until: loss > 1.3 * min_over_time(finite(loss[200]))
        labels: {severity: warning}
"""
    outcomes = feed(*engine(rule), [1.0] * 30 + [4.0] * 60 + [1.0] * 5)
    assert changes(outcomes) == [(31, "fired"), (91, "resolved")]


def test_details_list_the_series_behind_a_coarser_alert(engine):
    rule = """
      - alert: Hot
        expr: max by (layer) (max_attention_logit) > 100
        detail: topk by (layer) (1, max_attention_logit)
        labels: {severity: warning}
"""
    machine, table = engine(rule)
    series = table.register("max_attention_logit", [{"layer": layer, "head": head} for layer in "01" for head in "01"])
    frame = Frame(1)
    frame.add(series, [1.0, 2.0, 300.0, 4.0])
    frame.close()
    (notice,) = [intent for intent in machine.step(frame).intents if intent.action == "notify"]
    (incident,) = notice.incidents
    assert incident.firing[0].labels == (("layer", "1"),)
    assert [(dict(sample.labels)["head"], sample.value) for sample in incident.details] == [("0", 300.0)]


def test_a_rule_that_cannot_be_evaluated_breaks_no_other(engine):
    rules = (
        HIGH
        + """
      - alert: Ambiguous
        expr: a * on () b > 0
        labels: {severity: warning}
"""
    )
    machine, table = engine(rules)
    loss, a, b = (table.register(name, [{}]) for name in ("loss", "a", "b"))
    many = table.register("b", [{"x": "1"}, {"x": "2"}])
    frame = Frame(1)
    for series, values in ((loss, [9.0]), (a, [1.0]), (b, [1.0]), (many, [1.0, 2.0])):
        frame.add(series, values)
    frame.close()
    outcome = machine.step(frame)
    assert [transition.rule for transition in outcome.transitions] == ["High"]
    assert [problem.rule for problem in outcome.problems] == ["Ambiguous"]


def test_warmup_and_settle_are_not_evaluated(engine):
    assert changes(feed(*engine(HIGH + "        warmup: 3\n"), [9] * 5)) == [(4, "fired")]
    machine, table = engine(HIGH + "        settle: 2\n")
    feed(machine, table, [1] * 5)
    machine.rewind(4)
    again = feed(machine, table, [9, 9, 9], start=4, attempt=2)
    assert changes(again) == [(6, "fired")]


def test_going_back_keeps_firing_and_forgets_what_was_pending(engine):
    machine, table = engine(HIGH + "        for_records: 2\n")
    feed(machine, table, [1, 9, 9, 9, 9])
    assert machine.rewind(3) == ()
    outcomes = feed(machine, table, [9, 1], start=3, attempt=2)
    assert changes(outcomes) == [(4, "resolved")]
    assert notices(outcomes) == [(4, "resolved", ["High"])]
    assert outcomes[0][1].incidents[0].since.step == 2
    feed(machine, table, [9], start=5, attempt=2)
    assert [each.reason for each in machine.rewind(5)] == ["rewound"]


def test_what_fires_again_after_going_back_is_another_incident_and_told(engine):
    """The same bad batch at the same step of the same attempt; whoever was told "resolved" must hear of it."""
    machine, table = engine(HIGH)
    outcomes = feed(machine, table, [1, 9, 1, 1])
    for attempt in (1, 1, 2):
        machine.rewind(2)
        outcomes += feed(machine, table, [9, 1, 1], start=2, attempt=attempt)
    told = [intent for _, outcome in outcomes for intent in outcome.intents if intent.action == "notify"]
    ids = ["High@2", "High@2#1.2", "High@2#1.3", "High@2#2"]
    assert [intent.incidents[0].id for intent in told] == [each for each in ids for _ in range(2)]
    assert len({notice_id(intent) for intent in told}) == 8


def test_going_back_behind_a_jump_finds_the_samples_before_it(engine):
    """What came after the jump must not push them out of the history, however full it is."""
    machine, table = engine(HIGH.replace("loss > 5", "max_over_time(loss[5]) > 5"))
    series = table.register("loss", [{}])
    frames = [Frame(step) for step in (*range(1, 17), *range(100, 200))]
    for frame in frames:
        frame.add(series, [9.0 if frame.step == 16 else 1.0])
        frame.close()
        machine.step(frame)
    machine.rewind(18)
    recall(machine, frames, 18)
    assert changes(feed(machine, table, [1.0], start=18)) == [(18, "fired")]


def test_alerts_that_go_back_are_told_of_in_the_order_of_the_rules(engine):
    """Whichever of them has been evaluated first; a replay, which has not resumed, says the same."""
    rules = HIGH + "        for: 9\n        warmup: 4\n" + HIGH.replace("High", "Also") + "        for: 9\n"
    machine, table = engine(rules)
    feed(machine, table, [9] * 6)
    assert [each.rule for each in machine.rewind(1)] == ["High", "Also"]


def test_a_training_that_stands_still_is_told_of_again_and_again(engine):
    again = LadderStep("notify", "oncall", repeat=Duration(seconds=600.0))
    machine, table = engine(HIGH, replace(NOTIFY, ladder=lambda _: (again,)))
    told = [intent for _, outcome in feed(machine, table, [9]) for intent in outcome.intents]
    for hours in (1, 2, 3):
        told += machine.pause(10.0 + 3600.0 * hours, "standstill").intents
    assert [intent.reason for intent in told] == ["opened", "repeat", "repeat", "repeat"]
    assert len({notice_id(intent) for intent in told}) == 4, "the outbox takes each id once"


def test_shadow_rules_are_evaluated_and_never_escalated(engine):
    outcomes = feed(*engine(HIGH + "        mode: shadow\n"), [9, 1])
    assert changes(outcomes) == [(1, "fired"), (2, "resolved")]
    assert all(not outcome.intents for _, outcome in outcomes)


def test_the_wall_clock_alone_moves_only_rules_that_look_at_it(engine):
    rules = (
        HIGH
        + """
      - alert: Stalled
        when: {stalled: {after: 10s}}
        labels: {severity: critical}
"""
    )
    machine, table = engine(rules)
    assert machine.tick(5.0) is None, "before the first step nothing has stalled"
    feed(machine, table, [9.0, 9.0])
    assert machine.tick(29.0) is None
    stalled = machine.tick(31.0)
    assert [(each.rule, each.reason, each.value) for each in stalled.transitions] == [("Stalled", "fired", 11.0)]
    assert {incident.rule for incident in stalled.incidents} == {"High", "Stalled"}
    again = machine.tick(32.0)
    assert not again.transitions
    ((_, ended),) = feed(machine, table, [9.0], start=3)
    assert [(each.rule, each.reason) for each in ended.transitions] == [("Stalled", "resolved")]


def test_lowest_is_worst_where_the_rule_looks_below(engine):
    rule = """
      - alert: Low
        expr: throughput < 10
        labels: {severity: warning}
        limit: 2
"""
    machine, table = engine(rule)
    series = table.register("throughput", [{"rank": rank} for rank in "0123"])
    frame = Frame(1)
    frame.add(series, [5.0, 1.0, 7.0, 3.0])
    frame.close()
    (incident,) = machine.step(frame).incidents
    assert (incident.count, [sample.value for sample in incident.firing]) == (4, [1.0, 3.0])


def two_rules(engine, first, second, **settings):
    """An engine with the first rules, and the rules of the second text."""
    machine, table = engine(first, **settings)
    other, _ = engine(second)
    return machine, table, [watch.rule for watch in other.watches]


def renewed(machine, rules, policy=NOTIFY, receivers=("oncall",), time=0.0):
    return machine.replace(rules, policy, 200, receivers, time)


def test_other_rules_keep_what_those_of_the_same_name_know(engine):
    rule = HIGH + "        for_records: 3\n"
    extra = "\n      - alert: Low\n        expr: loss < 2\n        labels: {severity: critical}\n"
    machine, table, rules = two_rules(engine, rule, extra + rule)
    before = feed(machine, table, [9, 9])
    assert renewed(machine, rules).transitions == ()
    after = feed(machine, table, [9, 9, 1], start=3)
    assert changes(before + after) == [(1, "breach"), (3, "fired"), (5, "fired"), (5, "resolved")]
    (incident,) = [each for each in after[0][1].incidents if each.rule == "High"]
    assert (incident.since.step, incident.opened.step) == (1, 3)


def test_a_rule_that_is_gone_ends_its_alerts_and_is_told(engine):
    other = HIGH.replace("High", "Other").replace("> 5", "> 50")
    machine, table, rules = two_rules(engine, HIGH, other)
    opened = feed(machine, table, [9])
    outcome = renewed(machine, rules)
    assert [(each.rule, each.reason) for each in outcome.transitions] == [("High", "expired")]
    assert [(each.reason, each.incidents[0].ending) for each in outcome.intents if each.action == "notify"] == [
        ("resolved", "expired")
    ]
    later = feed(machine, table, [99, 1], start=2)
    assert notices(opened + later) == [(1, "opened", ["High"]), (2, "opened", ["Other"]), (3, "resolved", ["Other"])]


def test_what_was_told_is_not_told_again_under_another_grouping_or_ladder(engine):
    """The log's line of the ladder, too, wherever it stands now."""
    machine, table, rules = two_rules(engine, HIGH, HIGH)
    feed(machine, table, [9, 9])
    policy = Policy(
        ladder=lambda incident: (
            LadderStep("profile", {"steps": 3}, after=Duration(steps=90)),
            LadderStep("log", "error"),
            LadderStep("notify", "oncall"),
        ),
        group=lambda incident: (("rule", incident.rule),),
        group_interval=lambda receiver: Duration(steps=50),
    )
    renewed(machine, rules, policy)
    outcomes = feed(machine, table, [9, 9, 1], start=3)
    assert [(step, each.action, each.reason) for step, outcome in outcomes for each in outcome.intents] == [
        (5, "log", "resolved"),
        (5, "notify", "resolved"),
    ]


def test_a_receiver_that_is_gone_is_forgotten(engine):
    machine, table, rules = two_rules(engine, HIGH, HIGH)
    feed(machine, table, [9])
    nobody = Policy(lambda _: (LadderStep("log", "error"),), NOTIFY.group, lambda _: Duration(steps=50))
    renewed(machine, rules, nobody, receivers=())
    assert notices(feed(machine, table, [9, 1], start=2)) == []
    assert machine.standing.told == {}


def test_windows_that_other_rules_kept_are_seen_by_a_new_one(engine):
    jump = "\n      - alert: Jump\n        expr: spike_ratio(loss[20], 3) > 4\n        labels: {severity: critical}\n"
    machine, table, rules = two_rules(engine, jump, jump + jump.replace("Jump", "Again").replace("> 4", "> 3"))
    feed(machine, table, [1.0] * 10)
    renewed(machine, rules)
    ((_, outcome),) = feed(machine, table, [6.0], start=11)
    assert {each.rule for each in outcome.transitions} == {"Jump", "Again"}


def test_what_a_new_rule_sees_depends_on_the_old_rules_alone(engine):
    """A resumed run has read only a part of the samples, and its rings are full at other steps."""
    mean = HIGH.replace("loss > 5", "avg_over_time(loss[50]) > 100")
    deep = HIGH.replace("High", "Deep").replace("loss > 5", "count_over_time(loss[200]) > 0")
    values = set()
    for begin in (1, 97, 110, 131, 300):
        machine, table, rules = two_rules(engine, mean, mean + deep)
        feed(machine, table, [1.0] * (400 - begin), start=begin)
        renewed(machine, rules)
        ((_, outcome),) = feed(machine, table, [1.0], start=400)
        values.update((each.rule, each.value) for each in outcome.transitions)
    assert len(values) == 1


def test_a_metric_that_comes_as_rules_are_replaced_is_found(engine):
    """Trimming asks selectors, and one without a name finds the ring of the metric that is new."""
    run, table = engine("      - {alert: High, expr: '{__name__=~\"loss|other\"} > 5', labels: {severity: info}}\n")
    feed(run, table, [1.0] * 5)
    table.register("other", [{}])
    run.replace([watch.rule for watch in run.watches], NOTIFY, 200, (), 60.0)
    assert changes(feed(run, table, [9.0], metric="other", start=6)) == [(6, "fired")]
