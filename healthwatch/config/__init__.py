"""The config file: the training YAML and its `healthwatch` section, which alone is strict."""

from __future__ import annotations

from healthwatch.config.load import Checked, load_all, load_config
from healthwatch.config.model import (
    CaptureSettings,
    Config,
    LadderStep,
    MoEMonitor,
    NameFilter,
    ProfilerSection,
    Receiver,
    Secret,
    TrainState,
)

__all__ = [
    "CaptureSettings",
    "Checked",
    "Config",
    "LadderStep",
    "MoEMonitor",
    "NameFilter",
    "ProfilerSection",
    "Receiver",
    "Secret",
    "TrainState",
    "load_all",
    "load_config",
]
