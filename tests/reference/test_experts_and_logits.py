"""Rows 44 to 88 of the reference's checklist, as far as they need no trainer: tokens by expert, attention logits."""

from __future__ import annotations

import json
import logging
from pathlib import Path

import numpy as np
import pytest
from reference_run import EXAMPLES, config_of, printed, refusals, samples, session_of, sound

from healthwatch.config import MoEMonitor, load_config
from healthwatch.monitors.layout import Stack
from healthwatch.monitors.log_records import LogRecords
from healthwatch.monitors.max_logits import MaxLogits
from healthwatch.monitors.moe import TokensPerExpert
from healthwatch.monitors.pace import Pace
from healthwatch.recording import Run
from healthwatch.session import Session
from healthwatch.stream import Frame, SeriesTable

LAYERS = (
    {"block": "decoder", "layer": "0"},
    {"block": "decoder", "layer": "5"},
    {"block": "mtp", "layer": "0", "mtp_idx": "0"},
)
COUNTS = np.array([[3, 1], [4, 0], [2, 2]])
EXPERTS = [{**layer, "expert": str(expert)} for layer in LAYERS for expert in range(2)]
HEADS = [{**layer, "head": str(head)} for layer in LAYERS[:2] for head in range(2)]
LOGITS = np.array([2.5221, 2.1029, -0.123456, 11754.9])


def moe(**settings: object) -> dict:
    return {"monitor": {"moe_monitor": settings}}


def run_experts(hw: Session, steps: range, micro_steps: int = 2) -> None:
    for step in steps:
        for micro_step in range(micro_steps):
            hw.log_values("tokens_per_expert", COUNTS.ravel(), EXPERTS, micro_step)
        hw.step(1.0, step=step)


def expert_lines(folder: Path, caplog, settings: dict, steps: range = range(1, 3), micro_steps: int = 2) -> list[dict]:
    with session_of(folder, settings).attach() as hw:
        run_experts(hw, steps, micro_steps)
    return [json.loads(line) for line in printed(caplog.records)]


@pytest.mark.row(3)
@pytest.mark.row(57)
def test_rows_003_057_expert_load_works_and_is_json(tmp_path: Path, caplog: pytest.LogCaptureFixture):
    first, *_ = expert_lines(tmp_path, caplog, moe(save_tokens_per_expert_interval=1))
    assert first == {"iter": 1, "step": 1, "micro_step": 1, "block": "decoder", "layer": 0, "tpe": [[3, 1]]}


@pytest.mark.row(44)
def test_row_044_tokens_of_every_expert_of_every_layer():
    table = SeriesTable()
    monitor = TokensPerExpert(LAYERS, [2, 2, 2])
    monitor.register(table)
    monitor.micro_step(Stack.of(COUNTS))
    frame = Frame(1)
    monitor.flush(frame)
    frame.close()
    (column,) = [column for column in frame.columns if column.series.metric == "tokens_per_expert"]
    found = {tuple(sorted(labels)): value for labels, value in zip(column.series.labels, column.values, strict=True)}
    assert found == {tuple(sorted(each.items())): value for each, value in zip(EXPERTS, COUNTS.ravel(), strict=True)}
    assert len(found) == len(EXPERTS)  # mtp layer 0 is not decoder layer 0


@pytest.mark.row(46)
def test_row_046_the_alert_says_what_to_do():
    from healthwatch.rulefile import load_rules

    rules = {rule.name: rule for rule in load_rules(["builtin:moe"]).rules}
    for name in ("ExpertSaturation", "ExpertImbalance"):
        action = rules[name].annotations["action"]
        assert "load-balancing loss" in str(action)


@pytest.mark.row(15)
@pytest.mark.row(47)
@pytest.mark.parametrize("interval", [None, 3])
def test_rows_015_047_active_with_a_positive_interval(tmp_path: Path, interval: int | None):
    config = sound(tmp_path, moe(save_tokens_per_expert_interval=interval))
    assert ("moe_monitor" in LogRecords.of(config).printers) == (interval is not None)
    assert sound(tmp_path, moe()).moe_monitor.save_tokens_per_expert_interval is None


@pytest.mark.row(48)
def test_row_048_the_interval_counts_micro_steps(tmp_path: Path, caplog: pytest.LogCaptureFixture):
    lines = expert_lines(tmp_path, caplog, moe(save_tokens_per_expert_interval=3, target_layers=1), range(1, 6))
    assert [(line["iter"], line["step"], line["micro_step"]) for line in lines] == [(3, 2, 1), (6, 3, 2), (9, 5, 1)]
    with Run.open(tmp_path / "output") as run:
        assert all(len(samples(frame, "tokens_per_expert")) for frame in run.frames())  # for the rules, at every one


@pytest.mark.row(49)
@pytest.mark.row(50)
@pytest.mark.parametrize("wrong", [True, False, 0, -1, 1.5, "10"])
def test_rows_049_050_intervals_that_are_refused(tmp_path: Path, wrong: object):
    assert len(refusals(tmp_path, moe(save_tokens_per_expert_interval=wrong))) == 1


@pytest.mark.row(51)
@pytest.mark.row(52)
@pytest.mark.row(53)
@pytest.mark.row(54)
@pytest.mark.parametrize(
    ("target", "layers"),
    [
        (None, [("decoder", 0), ("decoder", 5), ("mtp", 0)]),
        (6, [("decoder", 0), ("decoder", 5)]),
        (5, [("decoder", 0)]),
        ([5], [("decoder", 5)]),
        ([5, 0], [("decoder", 0), ("decoder", 5)]),
    ],
)
def test_which_layers_are_printed(tmp_path: Path, caplog, target: object, layers: list):
    settings = moe(save_tokens_per_expert_interval=1, target_layers=target)
    lines = expert_lines(tmp_path, caplog, settings, range(1, 2), micro_steps=1)
    assert [(line["block"], line["layer"]) for line in lines] == layers
    assert sound(tmp_path, moe()).moe_monitor == MoEMonitor(None, None)


@pytest.mark.row(55)
@pytest.mark.parametrize("wrong", [True, 0, -3, "4", [0, "a"], [1.5], [-1], [True], {"a": 1}])
def test_row_055_target_layers_that_are_refused(tmp_path: Path, wrong: object):
    assert len(refusals(tmp_path, moe(target_layers=wrong))) == 1


@pytest.mark.row(56)
def test_row_056_a_layer_without_experts_is_told_once(tmp_path: Path, caplog: pytest.LogCaptureFixture):
    expert_lines(tmp_path, caplog, moe(save_tokens_per_expert_interval=1, target_layers=[0, 3, 99]), range(1, 4))
    told = [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]
    assert [line for line in told if "MoE" in line] == [
        f"decoder.layers.{layer} is not a MoE layer, no tokens_per_expert." for layer in (3, 99)
    ]


@pytest.mark.row(56)
def test_row_056_a_model_without_experts(tmp_path: Path, caplog: pytest.LogCaptureFixture):
    with session_of(tmp_path, moe(save_tokens_per_expert_interval=1, target_layers=[3])).attach() as hw:
        for _ in range(4):
            hw.step(1.0)
    assert sum("decoder.layers.3 is not a MoE layer" in record.getMessage() for record in caplog.records) == 1


@pytest.mark.row(58)
def test_row_058_iter_goes_on_across_a_resume(tmp_path: Path, caplog: pytest.LogCaptureFixture):
    settings = moe(save_tokens_per_expert_interval=1, target_layers=1)
    with session_of(tmp_path, settings).attach() as hw:
        run_experts(hw, range(1, 4))
    with session_of(tmp_path, settings).attach(first_step=3) as hw:
        run_experts(hw, range(3, 5))
    lines = [json.loads(line) for line in printed(caplog.records)]
    assert [line["iter"] for line in lines] == [1, 2, 3, 4, 5, 6, 5, 6, 7, 8]


@pytest.mark.row(59)
@pytest.mark.row(60)
@pytest.mark.row(61)
@pytest.mark.row(62)
@pytest.mark.row(63)
def test_rows_059_to_063_the_fields_of_a_record(tmp_path: Path, caplog: pytest.LogCaptureFixture):
    lines = expert_lines(tmp_path, caplog, moe(save_tokens_per_expert_interval=2), range(1, 2))
    assert [list(line) for line in lines] == [
        ["iter", "step", "micro_step", "block", "layer", "tpe"],
        ["iter", "step", "micro_step", "block", "layer", "tpe"],
        ["iter", "step", "micro_step", "block", "mtp_idx", "layer", "tpe"],
    ]
    assert [line["tpe"] for line in lines] == [[[3, 1]], [[4, 0]], [[2, 2]]]
    assert {(line["iter"], line["step"], line["micro_step"]) for line in lines} == {(2, 1, 2)}


@pytest.mark.row(63)
def test_row_063_counts_are_those_of_the_micro_batch():
    monitor = TokensPerExpert(LAYERS[:1], [2])
    monitor.register(SeriesTable())
    for step in (1, 2):
        for micro_step in (1, 2):
            monitor.micro_step(Stack.of([COUNTS[0] * (2 * (step - 1) + micro_step)]))  # a counter that grows for ever
        frame = Frame(step)
        monitor.flush(frame)
        frame.close()
        values = [column.values.tolist() for column in frame.columns if column.series.metric == "tokens_per_expert"]
        assert values == [[3, 1], [3, 1]]


def block(number: int) -> Path:
    (path,) = EXAMPLES.glob(f"{number}-*.yaml")
    return path


@pytest.mark.row(64)
def test_row_064_block_4():
    config, found = load_config(block(4))
    assert (config.moe_monitor, found) == (MoEMonitor(10, (0, 5, 10)), [])


@pytest.mark.row(65)
@pytest.mark.parametrize("target", [4, None])
def test_row_065_the_first_layers_or_all(tmp_path: Path, target: int | None):
    settings = moe(save_tokens_per_expert_interval=10, target_layers=target)
    assert sound(tmp_path, settings).moe_monitor == MoEMonitor(10, target)


# Attention logits


def callback(**settings: object) -> dict:
    return {"callbacks": [{"type": "MaxLogitsMonitor", **settings}], "training": {"steps": 20}}


def run_logits(folder: Path, settings: dict, steps: int = 3) -> None:
    with session_of(folder, settings).attach() as hw:
        for _ in range(steps):
            hw.log_values("max_attention_logit", LOGITS, HEADS)
            hw.step(1.0)


@pytest.mark.row(66)
def test_row_066_a_callback_not_a_part_of_monitor(tmp_path: Path):
    assert sound(tmp_path, callback()).max_logits_interval == 1
    assert sound(tmp_path, {"monitor": {"MaxLogitsMonitor": {}}}).max_logits_interval is None


@pytest.mark.row(67)
def test_row_067_every_layer_at_every_step(tmp_path: Path, caplog: pytest.LogCaptureFixture):
    run_logits(tmp_path, callback())
    lines = [line for line in printed(caplog.records) if "layers" in line]
    assert [(line[:12], line.split("layers.")[1][0]) for line in lines] == [
        (f"step:[    {step}/", layer) for step in (1, 2, 3) for layer in "05"
    ]


@pytest.mark.row(68)
@pytest.mark.row(70)
@pytest.mark.row(71)
@pytest.mark.row(72)
def test_rows_068_070_071_072_the_lines_of_a_step(tmp_path: Path, caplog: pytest.LogCaptureFixture):
    run_logits(tmp_path, callback(), steps=1)
    assert printed(caplog.records) == [
        "step:[    1/   20] max_attention_logit/decoder.layers.0.max_logits_val: [2.522, 2.103]",
        "step:[    1/   20] max_attention_logit/decoder.layers.5.max_logits_val: [-0.1235, 1.175e+04]",
        "step:[    1/   20] max_attention_logit/mean: 2940",
        "step:[    1/   20] max_attention_logit/max: 1.175e+04",
    ]


@pytest.mark.row(70)
def test_row_070_the_parameters_own_name_where_it_is_known(tmp_path: Path):
    layer = tuple(sorted(LAYERS[0].items()))
    name = "decoder.layers.0.self_attention.core_attention.max_logits_val"
    records = LogRecords.of(sound(tmp_path, callback()), {layer: name})
    table, frame = SeriesTable(), Frame(1)
    frame.add(table.register("max_attention_logit", HEADS[:2]), LOGITS[:2])
    frame.close()
    assert next(iter(records.lines(frame))) == f"step:[    1/   20] max_attention_logit/{name}: [2.522, 2.103]"


@pytest.mark.row(69)
def test_row_069_each_step_starts_afresh():
    monitor = MaxLogits(LAYERS[:1])
    monitor.register(SeriesTable())
    found = []
    for highest in (9.0, 2.0):
        monitor.micro_step(Stack.of([np.array([1.0, highest])]))
        monitor.micro_step(Stack.of([np.array([0.5, 0.5])]))
        frame = Frame(1)
        monitor.flush(frame)
        frame.close()
        found.append(frame.columns[0].values.tolist())
    assert found == [[1.0, 9.0], [1.0, 2.0]]


@pytest.mark.row(73)
def test_row_073_the_layer_and_the_step_where_the_rise_starts(tmp_path: Path):
    from healthwatch.session import load

    path = tmp_path / "train.yaml"
    path.write_text(f"healthwatch: {{output: {tmp_path / 'output'}, rules: ['builtin:attention']}}")
    with load(path, lambda model, guard: None).attach() as hw:
        for step in range(1, 8):
            hw.log_values("max_attention_logit", [5.0, 5.0, 5.0, 200.0 if step >= 4 else 5.0], HEADS)
            hw.step(1.0)
    with Run.open(tmp_path / "output") as run:
        (fired,) = [each for each in run.transitions() if each.reason == "fired"]
    labels = dict(fired.labels)
    assert (fired.rule, fired.now.step) == ("AttentionLogitHigh", 4)
    assert (labels["layer"], labels["head"]) == ("5", "1")


@pytest.mark.row(74)
def test_row_074_a_clip_without_effect_is_told(tmp_path: Path):
    from healthwatch.session import load

    path = tmp_path / "train.yaml"
    path.write_text(
        "optimizer: {type: Muon, qk_clip_threshold: 50}\n"
        f"healthwatch: {{output: {tmp_path / 'output'}, rules: ['builtin:attention']}}"
    )
    session = load(path, lambda model, guard: Logits(session.config.qk_clip_threshold))
    with session.attach(object()) as hw:
        for _ in range(6):
            hw.step(1.0)
    with Run.open(tmp_path / "output") as run:
        fired = {(each.rule, each.now.step) for each in run.transitions() if each.reason == "fired"}
    assert fired == {("AttentionClipIneffective", 5)}


class Logits:
    """An integration whose only head stays at 60."""

    profiler = None
    printed = ()
    pace = Pace(())
    logit_names = {}  # noqa: RUF012

    def __init__(self, threshold: float | None) -> None:
        self.monitor = MaxLogits(LAYERS[:1], threshold)

    def attach(self, model, optimizer, config, table):
        self.monitor.register(table)
        return [self.monitor]

    def step(self, loss, grads=None):
        self.monitor.micro_step(Stack.of([np.array([60.0])]))

    def detach(self):
        pass


@pytest.mark.row(75)
def test_row_075_block_5():
    config, found = load_config(block(5))
    assert (config.max_logits_interval, found) == (1, [])


@pytest.mark.row(76)
def test_row_076_every_step_unless_told(tmp_path: Path):
    assert sound(tmp_path, callback()).max_logits_interval == 1
    assert sound(tmp_path, callback(step_interval=7)).max_logits_interval == 7


@pytest.mark.row(77)
@pytest.mark.parametrize("wrong", [0, -1, True, 1.5, "2"])
def test_row_077_intervals_that_are_refused(tmp_path: Path, wrong: object):
    assert len(refusals(tmp_path, callback(step_interval=wrong))) == 1


@pytest.mark.row(78)
@pytest.mark.row(80)
def test_rows_078_080_an_interval_governs_printing_alone(tmp_path: Path, caplog: pytest.LogCaptureFixture):
    run_logits(tmp_path, callback(step_interval=2), steps=5)
    assert {line[:13] for line in printed(caplog.records)} == {"step:[    2/ ", "step:[    4/ "}
    with Run.open(tmp_path / "output") as run:
        assert [len(samples(frame, "max_attention_logit")) for frame in run.frames()] != [0] * 5
        assert all(samples(frame, "max_attention_logit") for frame in run.frames())


@pytest.mark.row(79)
def test_row_079_nothing_is_printed_where_there_is_no_data(tmp_path: Path, caplog: pytest.LogCaptureFixture):
    with session_of(tmp_path, callback()).attach() as hw:
        hw.step(1.0)
    assert printed(caplog.records) == []


@pytest.mark.row(82)
@pytest.mark.parametrize(
    ("optimizer", "threshold"),
    [
        ({"type": "Muon"}, 100.0),
        ({"type": "Muon", "qk_clip_enabled": True, "qk_clip_threshold": 30}, 30.0),
        ({"type": "Muon", "qk_clip_enabled": False}, None),
        ({"type": "AdamW", "qk_clip_enabled": True}, None),
    ],
)
def test_row_082_muon_clips_unless_told(tmp_path: Path, optimizer: dict, threshold: float | None):
    config = sound(tmp_path, {"optimizer": optimizer})
    assert (config.qk_clip_threshold, config.qk_clip) == (threshold, threshold is not None)


@pytest.mark.row(83)
def test_row_083_check_says_what_to_add_for_attention_rules(tmp_path: Path):
    from healthwatch.config import load_all

    path = tmp_path / "train.yaml"
    ours = "healthwatch: {rules: ['builtin:attention']}\n"

    def remarks(text: str) -> list[tuple[str, int]]:
        path.write_text(ours + text)
        return [(each.code, each.span.line) for each in load_all(path).diagnostics if each.code == "HW038"]

    assert remarks("callbacks:\n  - type: HealthWatch\n") == [("HW038", 3)]
    assert remarks("callbacks:\n  - type: HealthWatch\n  - type: MaxLogitsMonitor\n") == []
    assert remarks("optimizer: {type: Muon}\ncallbacks:\n  - type: HealthWatch\n") == []
    assert remarks("callbacks: []\n") == []


@pytest.mark.row(87)
def test_row_087_tracking_alone_prints_nothing(tmp_path: Path, caplog: pytest.LogCaptureFixture):
    run_logits(tmp_path, {"optimizer": {"type": "Muon"}})
    assert printed(caplog.records) == []


@pytest.mark.row(88)
def test_row_088_block_6():
    config, found = load_config(block(6))
    assert (config.max_logits_interval, config.qk_clip_threshold, found) == (50, 100.0, [])


def test_what_healthwatch_prints_healthwatch_reads(tmp_path: Path, caplog: pytest.LogCaptureFixture):
    """Frames read back from a log are those of the training, in what the lines hold."""
    from healthwatch.readers import open_log

    settings = {**callback(), **moe(save_tokens_per_expert_interval=1)}
    settings["monitor"]["train_state"] = {"local_norm": True, "device_norm": True}
    params = [{"param": name} for name in ("a.weight", "b.weight")]
    with session_of(tmp_path, settings).attach() as hw:
        for step in range(1, 4):
            for micro_step in range(2):
                hw.log_values("local_norm", [step + micro_step / 7, 1e-9], params, micro_step)
                hw.log_values("tokens_per_expert", COUNTS.ravel() + step, EXPERTS, micro_step)
            hw.log_values("device_norm", [float("nan"), float("inf")], params)
            hw.log_values("max_attention_logit", LOGITS + step, HEADS)
            hw.step(1.0)
    log = tmp_path / "training.log"
    log.write_text("\n".join(f"INFO {record.getMessage()}" for record in caplog.records))
    with Run.open(tmp_path / "output") as run:
        trained = list(run.frames())
    read = list(open_log(log).frames())
    assert [frame.step for frame in read] == [1, 2, 3]
    for ours, theirs in zip(read, trained, strict=True):
        assert ours.micro_steps == theirs.micro_steps
        for metric, tolerance in (("local_norm", 5e-7), ("tokens_per_expert", 0), ("device_norm", 0)):
            assert samples(ours, metric) == pytest.approx(samples(theirs, metric), abs=tolerance, nan_ok=True)
        metric = "max_attention_logit"
        assert samples(ours, metric) == pytest.approx(samples(theirs, metric), rel=5e-4)


def test_a_config_of_the_reference_is_never_refused(tmp_path: Path):
    assert len(list(EXAMPLES.glob("*.yaml"))) == 9
    for path in EXAMPLES.glob("*.yaml"):
        config, found = load_config(path)
        assert config is not None
        assert found == []
    assert config_of(tmp_path, {})[0] is not None
