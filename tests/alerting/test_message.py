"""What a person reads."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from datetime import timedelta, timezone
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from healthwatch.actions.captures.manifest import CaptureNote
from healthwatch.alerting.message import number_text, render, series_text
from healthwatch.alerting.model import SEVERITIES, Incident, Intent, Now, Sample, Trace
from healthwatch.rulefile.template import Template, compile_template

CHINA = timezone(timedelta(hours=8))
NOW = Now(153, 1_800_000_060.0)


@dataclass(frozen=True)
class Text:
    annotations: dict[str, Template] = field(default_factory=dict)
    limit: int = 10


def text(limit: int = 10, **annotations: str) -> Text:
    return Text({name: compile_template(written)[0] for name, written in annotations.items()}, limit)


def series(count: int, metric: str = "micro_norm") -> tuple[Sample, ...]:
    return tuple(
        Sample((("__name__", metric), ("param", f"decoder.layers.{number}.wq")), 100.0 - number)
        for number in range(count)
    )


def incident(rule: str = "GradNormSpike", severity: str = "critical", **fields) -> Incident:
    given_ = {
        "id": f"{rule}@153",
        "rule": rule,
        "severity": severity,
        "opened": NOW,
        "since": Now(151, 1_800_000_000.0),
        "micro_step": 2,
        "firing": series(1),
        "count": len(fields.get("firing", "1")),
        "joined": len(fields.get("firing", "1")),
    }
    return Incident(**{**given_, **fields})


def message(*incidents: Incident, reason="opened", rules=None, captures=None, now=NOW):
    intent = Intent("notify", "oncall", reason, incidents, now, (("run", "demo"),))
    return render(intent, run="demo", rank=3, rules=rules or {}, captures=captures, zone=CHINA)


SPIKE = text(
    summary="{{ $labels.param }}: gradient norm is {{ $value }} times its own median",
    action="Look at the micro-batch named here.",
)


def test_one_incident_in_full():
    told = message(incident(firing=series(12)), rules={"GradNormSpike": SPIKE})
    assert told.title == "CRITICAL: GradNormSpike, run demo"
    assert told.receiver == "oncall"
    assert told.severity == "critical"
    assert told.incidents == ("GradNormSpike@153",)
    assert told.body.splitlines() == [
        "Run `demo`, rank 3, step 153.",
        "",
        "**GradNormSpike** (critical): decoder.layers.0.wq: gradient norm is 100 times its own median",
        "",
        "- Since step 151, micro-step 2, 2027-01-15 16:00:00+08:00",
        "- What to do: Look at the micro-batch named here.",
        "- Worst 10 of 12 series:",
        *[f'    - `micro_norm{{param="decoder.layers.{number}.wq"}}` {100 - number}' for number in range(10)],
        "    - … 2 more",
    ]


@pytest.mark.parametrize(
    ("labels", "names"),
    [
        ({"__name__": "max_attention_logit", "block": "decoder", "head": "3", "layer": "0"}, 'head="3", layer="0"'),
        ({"block": "decoder", "expert": "5", "layer": "7"}, 'expert="5", layer="7"'),
        ({"__name__": "local_norm", "param": "embed.weight"}, 'local_norm{param="embed.weight"}'),
    ],
)
def test_a_rule_without_annotations_still_names_what_is_wrong(labels, names):
    told = message(incident(firing=(Sample(tuple(labels.items()), 123.4567891),)))
    assert names in told.body
    assert "123.457" in told.body
    assert "micro-step 2" in told.body


def test_details_are_listed_beside_coarser_labels():
    details = tuple(Sample((("expert", str(number)), ("layer", "0")), 0.9) for number in (3, 5))
    told = message(incident("RouterSaturation", firing=(Sample((("layer", "0"),), 0.97),), details=details))
    assert '`{layer="0"}` 0.97' in told.body
    assert '`{expert="3", layer="0"}` 0.9' in told.body
    assert '`{expert="5", layer="0"}` 0.9' in told.body


def test_the_limit_of_a_rule_bounds_its_list():
    told = message(incident(firing=series(9)), rules={"GradNormSpike": text(limit=4)})
    assert "Worst 4 of 9 series" in told.body
    assert "… 5 more" in told.body


def test_5000_series_make_one_message_with_the_worst_ten():
    told = message(incident(firing=series(10), count=5000))
    assert "Worst 10 of 5000 series" in told.body
    assert "… 4990 more" in told.body
    assert len(told.body) < 1500


def test_a_group_names_every_incident_first():
    """Case 066: five rules of one step are one message that names them all, critical first."""
    names = {
        "norm_spike_L3": "warning",
        "norm_spike_L5": "warning",
        "nan_norm": "critical",
        "nan_loss": "critical",
        "scale_collapse": "warning",
    }
    told = message(*(incident(name, severity, firing=series(30)) for name, severity in names.items()))
    assert told.title == "CRITICAL: nan_loss and 4 more, run demo"
    head = told.body[:250]
    assert "5 incidents, 5 firing" in head
    assert all(f"`{name}` ({severity})" in head for name, severity in names.items())
    assert head.index("nan_norm") < head.index("norm_spike_L3")
    assert "Worst 10 of 30" in told.body
    assert told.body.count("Worst 3 of 30") == 4, "the first one at length, the others in short"


def test_what_is_held_stands_last_in_one_line():
    """A silenced incident that the receiver knows of leads no message: no title, count, severity or command."""
    held = incident("NaNLoss", "critical", silenced=True, firing=series(2), since=Now(2, 1_800_000_000.0))
    quiet = incident("NormSpike", "warning", inhibited=True, since=Now(3, 1_800_000_000.0))
    first = series(1, "loss")[0].labels
    new = [incident(name, "warning", firing=series(2), first=first) for name in ("LossHigh", "LossLow")]
    intent = Intent("notify", "oncall", "joined", (replace(held, first=()), quiet, *new), NOW, (("run", "demo"),))
    told = render(intent, run="demo", rank=3, rules={}, zone=CHINA, output=Path("out"))
    assert (told.title, told.severity) == ("WARNING: LossHigh and 1 more, run demo", "warning")
    head, *_, command, last = told.body.strip().split("\n\n")
    assert head.splitlines()[1] == "2 incidents, 2 firing: `LossHigh` (warning), `LossLow` (warning)"
    assert 'First to fire: `loss{param="decoder.layers.0.wq"}` (LossHigh)' in head
    assert command == "To silence it: `healthwatch silence add out 'alertname=~LossHigh|LossLow' --for 2h`"
    assert last == "Held back: `NaNLoss` (critical, silenced), `NormSpike` (warning, inhibited)"
    assert told.body.count("NaNLoss") == told.body.count("NormSpike") == 1
    assert told.incidents == ("LossHigh@153", "LossLow@153", "NaNLoss@153", "NormSpike@153")
    assert [alert["labels"]["alertname"] for alert in told.extra["alerts"]] == ["LossHigh", "LossLow"]


def test_beside_what_is_held_one_incident_is_told_as_one_alone():
    told = message(incident("NaNLoss", silenced=True), incident(severity="warning"), reason="severity")
    assert told.title == "WARNING: GradNormSpike, run demo"
    assert told.body.splitlines()[0] == "Run `demo`, rank 3, step 153: now warning."
    assert "incidents" not in told.body


def test_an_end_is_told_whatever_held_the_incident():
    ended = incident(ended=NOW, ending="resolved", silenced=True, inhibited=True)
    told = message(ended, reason="resolved")
    assert told.title == "RESOLVED: GradNormSpike (critical), run demo"
    assert "- Resolved at step 153" in told.body
    assert "Held back" not in told.body


def test_a_series_without_labels_has_no_braces():
    """A rule on one sum: nothing names its series."""
    alone = incident(firing=(Sample((), 3.38, now=3.4, baseline=1.1),), first=(), joined=2, count=1)
    told = message(alone)
    assert "{}" not in told.body
    assert told.body.splitlines()[0] == (
        "Run `demo`, rank 3, step 153. First to fire: GradNormSpike, step 151, micro-step 2."
    )
    assert "**GradNormSpike** (critical): the value is 3.38" in told.body
    assert "- Worst: 3.38 (now 3.4, baseline 1.1, ratio 3.09091)" in told.body
    traced = replace(alone, traces=(Trace((), (1.0,), (3.38,)),))
    assert message(traced).extra["plot"]["series"][0]["name"] == "GradNormSpike"


def test_a_great_many_incidents_are_named_at_least():
    told = message(*(incident(f"Rule{number}") for number in range(40)))
    assert all(f"`Rule{number}`" in told.body for number in range(40))
    assert "… 30 more incidents, named above" in told.body
    vast = message(*(incident(f"Rule{number}") for number in range(5000)))
    assert "5000 incidents, 5000 firing" in vast.body
    assert "and 4900 more" in vast.body
    assert len(vast.body) < 10_000


def test_resolved_says_when_and_confirms_the_capture(tmp_path):
    trace = tmp_path / "trace_view.json"
    ended = incident(ended=Now(163, 1_800_000_120.0), ending="resolved")
    note = CaptureNote(("GradNormSpike@153",), tmp_path, 154, 156, "finished", trace=trace)
    told = message(
        ended,
        reason="resolved",
        rules={"GradNormSpike": SPIKE},
        captures={"GradNormSpike@153": note},
        now=Now(163, 1_800_000_120.0),
    )
    assert told.title == "RESOLVED: GradNormSpike (critical), run demo"
    assert "- Resolved at step 163, 2027-01-15 16:02:00+08:00" in told.body
    assert f"- Profile of steps 154 to 156: `{trace}`" in told.body
    assert "What to do" not in told.body


@pytest.mark.parametrize(
    ("note", "line"),
    [
        (
            CaptureNote(("GradNormSpike@153",), Path("out/x"), 154, 156, "armed"),
            "- Profile of steps 154 to 156 will be in `out/x`",
        ),
        (
            CaptureNote(
                ("GradNormSpike@153",), Path("out/x"), 154, 156, "refused", refused="another profiler is active"
            ),
            "- No profile: another profiler is active",
        ),
    ],
)
def test_a_message_says_where_the_capture_will_be_or_why_not(note, line):
    assert line in message(incident(), captures={"GradNormSpike@153": note}).body


def test_expired_is_never_called_resolved():
    gone = incident(ended=Now(353, 0.0), ending="expired")
    alone = message(gone, reason="resolved")
    assert alone.title == "STOPPED REPORTING: GradNormSpike (critical), run demo"
    assert "esolved" not in alone.body
    assert "Stopped reporting" in alone.body
    mixed = message(gone, incident("NaNLoss", ended=Now(353, 0.0), ending="resolved"), reason="resolved")
    assert mixed.title.startswith("ENDED: ")


def test_an_earlier_attempt_is_named():
    since = Now(1200, 1_800_000_000.0, attempt=2)
    assert "Since step 1200, micro-step 2 (attempt 2)" in message(incident(since=since)).body


@pytest.mark.parametrize(
    ("reason", "word"),
    [("joined", "more has joined"), ("severity", "now critical"), ("repeat", "still firing"), ("resolved", "over")],
)
def test_every_message_says_what_is_new(reason, word):
    assert word in message(incident(), reason=reason).body.splitlines()[0]


@pytest.mark.parametrize(
    ("value", "shown"),
    [(math.nan, "NaN"), (math.inf, "+Inf"), (-math.inf, "-Inf"), (0.1234567, "0.123457"), (1e-9, "1e-09"), (3, "3")],
)
def test_numbers(value, shown):
    assert number_text(value) == shown


def test_series_are_written_as_prometheus_writes_them():
    assert series_text(()) == "{}"
    assert series_text((("__name__", "loss"),)) == "loss"
    assert series_text((("p", 'a"b\\c\nd'),)) == '{p="a\\"b\\\\c\\nd"}'


def test_the_same_news_has_the_same_id():
    one, other = incident(), incident("NaNLoss")
    assert message(one, other).id == message(other, one).id
    ids = {
        message(one).id,
        message(one, other).id,
        message(one, reason="repeat").id,
        message(one, now=replace(NOW, step=154)).id,
        message(one, now=replace(NOW, attempt=2)).id,
    }
    assert len(ids) == 5


words = st.text('ab`*_<>{}"\\ \n梯🔥', max_size=20)


@given(
    st.lists(
        st.builds(
            lambda rule, severity, value, label, ended, silenced: incident(
                rule or "R",
                severity,
                firing=(Sample((("param", label),), value),),
                ended=NOW if ended else None,
                ending="resolved" if ended else None,
                silenced=silenced,
            ),
            words,
            st.sampled_from(SEVERITIES),
            st.floats(),
            words,
            st.booleans(),
            st.booleans(),
        ),
        min_size=1,
        max_size=15,
    ),
    st.sampled_from(["opened", "joined", "severity", "repeat", "resolved"]),
)
def test_any_incident_can_be_told(incidents, reason):
    told = message(*incidents, reason=reason)
    assert len(told.title) <= 200
    assert "\n" not in told.title
    assert len(told.body.splitlines()[0]) > 0
    assert told.body == message(*incidents, reason=reason).body


@given(st.text("a`", min_size=1, max_size=12))
def test_backticks_in_a_name_do_not_end_its_code_span(name):
    from markdown import markdown  # what apprise converts with

    told = message(incident(firing=(Sample((("param", name),), 1.0),)))
    assert f'param="{name}"' in markdown(told.body).replace("&quot;", '"')
