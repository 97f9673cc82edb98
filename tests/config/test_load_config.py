"""The training YAML to a Config: defaults, every key, and one mistake after the other to its message."""
# ruff: noqa: E501 - the table of mistakes has one line for each

from __future__ import annotations

import hashlib
from collections.abc import Callable
from itertools import product
from pathlib import Path

import pytest

from healthwatch.config import (
    CaptureSettings,
    Checked,
    Config,
    LadderStep,
    MoEMonitor,
    ProfilerSection,
    Receiver,
    Secret,
    TrainState,
    load_all,
    load_config,
)
from healthwatch.diagnostics import Diagnostic, errors, render_json, render_text
from healthwatch.stream.ticks import Duration

Load = Callable[..., tuple[Config | None, list[Diagnostic]]]
LoadAll = Callable[..., Checked]

RULE = """groups:
  - name: g
    rules:
      - alert: Own
        expr: loss > $k
        params: {k: 8}
        labels: {severity: warning}
        annotations: {action: look}
"""


@pytest.fixture
def load(tmp_path: Path) -> Load:
    def load(text: str, **environment: str) -> tuple[Config | None, list[Diagnostic]]:
        path = tmp_path / "train.yaml"
        path.write_text(text, encoding="utf-8")
        return load_config(path, environment)

    return load


@pytest.fixture
def check(tmp_path: Path) -> LoadAll:
    def check(text: str, **environment: str) -> Checked:
        (tmp_path / "own.yaml").write_text(RULE, encoding="utf-8")
        (tmp_path / "train.yaml").write_text(text, encoding="utf-8")
        return load_all(tmp_path / "train.yaml", environment)

    return check


def sound(result: tuple[Config | None, list[Diagnostic]]) -> Config:
    config, diagnostics = result
    assert diagnostics == [], render_text(diagnostics)
    assert config is not None
    return config


@pytest.mark.parametrize("text", ["healthwatch: {}", "healthwatch:", "healthwatch: null\nmodel: null\nmonitor: null"])
def test_the_section_alone_is_enough(load: Load, text: str) -> None:
    config = sound(load(text))
    assert config.run == "train"
    assert config.output == Path("./output/healthwatch")
    assert config.rules[:2] == ("builtin:attention", "builtin:gradients")
    assert config.digest == hashlib.sha256(text.encode()).hexdigest()
    assert config.escalation == {
        "critical": (LadderStep("log", "error"),),
        "warning": (LadderStep("log", "warning"),),
        "info": (LadderStep("log", "info"),),
    }
    assert (config.group_by, config.no_data_after, config.late_after, config.budget) == (("run",), 200, 30.0, 0.02)
    assert config.capture == CaptureSettings(3, 500, 5 * 2**30, 20 * 2**30, ("culprit",), None)
    assert (config.train_state, config.moe_monitor, config.max_logits_interval) == (TrainState(), MoEMonitor(), None)
    assert (config.profiler, config.top_k, config.qk_clip) == (ProfilerSection(), None, False)
    assert (config.disabled, config.dry_run, config.record_max_size) == (False, False, None)


def test_everything(load: Load, tmp_path: Path) -> None:
    (tmp_path / "mail").write_text("mailto://me:pw@host\n", encoding="utf-8")
    config = sound(load("""
model: {model_config: {moe_router_topk: 8, unknown: {to: us}}}
optimizer: {type: Muon}
monitor:
  train_state: {local_norm: [attention, layernorm], local_loss: true, device_norm: embedding, device_loss: true}
  moe_monitor: {save_tokens_per_expert_interval: 10, target_layers: [0, 5, 10]}
  tensorboard: {anything: 1}
callbacks:
  - {type: OtherMonitor, step_interval: x}
  - {type: MaxLogitsMonitor, step_interval: 50}
profiler: {enable_profiling: false, profiler_level: 1, output_path: ./output/profile, profiler_rank: [0, 1], with_stack: false}
healthwatch:
  run: qwen3
  output: ./out
  rules: [builtin:loss, ./my-rules.yaml]
  override: {LossSpike: {params: {ratio: 12}}, ExpertDead: {enabled: false}}
  escalation:
    critical:
      - log: error
      - profile: {steps: 5}
      - profile:
      - notify: oncall
        repeat: 500
    night:
      - notify: oncall
        after: 10m
        when_state: resolved
  capture: {max_captures: 8, cooldown: 0, min_free_disk: 500 MB, max_total_size: 1.5GiB, ranks: [culprit, 0], reference_at: 20}
  record: {max_size: 2GiB}
  group_by: [run, layer]
  no_data_after: 100
  late_after: 1m30s
  budget: 1.5%
  receivers:
    oncall: {urls: ["${SLACK_URL}", "${file:mail}", "json://${HOST}:${PORT}/x"], group_interval: 7}
    plain: {urls: [json://localhost]}
""", SLACK_URL=" slack://token ", HOST="h", PORT="80"))  # fmt: skip
    assert (config.run, config.output) == ("qwen3", Path("./out"))
    assert config.rules == ("builtin:loss", str(tmp_path / "my-rules.yaml"))
    assert config.override == {"LossSpike": {"params": {"ratio": 12}}, "ExpertDead": {"enabled": False}}
    assert config.escalation["critical"] == (
        LadderStep("log", "error"),
        LadderStep("profile", {"steps": 5}),
        LadderStep("profile", {"steps": 3}),
        LadderStep("notify", "oncall", repeat=Duration(steps=500)),
    )
    assert config.escalation["night"] == (
        LadderStep("notify", "oncall", after=Duration(seconds=600.0), when_state="resolved"),
    )
    assert config.receivers["oncall"] == Receiver(
        "oncall",
        (Secret("slack://token"), Secret("mailto://me:pw@host"), Secret("json://h:80/x")),
        Duration(steps=7),
    )
    assert config.receivers["plain"].group_interval == Duration(steps=50)
    assert config.capture == CaptureSettings(8, 0, 500_000_000, 3 * 2**29, ("culprit", 0), 20)
    assert (config.record_max_size, config.group_by, config.no_data_after) == (2 * 2**30, ("run", "layer"), 100)
    assert (config.late_after, config.budget) == (90.0, 0.015)
    assert config.train_state == TrainState(("attention", "layernorm"), True, ("embedding",), True)
    assert config.moe_monitor == MoEMonitor(10, (0, 5, 10))
    assert (config.max_logits_interval, config.top_k, config.qk_clip) == (50, 8, True)
    assert config.profiler == ProfilerSection(
        output_path="./output/profile", profiler_rank=(0, 1), profiler_level=1, with_stack=False
    )


MONITOR_NAMES = [  # rows 19-25: what local_norm and device_norm mean
    ("true", True),
    ("false", False),
    ('""', False),
    ("[]", False),
    ('[""]', False),
    ("null", False),
    ("embedding", ("embedding",)),
    ("[attention, layernorm]", ("attention", "layernorm")),
]


@pytest.mark.parametrize(("written", "meaning"), MONITOR_NAMES)
@pytest.mark.parametrize("key", ["local_norm", "device_norm"])
def test_name_filters(load: Load, key: str, written: str, meaning: object) -> None:
    config = sound(load(f"monitor: {{train_state: {{{key}: {written}}}}}\nhealthwatch: {{}}"))
    assert getattr(config.train_state, key) == meaning


def test_all_sixteen_combinations_of_switches(load: Load) -> None:
    """Row 18: the four switches are independent."""
    for values in product((False, True), repeat=4):
        names = ("local_norm", "local_loss", "device_norm", "device_loss")
        written = ", ".join(f"{name}: {str(value).lower()}" for name, value in zip(names, values, strict=True))
        config = sound(load(f"monitor: {{train_state: {{{written}}}}}\nhealthwatch: {{}}"))
        assert tuple(getattr(config.train_state, name) for name in names) == values


@pytest.mark.parametrize(("written", "meaning"), [("3", 3), ("[0, 2]", (0, 2)), ("null", None)])
def test_target_layers(load: Load, written: str, meaning: object) -> None:
    """Rows 51-54."""
    config = sound(load(f"monitor: {{moe_monitor: {{target_layers: {written}}}}}\nhealthwatch: {{}}"))
    assert config.moe_monitor == MoEMonitor(None, meaning)  # type: ignore[arg-type]


def test_max_logits_monitor_prints_every_step_unless_told(load: Load) -> None:
    """Row 76."""
    assert sound(load("callbacks: [{type: MaxLogitsMonitor}]\nhealthwatch: {}")).max_logits_interval == 1


@pytest.mark.parametrize(
    ("optimizer", "clips"),
    [
        ("{type: Muon}", True),
        ("{type: Muon, qk_clip_enabled: true}", True),
        ("{type: Muon, qk_clip_enabled: false}", False),
        ("{type: AdamW, qk_clip_enabled: true}", False),
    ],
)
def test_qk_clip(load: Load, optimizer: str, clips: bool) -> None:
    """Row 82: on by default under Muon."""
    assert sound(load(f"optimizer: {optimizer}\nhealthwatch: {{}}")).qk_clip is clips


MISTAKES = {
    # name: (text, code, (line, column, end), message, part of the help)
    "no section": ("model: {}\n", "HW021", (1, 1, 10), "this file has no healthwatch section", "healthwatch: {}"),
    "section misspelt": ("healtwatch: {}\n", "HW021", (1, 1, 11), "this file has no healthwatch section", '"healthwatch"'),
    "section a list": ("healthwatch: []\n", "HW009", (1, 14, 16), '"healthwatch" must be a healthwatch section, not a list', ""),
    "not yaml": ("healthwatch: {run: x\n", "HW003", (1, 14, 15), "this quote or bracket is never closed", "close it"),
    "duplicate": ("healthwatch: {run: a, run: b}\n", "HW004", (1, 23, 26), 'duplicate key "run"', ""),
    "unknown key": ("healthwatch: {reciever: {}}\n", "HW007", (1, 15, 23), 'unknown key "reciever" in healthwatch section', '"receivers"'),
    "on": ("healthwatch: {on: 1}\n", "HW005", (1, 15, 17), "YAML reads the key on as true", '"on":'),
    "size": ("healthwatch: {record: {max_size: 2 Gigs}}\n", "HW010", (1, 34, 40), '"max_size": "2 Gigs" is not a size', "GiB"),
    "duration": ("healthwatch: {late_after: 30}\n", "HW009", (1, 27, 29), '"late_after" must be a wall-clock duration, not 30', "Wall-clock"),
    "budget": ("healthwatch: {budget: 2}\n", "HW010", (1, 23, 24), '"budget" must be at most 1, not 2', ""),
    "rank": ("healthwatch: {capture: {ranks: [all, culprt]}}\n", "HW010", (1, 38, 44), 'item 2 of "ranks": "culprt" is not a rank, culprit, peers or all', ""),
    "no action": ("healthwatch: {escalation: {critical: [{after: 3}]}}\n", "HW032", (1, 39, 49), "this step has no action", "notify"),
    "empty step": ("healthwatch: {escalation: {critical: [{}]}}\n", "HW032", (1, 39, 41), "this step has no action", "notify"),
    "no level": ("healthwatch: {escalation: {critical: [{log: eror}]}}\n", "HW010", (1, 45, 49), '"log" can\'t be "eror"', "error"),
    "two actions": ("healthwatch: {escalation: {critical: [{log: error, profile: {}}]}}\n", "HW032", (1, 52, 59), "one step does one action, not log and profile", ""),
    "action misspelt": ("healthwatch: {escalation: {critical: [{notfy: a}]}}\n", "HW007", (1, 40, 45), 'unknown key "notfy" in ladder step', '"notify"'),
    "stop without a word": ("healthwatch: {escalation: {critical: [{stop: now}]}}\n", "HW009", (1, 46, 49), '"stop" must be true or false, not the text "now"', ""),
    "log level": ("healthwatch: {escalation: {critical: [{log: eror}]}}\n", "HW010", (1, 45, 49), '"log" can\'t be "eror"', '"error"'),
    "arguments beside": ("healthwatch:\n  escalation:\n    critical:\n      - profile:\n        steps: 3\n", "HW007", (5, 9, 14), 'unknown key "steps" in ladder step', 'indent "steps" deeper'),
    "receiver": ("healthwatch:\n  escalation: {critical: [{notify: oncal}]}\n  receivers: {oncall: {urls: [json://h]}}\n", "HW031", (2, 36, 41), 'no receiver is called "oncal"', '"oncall"'),
    "no urls": ("healthwatch: {receivers: {a: {}}}\n", "HW008", (1, 27, 28), '"a" lacks the key "urls"', "or alertmanager"),
    "urls a text": ("healthwatch: {receivers: {a: {urls: json://h}}}\n", "HW009", (1, 37, 45), '"urls" must be a list, not the text "json://*"', ""),
    "variable": ('healthwatch: {receivers: {a: {urls: ["x ${SLACK_URL}"]}}}\n', "HW030", (1, 41, 53), "the environment variable SLACK_URL is not set", '"SLACK_URI"'),
    "empty variable": ('healthwatch: {receivers: {a: {urls: ["${EMPTY}"]}}}\n', "HW030", (1, 39, 47), "the environment variable EMPTY is empty", ""),
    "open variable": ('healthwatch: {receivers: {a: {urls: ["${EMPTY"]}}}\n', "HW030", (1, 39, 46), "this ${ is never closed", ""),
    "odd variable": ('healthwatch: {receivers: {a: {urls: ["${A B}"]}}}\n', "HW030", (1, 39, 45), "${A B} names neither a variable nor a file", ""),
    "secret file": ('healthwatch: {receivers: {a: {urls: ["${file:no/such}"]}}}\n', "HW030", (1, 39, 54), "can't read the file no/such: No such file or directory", ""),
    "switch a text": ("monitor: {train_state: {local_loss: \"yes\"}}\nhealthwatch: {}\n", "HW009", (1, 37, 42), '"local_loss" must be true or false, not the text "yes"', ""),
    "names a number": ("monitor: {train_state: {local_norm: 3}}\nhealthwatch: {}\n", "HW009", (1, 37, 38), '"local_norm" must be true or false, text or a list, not 3', ""),
    "names a list of numbers": ("monitor: {train_state: {device_norm: [a, 3]}}\nhealthwatch: {}\n", "HW009", (1, 42, 43), 'item 2 of "device_norm" must be text, not 3', ""),
    "interval a bool": ("monitor: {moe_monitor: {save_tokens_per_expert_interval: True}}\nhealthwatch: {}\n", "HW009", (1, 58, 62), '"save_tokens_per_expert_interval" must be a whole number, not true', ""),
    "interval zero": ("monitor: {moe_monitor: {save_tokens_per_expert_interval: 0}}\nhealthwatch: {}\n", "HW010", (1, 58, 59), '"save_tokens_per_expert_interval" must be at least 1, not 0', ""),
    "layers a bool": ("monitor: {moe_monitor: {target_layers: true}}\nhealthwatch: {}\n", "HW009", (1, 40, 44), '"target_layers" must be a whole number or a list, not true', ""),
    "layers zero": ("monitor: {moe_monitor: {target_layers: 0}}\nhealthwatch: {}\n", "HW010", (1, 40, 41), '"target_layers" must be at least 1, not 0', ""),
    "layers negative": ("monitor: {moe_monitor: {target_layers: [0, -1]}}\nhealthwatch: {}\n", "HW010", (1, 44, 46), 'item 2 of "target_layers" must be at least 0, not -1', ""),
    "layers text": ("monitor: {moe_monitor: {target_layers: [a]}}\nhealthwatch: {}\n", "HW009", (1, 41, 42), 'item 1 of "target_layers" must be a whole number, not the text "a"', ""),
    "step interval": ("callbacks: [{type: X, step_interval: 0}, {type: MaxLogitsMonitor, step_interval: True}]\nhealthwatch: {}\n", "HW009", (1, 82, 86), '"step_interval" must be a whole number, not true', ""),
    "end before start": ("profiler: {enable_profiling: true, start_step: 5, end_step: 4}\nhealthwatch: {}\n", "HW033", (1, 61, 62), "end_step is 4, before start_step 5", "7"),
    "no end": ("profiler: {enable_profiling: true, start_step: 5}\nhealthwatch: {}\n", "HW033", (1, 48, 49), "end_step is still 1, before start_step 5", "7"),
    "start zero": ("profiler: {start_step: 0}\nhealthwatch: {}\n", "HW010", (1, 24, 25), '"start_step" must be at least 1, not 0', ""),
}  # fmt: skip


@pytest.mark.parametrize("name", MISTAKES)
def test_one_mistake(load: Load, name: str) -> None:
    text, code, (line, column, end), message, mend = MISTAKES[name]
    config, diagnostics = load(text, SLACK_URI="x", EMPTY=" ")
    assert config is None
    (found,) = errors(diagnostics)
    assert found.span is not None
    assert (found.code, found.message) == (code, message)
    assert (found.span.line, found.span.column, found.span.end_column) == (line, column, end), render_text([found])
    assert mend in found.help


NOTES = {
    "level": ("profiler: {profiler_level: 3}", "warning", "there is no profiler level 3"),
    "switched off window": ("profiler: {start_step: 5}", "warning", "end_step is still 1"),
    "first step": ("profiler: {enable_profiling: true, end_step: 3}", "info", "the window starts at step 1"),
    "long window": ("profiler: {enable_profiling: true, start_step: 5, end_step: 30}", "info", "the window is 26 steps long"),
    "layers.1": ("monitor: {train_state: {local_norm: [layers.1]}}", "info", '"layers.1" is a part of a name: it also matches "layers.10"'),
    "foreign duplicate": ("model: {a: 1, a: 2}", "warning", 'duplicate key "a"'),
}  # fmt: skip


@pytest.mark.parametrize("name", NOTES)
def test_what_is_worth_a_word_but_no_error(load: Load, name: str) -> None:
    text, severity, message = NOTES[name]
    config, (found,) = load(f"{text}\nhealthwatch: {{}}")
    assert config is not None
    assert (found.severity, found.message[: len(message)]) == (severity, message)


@pytest.mark.parametrize(
    ("section", "mend"),
    [
        ("escalation: {critical: {log: error}, warning: [{log: info}]}", "write [{log: error}]"),
        ("rules: builtin:loss", "write [builtin:loss]"),
        ("group_by: severity", "write [severity]"),
        ("override: {LossSpike: {ratio: 12}}", "write params: {ratio: 12}"),
        ("override: {LossSpike: {severity: info}}", "write labels: {severity: ...}"),
        ("override: {LossSpike: false}", "write {enabled: false}"),
        ("override: {LossSpike: off}", "write {enabled: false}"),
        ("override: {LossSpike: {enable: false}}", 'did you mean "enabled"?'),
        ('receivers: {a: {urls: "mailto:user"}}', ""),
        ('rules: "a, b"', ""),
        ("capture: {ranks: culprit}", "write [culprit]"),
        ("capture: {ranks: every}", ""),
        ("escalation: {critical: {lgo: error}, warning: [{log: info}]}", ""),
    ],
)
def test_the_form_that_was_meant_is_told_once(tmp_path: Path, section: str, mend: str) -> None:
    path = tmp_path / "train.yaml"
    path.write_text(f"healthwatch: {{{section}{'' if 'rules' in section else ', rules: [builtin:loss]'}}}\n", "utf-8")
    found = load_all(path, {}).diagnostics
    told = [each for each in found if each.code != "HW018"]  # "a, b" is no file either
    assert [each.help for each in told] == [mend], render_text(found)


def test_foreign_sections_belong_to_the_trainer(load: Load) -> None:
    """Row 7: unknown keys, and words that YAML reads in its own way, are left alone outside our section."""
    sound(
        load(
            "on: 1\n2: x\nmodel: {off: 010, lr: 1e-3, t: !!python/none x}\ntrain: [~]\nmonitor: {extra: 1, train_state: {own: 2}}\nhealthwatch: {}"
        )
    )


def test_all_problems_at_once(check: LoadAll) -> None:
    checked = check("""
monitor: {train_state: {local_norm: 3}}
healthwatch:
  rules: [builtin:los, own.yaml, ./no.yaml]
  override: {Ownn: {}, Own: {params: {q: 1}, escalation: nigth}}
  escalation: {night: [{log: info}]}
  budgt: 1
""")
    assert checked.config is None
    assert [found.code for found in checked.diagnostics] == [
        "HW009", "HW018", "HW018", "HW014", "HW019", "HW035", "HW007",
    ]  # fmt: skip
    assert "Own" in checked.diagnostics[3].help


def test_rules_are_loaded_with_their_overrides(check: LoadAll) -> None:
    checked = check("healthwatch: {rules: [own.yaml], override: {Own: {params: {k: 3}, labels: {severity: critical}}}}")
    assert checked.diagnostics == ()
    assert checked.config is not None
    (rule,) = checked.rules.rules
    assert (rule.params, rule.severity) == ({"k": 3}, "critical")


def test_a_severity_without_a_ladder_is_told(check: LoadAll) -> None:
    checked = check("healthwatch: {rules: [own.yaml], escalation: {critical: [{log: error}]}}")
    assert checked.config is not None
    (found,) = checked.diagnostics
    assert (found.code, found.severity) == ("HW035", "info")
    assert found.message == 'there is no ladder "warning": rules of this severity are recorded and tell nobody'


@pytest.mark.parametrize(
    ("override", "code", "severity", "under", "help_"),
    [
        ("{labels: {severity: criticl, team: x}}", "HW020", "warning", "criticl", 'did you mean "critical"?'),
        ("{labels: {team: '{{ $value }}'}}", "HW016", "error", "'{{ $value }}'", "annotations can"),
        ("{labels: {severty: critical}}", "HW041", "warning", "severty", 'did you mean "severity"?'),
        ("{params: {k: abc}}", "HW105", "error", "abc", ""),
    ],
)
def test_what_an_override_spoils_is_told_where_it_stands(
    check: LoadAll, tmp_path: Path, override: str, code: str, severity: str, under: str, help_: str
) -> None:
    text = f"healthwatch:\n  rules: [own.yaml]\n  override: {{Own: {override}}}\n"
    checked = check(text)
    (found,) = checked.diagnostics
    assert (found.code, found.severity, found.help) == (code, severity, help_)
    assert found.span is not None
    assert Path(found.span.file).name != "own.yaml"
    assert text.splitlines()[found.span.line - 1][found.span.column - 1 : found.span.end_column - 1] == under
    assert (checked.config is None) == (severity == "error")


def test_a_fault_of_the_rule_itself_stays_at_the_rule(check: LoadAll, tmp_path: Path) -> None:
    (tmp_path / "bad.yaml").write_text(RULE.replace("warning", "wrning"), encoding="utf-8")
    found = check("healthwatch: {rules: [bad.yaml], override: {Own: {params: {k: 3}, labels: {team: x}}}}").diagnostics
    (severity,) = (each for each in found if each.code == "HW020")
    assert severity.span is not None
    assert Path(severity.span.file).name == "bad.yaml"


def test_the_ladder_that_is_proposed_can_be_used(check: LoadAll) -> None:
    text = "healthwatch: {rules: [own.yaml], escalation: {critical: []%s}}"
    (found,) = check(text % "").diagnostics
    assert (found.code, found.help) == ("HW035", "add warning: [{log: warning}]")
    assert check(text % f", {found.help.removeprefix('add ')}").diagnostics == ()


def test_no_ladder_is_proposed_for_a_severity_that_there_is_not(check: LoadAll) -> None:
    text = "healthwatch: {rules: [own.yaml], override: {Own: {labels: {severity: hgih}}}, escalation: {critical: []}}"
    assert [each.code for each in check(text).diagnostics] == ["HW020"]


@pytest.mark.parametrize(
    ("ladder", "severity", "help_"),
    [
        ("warnig", "warning", 'did you mean "warning"?'),
        ("nigth", "warning", 'did you mean "night"?'),
        ("page", "info", ""),
    ],
)
def test_a_ladder_that_no_rule_climbs(check: LoadAll, ladder: str, severity: str, help_: str) -> None:
    ladders = "{info: [], critical: [{log: error}], warning: [], night: []}"
    climbing = f"rules: [own.yaml], override: {{Own: {{escalation: night}}}}, escalation: {ladders}"
    assert check(f"healthwatch: {{{climbing}}}").diagnostics == ()
    (found,) = check(f"healthwatch: {{{climbing.replace('night: []', f'night: [], {ladder}: []')}}}").diagnostics
    assert (found.code, found.severity, found.help) == ("HW042", severity, help_)
    assert found.message == f'no rule climbs the ladder "{ladder}"'


def test_a_problem_of_a_rule_refuses_the_config(check: LoadAll, tmp_path: Path) -> None:
    (tmp_path / "bad.yaml").write_text(RULE.replace("loss > $k", "loss >"), encoding="utf-8")
    checked = check("healthwatch: {rules: [bad.yaml]}")
    assert checked.config is None
    assert errors(checked.diagnostics)[0].code == "HW101"


@pytest.mark.parametrize(
    ("variable", "text", "disabled", "dry_run"),
    [
        ("HEALTHWATCH_DISABLED", "{}", True, False),
        ("HEALTHWATCH_DRY_RUN", "{}", False, True),
        ("OTHER", "{enabled: false, dry_run: true}", True, True),
    ],
)
def test_switches(load: Load, variable: str, text: str, disabled: bool, dry_run: bool) -> None:
    config = sound(load(f"healthwatch: {text}", **{variable: "1"}))
    assert (config.disabled, config.dry_run) == (disabled, dry_run)
    assert not sound(load("healthwatch: {}", HEALTHWATCH_DISABLED="0")).disabled


def test_nothing_is_sent_in_a_dry_run_so_a_secret_may_be_missing(load: Load) -> None:
    config, (found,) = load('healthwatch: {receivers: {a: {urls: ["${X}"]}}}', HEALTHWATCH_DRY_RUN="1")
    assert config is not None
    assert (found.code, found.severity) == ("HW030", "warning")


def test_a_secret_shows_nowhere(check: LoadAll, tmp_path: Path) -> None:
    (tmp_path / "token").write_text("json://t0ken-in-file", encoding="utf-8")
    text = """
healthwatch:
  escalation: {critical: [{notify: a}]}
  receivers:
    a: {urls: ["${URL}", "${file:token}", "json://inline-t0ken", "${MISSING} json://t0ken-beside"], unknwon: json://t0ken}
    b: {urls: "json://t0ken-as-text"}
    c: {urls: [[json://t0ken-in-list]]}
"""
    checked = check(text, URL="json://t0ken-in-variable")
    assert len(checked.diagnostics) >= 3
    shown = render_text(checked.diagnostics) + render_json(checked.diagnostics) + repr(checked)
    assert "t0ken" not in shown
    config = check("healthwatch: {receivers: {a: {urls: ['${URL}']}}}", URL="json://t0ken").config
    assert config is not None
    assert "t0ken" not in f"{config} {config!r} {config.receivers['a'].urls[0]}"
    assert config.receivers["a"].urls[0].reveal() == "json://t0ken"


@pytest.mark.parametrize(
    "receiver",
    [
        "{urls: xoxb-t0ken}", "{urls: [[xoxb-t0ken]], alertmanager: [t0ken]}", "{url: xoxb-t0ken}", "xoxb-t0ken", "[xoxb-t0ken]",
        "{urls: ['${UNSET}', xoxb-t0ken]}", "{urls: ['${UNSET}'], alertmanager: 'am:t0ken', group_interval: 0}",
    ],
)  # fmt: skip
def test_a_credential_in_the_wrong_place_shows_nowhere(load: Load, receiver: str) -> None:
    found = load(f"healthwatch:\n  receivers: {{a: {receiver}}}\n")[1]
    assert errors(found)
    assert "t0ken" not in render_text(found) + render_json(found)


def test_a_credential_that_goes_on_over_lines_shows_on_none(load: Load) -> None:
    text = (
        "healthwatch:\n  receivers:\n    a:\n      urls:\n        - >-\n          json://x\n          t0ken${MISSING}\n"
    )
    (found,) = errors(load(text)[1])
    assert (found.code, found.source) == ("HW030", "          *****${MISSING}")


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    config, (found,) = load_config(tmp_path / "no.yaml", {})
    assert config is None
    assert found.code == "HW001"
    assert load_all(tmp_path / "no.yaml", {}).rules.rules == ()


@pytest.mark.parametrize(
    ("name", "severity", "message", "help_"),
    [
        ("alertnam", "error", 'nothing that rules tell of has the label "alertnam"', 'did you mean "alertname"?'),
        ("teams", "error", 'nothing that rules tell of has the label "teams"', 'did you mean "team"?'),
        ("parm", "error", 'nothing that rules tell of has the label "parm"', 'did you mean "param"?'),
        (
            "colour",
            "warning",
            'nothing that rules tell of has the label "colour"',
            "labels that divide: alertname, rank, rule, run, severity, team",
        ),
        (
            "param",
            "warning",
            '"param" is a label of series: an incident holds all series of its rule, so it divides nothing',
            "group by alertname, or add it to the labels of rules",
        ),
    ],
)
def test_group_by_names_what_divides(check: LoadAll, name: str, severity: str, message: str, help_: str) -> None:
    override = "override: {Own: {labels: {team: vision}}}"
    text = f"healthwatch:\n  rules: [own.yaml]\n  {override}\n  group_by: [run, team, {name}]\n"
    checked = check(text)
    (found,) = checked.diagnostics
    assert (found.code, found.severity, found.message, found.help) == ("HW039", severity, message, help_)
    assert found.span is not None
    assert text.splitlines()[found.span.line - 1][found.span.column - 1 : found.span.end_column - 1] == name
    assert (checked.config is None) == (severity == "error")


@pytest.mark.parametrize("wrong", ["1", "~", "[run]", "{run: 1}", '""', "1.5", "true"])
def test_what_is_no_name_in_a_list_of_names_is_told_at_its_place(check: LoadAll, wrong: str) -> None:
    text = f"healthwatch:\n  rules: [{wrong}, no.yaml, own.yaml]\n  group_by: [run, {wrong}, severty]\n"
    checked = check(text)
    lines = text.splitlines()
    places = [each.span for each in checked.diagnostics]
    under = [lines[span.line - 1][span.column - 1 : span.end_column - 1] for span in places if span is not None]
    assert under == [wrong, "no.yaml", wrong, "severty"], render_text(checked.diagnostics)
    assert (checked.config, {each.severity for each in checked.diagnostics}) == (None, {"error"})


def test_group_by_what_every_incident_has(check: LoadAll) -> None:
    assert check("healthwatch: {rules: [own.yaml], group_by: [run, rank, alertname, severity, rule]}").diagnostics == ()
