"""Captures before and after the window that the trainer itself records, and one that would run into it."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

pytestmark = pytest.mark.long

STEPS = 19
FIRST, LAST = 10, 11  # the trainer's own window
EARLY, CLOSE, LATE = 3, 7, 14
RULES = {
    "groups": [
        {
            "name": "test",
            "rules": [
                {"alert": name, "expr": f"attempt_step == {step}", "labels": {"severity": "critical"}}
                for name, step in (("Early", EARLY), ("Close", CLOSE), ("Late", LATE))
            ],
        }
    ]
}


@dataclass(frozen=True)
class Beside:
    theirs: list[Path]
    captures: dict[str, dict[str, Any]]  # by rule
    failures: dict[str, int]

    def manifest(self, rule: str) -> dict[str, Any]:
        loaded: dict[str, Any] = json.loads((Path(self.captures[rule]["folder"]) / "manifest.json").read_text())
        return loaded


@pytest.fixture(scope="module")
def beside(trainer_ready: Path) -> Beside:
    import tiny
    from trainings import analysed, without_root_handlers

    from healthwatch.integrations.mindformers import HealthWatch

    folder = trainer_ready / "beside"
    folder.mkdir()
    window = {
        "enable_profiling": True,
        "start_step": FIRST,
        "end_step": LAST,
        "with_stack": False,
        "output_path": str(folder / "profile"),
    }
    ours = {
        "run": "beside",
        "output": str(folder / "output"),
        "rules": ["rules.yaml"],
        "escalation": {"critical": [{"profile": {"steps": 3}}]},
        "capture": {"cooldown": 0, "min_free_disk": 0},
    }
    (folder / "rules.yaml").write_text(yaml.safe_dump(RULES))
    (folder / "train.yaml").write_text(yaml.safe_dump({"profiler": window, "healthwatch": ours}))
    watch = HealthWatch(folder / "train.yaml")
    config = tiny.base_cfg(steps=STEPS, model=tiny.qwen3(), profiler=window)
    with without_root_handlers():
        tiny.trainer(config, callbacks=[watch]).train()
    assert watch.session is not None
    captures = {row["incidents"][0].partition("@")[0]: row for row in analysed(folder / "output")}
    return Beside(list((folder / "profile").rglob("trace_view.json")), captures, dict(watch.session.guard.failures))


def ran(trace: Path) -> Counter[str]:
    return Counter(event["name"] for event in json.loads(trace.read_text("utf-8")) if event["ph"] == "X")


@pytest.mark.parametrize(("rule", "step"), [("Early", EARLY), ("Late", LATE)])
def test_before_and_after_the_window_captures_are_whole(beside: Beside, rule: str, step: int) -> None:
    manifest = beside.manifest(rule)
    assert manifest["state"] == "finished", manifest
    assert manifest["steps"] == {"first": step + 1, "last": step + 3, "recorded": 3}
    operators = manifest["check"]["operators"]
    assert len(operators) == 3
    assert max(operators) - min(operators) <= 2, "each step runs the same operators"


def test_one_that_would_run_into_the_window_is_refused(beside: Beside) -> None:
    assert beside.captures["Close"]["problem"] == "another profiler is active in this process"
    assert set(beside.failures) == {"capture refused: busy"}


@pytest.mark.row(93)
def test_the_trainers_own_window_is_whole_and_recorded_once(beside: Beside) -> None:
    """Its two steps run as often what a step of ours runs, and no window of ours lies beside it."""
    (theirs,) = beside.theirs
    ours = ran(next(Path(beside.captures["Late"]["folder"]).rglob("trace_view.json")))
    heavy = {name: count for name, count in ours.items() if name.endswith(("MatMul", "Softmax"))}
    assert heavy
    assert {name: ran(theirs)[name] for name in heavy} == {name: count * 2 // 3 for name, count in heavy.items()}
    assert {row["kind"] for row in beside.captures.values()} == {"incident"}
