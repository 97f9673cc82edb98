"""How the trainer comes to know the callback, and whether its model tracks attention logits."""

from __future__ import annotations

import os
import threading
from pathlib import Path
from types import SimpleNamespace

import pytest
import yaml


@pytest.fixture(scope="module")
def build(trainer_ready: Path):
    """The trainer's own way from an entry of `callbacks:` to a callback."""
    from mindformers.pynative.config.config import CallbackConfig
    from mindformers.pynative.trainer.trainer import patch_pynative_modules
    from mindformers.pynative.trainer.utils import _build_callback

    patch_pynative_modules()

    def build(**entry):
        return _build_callback(CallbackConfig.from_dict(entry))

    return build


@pytest.fixture
def unregistered(build):
    """As in a process in which nobody has imported healthwatch."""
    from mindformers.tools.register import MindFormerModuleType, MindFormerRegister

    from healthwatch.integrations.mindformers import HealthWatch

    registry = MindFormerRegister.registry[MindFormerModuleType.CALLBACK]
    kept = registry.pop("HealthWatch")
    yield registry
    registry["HealthWatch"] = kept
    assert kept is HealthWatch


@pytest.fixture
def config(tmp_path: Path) -> Path:
    return write(tmp_path, rules=["builtin:loss"])


def write(folder: Path, **ours: object) -> Path:
    path = folder / "train.yaml"
    path.write_text(yaml.safe_dump({"healthwatch": {"output": str(folder / "output"), **ours}}))
    return path


def test_a_bare_entry_is_not_known(build, unregistered):
    with pytest.raises(ValueError, match="Can't find class type callback"):
        build(type="HealthWatch")


def test_one_import_is_enough(build, config: Path):
    import healthwatch.integrations.mindformers  # noqa: F401

    assert type(build(type="HealthWatch", config=str(config))).__name__ == "HealthWatch"


def test_auto_register_needs_no_import(build, unregistered, config: Path, monkeypatch):
    from trainings import register_path

    monkeypatch.setenv("REGISTER_PATH", register_path())
    entry = {"type": "HealthWatch", "auto_register": "healthwatch_callback.HealthWatch", "config": str(config)}
    assert type(build(**entry)).__name__ == "HealthWatch"
    assert "HealthWatch" in unregistered


def test_a_bad_configuration_is_refused_before_step_1(build, tmp_path: Path):
    from healthwatch.diagnostics import Invalid
    from healthwatch.integrations.mindformers import HealthWatch

    with pytest.raises(Invalid, match="HW018"):
        HealthWatch(write(tmp_path, rules=["builtin:nothing"]))


def tracked(callbacks: list, configured: list, optimizer: dict) -> bool:
    from mindformers.pynative.callback import configure_max_logits_tracking

    config = SimpleNamespace(model=SimpleNamespace(), callbacks=configured, optimizer=optimizer)
    configure_max_logits_tracking(config, callbacks)
    return config.model.track_max_attention_logit


@pytest.mark.row(81)
@pytest.mark.row(82)
@pytest.mark.row(83)
@pytest.mark.row(84)
@pytest.mark.parametrize(
    ("configured", "optimizer", "tracks"),
    [
        ([], {"type": "AdamW"}, False),
        ([{"type": "MaxLogitsMonitor"}], {"type": "AdamW"}, True),
        ([], {"type": "Muon", "qk_clip_enabled": True}, True),
        ([], {"type": "Muon"}, True),
        ([], {"type": "Muon", "qk_clip_enabled": False}, False),
    ],
)
def test_when_the_trainer_tracks_logits_by_itself(build, configured, optimizer, tracks):
    assert tracked([], configured, optimizer) == tracks


@pytest.mark.row(83)
@pytest.mark.parametrize(("rules", "tracks"), [("builtin:attention", True), ("builtin:loss", False)])
def test_row_083_attention_rules_alone_enable_tracking(build, tmp_path: Path, rules: str, tracks: bool):
    from healthwatch.integrations.mindformers import HealthWatch

    watch = HealthWatch(write(tmp_path, rules=[rules]))
    assert tracked([watch], [], {"type": "AdamW"}) == tracks


@pytest.mark.row(85)
@pytest.mark.row(86)
def test_rows_085_086_a_reset_is_added(build, config: Path):
    """Muon's clip makes the trainer add a monitor of its own, whether or not we are there."""
    from mindformers.pynative.callback import ensure_max_logits_reset_callback

    from healthwatch.integrations.mindformers import HealthWatch

    for callbacks in ([], [HealthWatch(config)]):
        added = ensure_max_logits_reset_callback(callbacks, enabled=True)
        assert [type(each).__name__ for each in added[len(callbacks) :]] == ["MaxLogitsMonitor"]


def test_switched_off_there_is_no_hook_and_no_thread(build, config: Path, monkeypatch):
    from mindformers.pynative.tools.monitor import MonitorGroup

    from healthwatch.integrations.mindformers import HealthWatch

    monkeypatch.setenv("HEALTHWATCH_DISABLED", "1")
    threads, record = threading.active_count(), MonitorGroup.record
    watch = HealthWatch(config)
    state = SimpleNamespace(global_step=0)
    untouched = SimpleNamespace()  # a model of which anything is asked would raise
    watch.on_train_begin(None, state, model=[untouched], optimizer=untouched)
    watch.on_step_end(None, state, model=[untouched], loss=1.0)
    watch.on_train_end(None, state)
    assert (threading.active_count(), MonitorGroup.record) == (threads, record)
    assert not Path(config).with_name("output").exists()
    assert os.environ["HEALTHWATCH_DISABLED"] == "1"
