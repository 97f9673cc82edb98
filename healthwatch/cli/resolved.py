"""What is in force once files, packs, defaults and overrides are put together, as YAML that can be read again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

import yaml

from healthwatch.config import Config, LadderStep
from healthwatch.rulefile import Rule
from healthwatch.rulefile.model import DEFAULT_LIMIT
from healthwatch.stream import Duration

MASKED = "****"


def text(config: Config | None, rules: Sequence[Rule]) -> str:
    """Secrets are masked; a rule written with conditions is shown with the PromQL that they stand for."""
    whole = {**({} if config is None else _config(config)), "groups": groups(rules)}
    shown: str = yaml.safe_dump(whole, sort_keys=False, allow_unicode=True, width=120)
    return shown


def _config(config: Config) -> dict[str, Any]:
    state = asdict(config.train_state)
    ours = {
        "enabled": not config.disabled,
        "dry_run": config.dry_run,
        "run": config.run,
        "output": str(config.output),
        "rules": list(config.rules),
        "override": _plain(config.override),
        "escalation": {name: [_step(step) for step in ladder] for name, ladder in config.escalation.items()},
        "capture": {key: _plain(value) for key, value in asdict(config.capture).items() if value is not None},
        "record": {} if config.record_max_size is None else {"max_size": config.record_max_size},
        "group_by": list(config.group_by),
        "no_data_after": config.no_data_after,
        "late_after": f"{config.late_after:g}s",
        "budget": config.budget,
        **({} if config.top_k is None else {"top_k": config.top_k}),
        "receivers": {
            name: {"urls": [MASKED for _ in each.urls], "group_interval": _duration(each.group_interval)}
            for name, each in config.receivers.items()
        },
    }
    logits = config.max_logits_interval
    return {
        "healthwatch": ours,
        "monitor": {"train_state": _plain(state), "moe_monitor": _plain(asdict(config.moe_monitor))},
        "callbacks": [] if logits is None else [{"type": "MaxLogitsMonitor", "step_interval": logits}],
        "profiler": {key: _plain(value) for key, value in asdict(config.profiler).items()},
    }


def _step(step: LadderStep) -> dict[str, Any]:
    found: dict[str, Any] = {step.action: _plain(step.argument)}
    if step.after.steps != 0:
        found["after"] = _duration(step.after)
    if step.repeat is not None:
        found["repeat"] = _duration(step.repeat)
    return found if step.when_state == "firing" else {**found, "when_state": step.when_state}


def groups(rules: Sequence[Rule]) -> list[dict[str, Any]]:
    """Rules as a rule file has them, a group for each of theirs and its look-back."""
    found: dict[tuple[str, str, int | None], list[Rule]] = {}
    for rule in rules:
        found.setdefault((rule.span.file, rule.group, rule.lookback), []).append(rule)
    names = [name for _, name, _ in found]
    return [
        {
            "name": name if names.count(name) == 1 else f"{name} ({file})",
            **({} if lookback is None else {"lookback": lookback}),
            "rules": [_rule(rule) for rule in of_group],
        }
        for (file, name, lookback), of_group in found.items()
    ]


def _rule(rule: Rule) -> dict[str, Any]:
    """Keys that are as by default are left out."""
    keys: dict[str, Any] = {
        "alert": rule.name,
        "expr": rule.expression.text,
        "params": _plain(rule.params),
        "for": _duration(rule.for_),
        "for_records": rule.for_records,
        "keep_firing_for": _duration(rule.keep_firing_for),
        "until": rule.until.text if rule.until else None,
        "detail": rule.detail.text if rule.detail else None,
        "labels": dict(rule.labels),
        "annotations": {key: str(template) for key, template in rule.annotations.items()},
        "warmup": rule.warmup,
        "settle": rule.settle,
        "inhibited_by": list(rule.inhibited_by),
        "escalation": rule.escalation,
        "mode": rule.mode if rule.mode != "active" else None,
        "limit": rule.limit if rule.limit != DEFAULT_LIMIT else None,
    }
    return {key: value for key, value in keys.items() if value}


def _duration(duration: Duration) -> int | str:
    return duration.steps if duration.steps is not None else f"{duration.seconds or 0:g}s"


def _plain(value: Any) -> Any:
    """Tuples as lists, whatever holds them."""
    if isinstance(value, Mapping):
        return {str(key): _plain(each) for key, each in value.items()}
    return [_plain(each) for each in value] if isinstance(value, (tuple, list)) else value
