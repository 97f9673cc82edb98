"""The trainer's own sections, as far as healthwatch reads them. Unknown keys there belong to the trainer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from healthwatch.config.model import MoEMonitor, NameFilter, ProfilerSection, TrainState
from healthwatch.config.section import Section

LEVELS = (0, 1, 2)
ROUTER_TOP_K = ("moe_router_topk", "num_experts_per_tok", "num_experts_chosen")
EXPERTS = ("num_moe_experts", "n_routed_experts", "num_experts", "expert_num")

QK_CLIP_THRESHOLD = 100.0  # Muon's own default

_LONG_WINDOW = 10


def train_state(root: Section) -> TrainState:
    section = root.below("monitor").below("train_state")
    return TrainState(
        local_norm=_names(section, "local_norm"),
        local_loss=section.get("local_loss", False),
        device_norm=_names(section, "device_norm"),
        device_loss=section.get("device_loss", False),
    )


def _names(section: Section, key: str) -> NameFilter:
    value = section.get(key, False)
    if isinstance(value, bool):
        return value
    names = (value,) if isinstance(value, str) else tuple(value)
    for position, name in enumerate(names):
        if isinstance(name, str) and name[-1:].isdigit():
            message = f'"{name}" is a part of a name: it also matches "{name}0"'
            mend = f'write "{name}." for this layer alone'
            place = (key, position) if isinstance(value, list) else (key,)
            section.report("HW034", message, *place, severity="info", help=mend)
    return tuple(name for name in names if isinstance(name, str) and name) or False


def moe_monitor(root: Section) -> MoEMonitor:
    section = root.below("monitor").below("moe_monitor")
    layers = section.get("target_layers")
    if isinstance(layers, list):
        layers = tuple(layer for layer in layers if isinstance(layer, int))
    return MoEMonitor(section.get("save_tokens_per_expert_interval"), layers)


def max_logits_interval(root: Section) -> int | None:
    """The print interval of MaxLogitsMonitor among the callbacks, None where it is not there."""
    callbacks = root.get("callbacks", [])
    for position, callback in enumerate(callbacks if isinstance(callbacks, list) else []):
        if isinstance(callback, dict) and callback.get("type") == "MaxLogitsMonitor":
            interval = callback.get("step_interval", 1)
            refused = ("callbacks", position, "step_interval") in root.refused
            return 1 if refused or interval is None else int(interval)
    return None


def total_steps(root: Section) -> int | None:
    steps = root.below("training").get("steps")
    return steps if isinstance(steps, int) and not isinstance(steps, bool) and steps > 0 else None


def top_k(root: Section) -> int | None:
    """How many experts the router chooses, where the model's section says so."""
    return _of_model(root, ROUTER_TOP_K)


def experts(root: Section) -> int | None:
    """How many routed experts a layer has, where the model's section says so."""
    return _of_model(root, EXPERTS)


def _of_model(root: Section, keys: Sequence[str]) -> int | None:
    model = root.below("model")
    for data in (model.data, model.below("model_config").data):
        for key in keys:
            value = data.get(key)
            if isinstance(value, int) and not isinstance(value, bool) and value > 0:
                return value
    return None


def qk_clip_threshold(root: Section) -> float | None:
    """Muon clips q and k unless it is told not to; None where nothing does."""
    optimizer = root.below("optimizer")
    if optimizer.get("type") != "Muon" or optimizer.get("qk_clip_enabled", True) is False:
        return None
    threshold = optimizer.get("qk_clip_threshold", QK_CLIP_THRESHOLD)
    return float(threshold) if isinstance(threshold, (int, float)) else QK_CLIP_THRESHOLD


def profiler(root: Section) -> ProfilerSection:
    section = root.below("profiler")
    ranks = section.get("profiler_rank")
    _check_window(section)
    level = section.get("profiler_level", 0)
    if level not in LEVELS:
        message = f"there is no profiler level {level}: the trainer then collects nothing by level"
        section.report("HW033", message, "profiler_level", severity="warning", help="0, 1 or 2")
    return ProfilerSection(
        enable_profiling=section.get("enable_profiling", False),
        start_step=section.get("start_step", 1),
        end_step=section.get("end_step", 1),
        output_path=section.get("output_path"),
        profiler_rank=None if ranks is None else tuple(ranks),
        profiler_level=level,
        **{key: section.get(key, default) for key, default in _SWITCHES.items()},
    )


_SWITCHES: Mapping[str, Any] = {
    "mstx": False,
    "profile_memory": False,
    "profile_cpu": True,
    "with_stack": True,
}


def _check_window(section: Section) -> None:
    start, end = section.get("start_step", 1), section.get("end_step", 1)
    enabled = section.get("enable_profiling", False)
    if end < start:
        shown = f"end_step is {end}" if "end_step" in section.data else "end_step is still 1"
        key = "end_step" if "end_step" in section.data else "start_step"
        severity = "error" if enabled else "warning"
        mend = f"the window is start_step to end_step: write end_step: {start + 2} for three steps"
        section.report("HW033", f"{shown}, before start_step {start}", key, severity=severity, help=mend)
    elif enabled and start == 1:
        message = "the window starts at step 1, which compiles and initialises"
        place = "start_step" if "start_step" in section.data else "enable_profiling"
        section.report("HW033", message, place, severity="info", help="start a few steps later, for example at 5")
    if enabled and end - start + 1 > _LONG_WINDOW:
        message = f"the window is {end - start + 1} steps long: traces grow with every step"
        section.report("HW033", message, "end_step", severity="info", help="two or three steps usually show enough")
