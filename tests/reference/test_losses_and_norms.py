"""Rows 1 to 43 of the reference's checklist: losses and norms by micro-step."""

from __future__ import annotations

import itertools
import json
import logging
from pathlib import Path

import pytest
import yaml
from reference_run import EXAMPLES, NAMES, config_of, printed, refusals, samples, session_of, sound, train

from healthwatch.config import TrainState, load_config
from healthwatch.monitors.log_records import LogRecords, selected

EVERYTHING = {"local_norm": True, "local_loss": True, "device_norm": True, "device_loss": True}


def monitor(**switches: object) -> dict:
    return {"monitor": {"train_state": switches}}


@pytest.mark.row(1)
@pytest.mark.row(7)
def test_both_capabilities_come_from_the_training_yaml(tmp_path: Path):
    config = sound(
        tmp_path, {**monitor(device_loss=True), "profiler": {"enable_profiling": True, "start_step": 5, "end_step": 7}}
    )
    assert config.train_state.device_loss
    assert (config.profiler.enable_profiling, config.profiler.start_step) == (True, 5)


@pytest.mark.row(7)
def test_row_007_unknown_keys_are_the_trainers_but_for_our_section(tmp_path: Path):
    foreign = {"monitor": {"tensorboard": {"output_dir": "x"}, "anything": 1}, "training": {"steps": 5}, "more": [1]}
    assert not refusals(tmp_path, foreign)
    (tmp_path / "ours.yaml").write_text("healthwatch: {anything: 1}")
    assert load_config(tmp_path / "ours.yaml")[0] is None


@pytest.mark.row(8)
@pytest.mark.parametrize("sections", [("monitor",), ("profiler",), ("monitor", "profiler"), ()])
def test_row_008_each_alone_and_both_together(tmp_path: Path, sections: tuple[str, ...]):
    whole = {**monitor(**EVERYTHING), "profiler": {"enable_profiling": True, "start_step": 5, "end_step": 6}}
    config = sound(tmp_path, {name: whole[name] for name in sections})
    assert bool(LogRecords.of(config).printers) == ("monitor" in sections)
    assert config.profiler.enable_profiling == ("profiler" in sections)


@pytest.mark.row(2)
@pytest.mark.row(17)
def test_losses_and_norms_by_micro_step_and_by_step(tmp_path: Path):
    (frame,) = train(tmp_path, {})
    assert {micro for micro, _ in samples(frame, "local_norm")} == {0, 1}
    assert {micro for micro, _ in samples(frame, "local_loss")} == {0, 1}
    assert {micro for micro, _ in samples(frame, "device_norm")} == {None}
    assert {micro for micro, _ in samples(frame, "device_loss")} == {None}


@pytest.mark.row(4)
def test_row_004_lines_go_to_the_logger_healthwatch_as_info(tmp_path: Path, caplog: pytest.LogCaptureFixture):
    train(tmp_path, monitor(local_loss=True))
    lines = [record for record in caplog.records if "local_loss" in record.getMessage()]
    assert {(record.name, record.levelno) for record in lines} == {("healthwatch", logging.INFO)}


@pytest.mark.row(9)
@pytest.mark.row(34)
@pytest.mark.row(35)
def test_rows_009_034_035_the_lines_of_a_step(tmp_path: Path, caplog: pytest.LogCaptureFixture):
    train(tmp_path, monitor(**{**EVERYTHING, "local_norm": "layernorm", "device_norm": ["layernorm", "qkv"]}))
    assert printed(caplog.records) == [
        '{"step": 1, "micro_step": 1, "local_loss": 1.0}',
        '{"step": 1, "micro_step": 2, "local_loss": 2.0}',
        '{"step": 1, "device_loss": 1.5}',
        '{ "step": 1, "micro_step": 1 }',
        '{ "local_norm": decoder.layers.0.input_layernorm.weight:   3.000000 }',
        '{ "step": 1, "micro_step": 2 }',
        '{ "local_norm": decoder.layers.0.input_layernorm.weight:   2.000000 }',
        '{ "step": 1 }',
        '{ "device_norm": decoder.layers.0.self_attention.linear_qkv.weight:   5.000000 }',
        '{ "device_norm": decoder.layers.0.input_layernorm.weight:   5.000000 }',
    ]


@pytest.mark.row(11)
def test_row_011_the_monitor_section(tmp_path: Path):
    whole = {"train_state": {"local_loss": True}, "moe_monitor": {"save_tokens_per_expert_interval": 5}}
    left = {"health_checkpoint": {"enable": True}, "tensorboard": {"output_dir": "./tb", "log_interval": 2}}
    config = sound(tmp_path, {"monitor": {**whole, **left}})
    assert config.train_state.local_loss
    assert config.moe_monitor.save_tokens_per_expert_interval == 5


@pytest.mark.row(12)
def test_row_012_what_can_not_be_used_is_refused_before_step_1(tmp_path: Path):
    from healthwatch.diagnostics import Invalid

    with pytest.raises(Invalid):
        session_of(tmp_path, monitor(local_loss="yes"))


@pytest.mark.row(13)
@pytest.mark.parametrize(
    ("sections", "created"),
    [
        ({}, set()),
        (monitor(), set()),
        (monitor(local_norm="", device_norm=False), set()),
        (monitor(device_loss=True), {"train_state"}),
        ({"monitor": {"moe_monitor": {"save_tokens_per_expert_interval": 2}}}, {"moe_monitor"}),
        ({"callbacks": [{"type": "MaxLogitsMonitor"}]}, {"max_logits"}),
    ],
)
def test_row_013_only_active_monitors_exist(tmp_path: Path, sections: dict, created: set[str]):
    assert set(LogRecords.of(sound(tmp_path, sections)).printers) == created


@pytest.mark.row(14)
@pytest.mark.row(18)
@pytest.mark.parametrize("switches", list(itertools.product([False, True], repeat=4)))
def test_rows_014_018_all_combinations_of_switches(tmp_path: Path, caplog, switches: tuple[bool, ...]):
    chosen = dict(zip(EVERYTHING, switches, strict=True))
    (frame,) = train(tmp_path, monitor(**chosen))
    lines = printed(caplog.records)
    assert {name for name in EVERYTHING if any(f'"{name}"' in line for line in lines)} == {
        name for name, on in chosen.items() if on
    }
    assert all(samples(frame, name) for name in EVERYTHING)  # for the rules, printed or not
    config = sound(tmp_path, monitor(**chosen))
    assert ("train_state" in LogRecords.of(config).printers) == any(switches)


@pytest.mark.row(16)
def test_row_016_lines_come_at_the_end_of_the_step(tmp_path: Path, caplog: pytest.LogCaptureFixture):
    with session_of(tmp_path, monitor(**EVERYTHING)).attach(object()) as hw:
        hw.micro_step(1.0)
        assert printed(caplog.records) == []
        hw.step(1.0)
        assert printed(caplog.records)


@pytest.mark.row(19)
@pytest.mark.row(20)
@pytest.mark.row(21)
@pytest.mark.row(23)
@pytest.mark.row(25)
@pytest.mark.parametrize("key", ["local_norm", "device_norm"])
@pytest.mark.parametrize(
    ("written", "meaning"),
    [
        (True, True),
        (False, False),
        ("", False),
        ([], False),
        ([""], False),
        (None, False),
        ("layernorm", ("layernorm",)),
        (["attention", "layernorm"], ("attention", "layernorm")),
    ],
)
def test_what_a_norm_switch_means(tmp_path: Path, key: str, written: object, meaning: object):
    assert getattr(sound(tmp_path, monitor(**{key: written})).train_state, key) == meaning
    assert getattr(sound(tmp_path, {}).train_state, key) is False


@pytest.mark.row(21)
@pytest.mark.mindspore
def test_row_021_only_trainable_parameters_have_norms():
    mindspore = pytest.importorskip("mindspore", reason="needs the mindspore extra")
    from healthwatch.integrations.mindspore.optimizer import parameter_names

    dense = mindspore.nn.Dense(2, 2)
    dense.bias.requires_grad = False
    optimizer = mindspore.nn.SGD(dense.get_parameters(), 0.1)
    assert parameter_names(dense, optimizer) == ("weight",)


@pytest.mark.row(22)
@pytest.mark.row(42)
def test_rows_022_042_a_filter_is_a_part_of_a_name(tmp_path: Path):
    assert [name for name in NAMES if selected(name, ("layers.0",))] == list(NAMES[1:3])
    assert [name for name in NAMES if selected(name, ("layers.1",))] == list(NAMES[3:])  # and layer 10
    assert [name for name in NAMES if selected(name, ("attention", "layernorm"))] == list(NAMES[1:3])
    assert [name for name in NAMES if selected(name, ("embedding",))] == [NAMES[0]]
    assert [name for name in NAMES if selected(name, True)] == list(NAMES)
    _, found = config_of(tmp_path, monitor(local_norm=["layers.1"]))
    assert [(each.code, each.severity) for each in found] == [("HW034", "info")]
    assert '"layers.10"' in found[0].message


@pytest.mark.row(24)
@pytest.mark.row(26)
def test_rows_024_026_losses_as_the_loop_hands_them_over(tmp_path: Path):
    (frame,) = train(tmp_path, {})
    assert samples(frame, "local_loss") == {(0, ""): 1.0, (1, ""): 2.0}
    assert samples(frame, "device_loss") == {(None, ""): 1.5}
    assert sound(tmp_path, {}).train_state == TrainState()


@pytest.mark.row(27)
@pytest.mark.parametrize(
    "wrong",
    [
        {"local_norm": 1},
        {"local_norm": {"a": 1}},
        {"local_norm": ["a", 1]},
        {"device_norm": 0.5},
        {"local_loss": "yes"},
        {"local_loss": 1},
        {"device_loss": ["a"]},
    ],
)
def test_row_027_wrong_types_are_refused(tmp_path: Path, wrong: dict):
    assert len(refusals(tmp_path, monitor(**wrong))) == 1


@pytest.mark.row(28)
def test_row_028_device_norm_needs_local_norms_whether_or_not_they_are_printed(tmp_path: Path, caplog):
    (frame,) = train(tmp_path, monitor(device_norm=True))
    assert len(samples(frame, "local_norm")) == 2 * len(NAMES)
    lines = printed(caplog.records)
    assert not any("local_norm" in line for line in lines)
    assert sum("device_norm" in line for line in lines) == len(NAMES)


@pytest.mark.row(29)
@pytest.mark.row(33)
def test_rows_029_033_device_norm_is_the_accumulated_norm(tmp_path: Path):
    (frame,) = train(tmp_path, {})
    assert set(samples(frame, "device_norm").values()) == {5.0}  # of 3 and 4 at a right angle


@pytest.mark.row(30)
def test_row_030_both_norms_are_filtered_apart(tmp_path: Path, caplog: pytest.LogCaptureFixture):
    train(tmp_path, monitor(local_norm="embedding", device_norm=["fc1"]))
    lines = printed(caplog.records)
    assert {line.split(":")[1].strip() for line in lines if "local_norm" in line} == {NAMES[0]}
    assert {line.split(":")[1].strip() for line in lines if "device_norm" in line} == set(NAMES[3:])


@pytest.mark.row(31)
@pytest.mark.row(32)
def test_rows_031_032_local_norm_is_what_a_micro_batch_adds(tmp_path: Path):
    (frame,) = train(tmp_path, {})
    local, micro = samples(frame, "local_norm"), samples(frame, "micro_norm")
    assert {local[0, name] for name in NAMES} == {3.0}
    assert {local[1, name] for name in NAMES} == {2.0}
    assert {micro[1, name] for name in NAMES} == {4.0}  # the norm of the micro-batch itself does not shrink


@pytest.mark.row(35)
def test_row_035_a_marker_before_the_norms_of_each_micro_step(tmp_path: Path, caplog: pytest.LogCaptureFixture):
    train(tmp_path, monitor(local_norm=True), steps=2)
    lines = printed(caplog.records)
    markers = [place for place, line in enumerate(lines) if "micro_step" in line]
    assert [lines[place] for place in markers] == [
        f'{{ "step": {step}, "micro_step": {micro} }}' for step in (1, 2) for micro in (1, 2)
    ]
    assert markers == [0, 6, 12, 18]


@pytest.mark.row(36)
def test_row_036_a_local_loss_carries_step_and_micro_step(tmp_path: Path, caplog: pytest.LogCaptureFixture):
    train(tmp_path, monitor(local_loss=True), steps=2)
    assert [json.loads(line) for line in printed(caplog.records)] == [
        {"step": step, "micro_step": micro, "local_loss": float(micro)} for step in (1, 2) for micro in (1, 2)
    ]


@pytest.mark.row(37)
def test_row_037_device_loss_is_that_of_the_finished_step(tmp_path: Path, caplog: pytest.LogCaptureFixture):
    train(tmp_path, monitor(device_loss=True), steps=2)
    assert printed(caplog.records) == ['{"step": 1, "device_loss": 1.5}', '{"step": 2, "device_loss": 1.5}']


@pytest.mark.row(38)
@pytest.mark.parametrize("empty", [None, {}, {"train_state": None}, {"train_state": None, "moe_monitor": None}])
def test_row_038_an_empty_monitor_prints_nothing(tmp_path: Path, caplog: pytest.LogCaptureFixture, empty: object):
    (frame,) = train(tmp_path, {"monitor": empty})
    assert printed(caplog.records) == []
    assert samples(frame, "loss") == {(None, ""): 1.5}


def block(number: int) -> Path:
    (path,) = EXAMPLES.glob(f"{number}-*.yaml")
    return path


@pytest.mark.row(39)
def test_row_039_block_1():
    config, found = load_config(block(1))
    assert (config.train_state, found) == (TrainState(device_loss=True), [])


@pytest.mark.row(41)
def test_row_041_block_2():
    config, found = load_config(block(2))
    assert (config.train_state, found) == (TrainState(local_norm=("attention", "layernorm"), local_loss=True), [])


@pytest.mark.row(43)
def test_row_043_block_3():
    config, found = load_config(block(3))
    assert (config.train_state, found) == (TrainState(local_norm=True, device_norm=True, device_loss=True), [])


@pytest.mark.row(40)
def test_row_040_the_faulty_layer_and_its_micro_batch_are_named(tmp_path: Path, caplog: pytest.LogCaptureFixture):
    from healthwatch.session import load

    path = tmp_path / "train.yaml"
    sections = yaml.safe_load(block(2).read_text())
    sections["healthwatch"] = {"output": str(tmp_path / "output"), "rules": ["builtin:gradients"]}
    path.write_text(yaml.safe_dump(sections))
    params = [{"param": name} for name in NAMES]
    with load(path, lambda model, guard: None).attach() as hw:
        for step in range(1, 5):
            for micro_step in range(2):
                broken = step == 3 and micro_step == 1
                hw.log_values("local_norm", [1.0, float("nan") if broken else 1.0, 1.0, 1.0, 1.0], params, micro_step)
            hw.step(1.0)
    (line,) = [
        record.getMessage() for record in caplog.records if record.getMessage().startswith("GradNormNonFinite f")
    ]
    assert "step 3, micro-step 2" in line
    assert NAMES[1] in line
    assert NAMES[0] not in line
