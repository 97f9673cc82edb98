"""The reference's `profiler` section (rows 89 to 112): what it is read as, and what of it reaches MindSpore.

A CPU records operators alone: levels, mstx, stacks and the activity of a device are asserted on the arguments.
"""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from capture_bench import Bench, incident, now

from healthwatch.actions.captures.window import static_window
from healthwatch.alerting.model import Sample
from healthwatch.config import ProfilerSection, load_config
from healthwatch.diagnostics import Diagnostic
from healthwatch.rulefile import load_rules

REPOSITORY = Path(__file__).resolve().parents[2]
SCENARIO = re.compile(r"^profiler:\n(?: .*\n)+", re.MULTILINE)


def read(tmp_path: Path, section: str) -> tuple[ProfilerSection | None, list[Diagnostic]]:
    path = tmp_path / "train.yaml"
    path.write_text(f"{section}\nhealthwatch: {{}}\n", encoding="utf-8")
    config, diagnostics = load_config(path, {})
    return (None if config is None else config.profiler), diagnostics


def section_of(tmp_path: Path, text: str) -> ProfilerSection:
    section, _ = read(tmp_path, f"profiler: {{{text}}}")
    assert section is not None
    return section


@pytest.fixture
def scenarios(shared: Path) -> list[str]:
    """A, B and C as the reference prints them."""
    text = (shared / "reference" / "training-metric-monitoring-and-profiling.txt").read_text("utf-8") + "\n"
    found = SCENARIO.findall(text)
    assert len(found) == 3
    return found


def passed_on(section: ProfilerSection, device: str = "Ascend") -> dict[str, Any]:
    pytest.importorskip("mindspore", reason="needs the mindspore extra")
    from healthwatch.integrations.mindspore.profiler import arguments

    return arguments(section, device)


@pytest.mark.row(92)
@pytest.mark.row(93)
@pytest.mark.row(94)
@pytest.mark.row(96)
@pytest.mark.row(97)
@pytest.mark.row(98)
def test_defaults(tmp_path: Path) -> None:
    section = section_of(tmp_path, "")
    assert section == ProfilerSection(
        enable_profiling=False,
        start_step=1,
        end_step=1,
        output_path=None,
        profiler_rank=None,
        profiler_level=0,
        mstx=False,
        profile_memory=False,
        profile_cpu=True,
        with_stack=True,
    )


@pytest.mark.row(93)
@pytest.mark.parametrize("value", ["0", "-1", "true", "1.5", "five"])
def test_start_step_is_a_positive_whole_number(tmp_path: Path, value: str) -> None:
    section, diagnostics = read(tmp_path, f"profiler: {{enable_profiling: true, start_step: {value}, end_step: 9}}")
    assert section is None
    assert any('"start_step" must be' in each.message for each in diagnostics)


@pytest.mark.row(94)
def test_end_before_start_is_refused_before_step_1(tmp_path: Path) -> None:
    section, (found,) = read(tmp_path, "profiler: {enable_profiling: true, start_step: 5, end_step: 4}")
    assert section is None
    assert (found.severity, found.message) == ("error", "end_step is 4, before start_step 5")


@pytest.mark.row(95)
def test_start_step_without_end_step_is_refused_before_step_1(tmp_path: Path) -> None:
    section, (found,) = read(tmp_path, "profiler: {enable_profiling: true, start_step: 5}")
    assert section is None
    assert found.severity == "error"
    assert "end_step is still 1" in found.message


@pytest.mark.row(98)
@pytest.mark.mindspore
@pytest.mark.parametrize(
    ("level", "name"), [(0, "Level0"), (1, "Level1"), (2, "Level2"), (3, "LevelNone"), (-1, "LevelNone")]
)
def test_levels(tmp_path: Path, level: int, name: str) -> None:
    section, diagnostics = read(tmp_path, f"profiler: {{profiler_level: {level}}}")
    assert section is not None
    assert passed_on(section)["experimental_config"].profiler_level.name == name
    assert [each.severity for each in diagnostics] == (["warning"] if name == "LevelNone" else [])


@pytest.mark.row(99)
@pytest.mark.mindspore
@pytest.mark.parametrize("mstx", [False, True])
def test_mstx_is_passed_on(tmp_path: Path, mstx: bool) -> None:
    section = section_of(tmp_path, f"mstx: {str(mstx).lower()}")
    assert passed_on(section)["experimental_config"].mstx is mstx


@pytest.mark.row(100)
@pytest.mark.mindspore
def test_profile_memory_is_passed_on_to_a_device_alone(tmp_path: Path) -> None:
    """On a CPU MindSpore could not stop it again: it would stick to every later window."""
    section = section_of(tmp_path, "profile_memory: true")
    assert passed_on(section)["profile_memory"] is True
    assert passed_on(section, "CPU")["profile_memory"] is False
    assert passed_on(section_of(tmp_path, ""))["profile_memory"] is False


@pytest.mark.row(101)
@pytest.mark.mindspore
def test_profile_cpu_adds_the_cpus_activity(tmp_path: Path) -> None:
    def activities(text: str, device: str = "Ascend") -> set[str]:
        return {each.name for each in passed_on(section_of(tmp_path, text), device)["activities"]}

    assert activities("") == {"CPU", "NPU"}
    assert activities("profile_cpu: false") == {"NPU"}
    assert activities("profile_cpu: false", "CPU") == {"CPU"}, "there is nothing else to record"


@pytest.mark.row(102)
@pytest.mark.mindspore
@pytest.mark.parametrize("stack", [False, True])
def test_with_stack_is_passed_on(tmp_path: Path, stack: bool) -> None:
    assert passed_on(section_of(tmp_path, f"with_stack: {str(stack).lower()}"))["with_stack"] is stack


@pytest.mark.row(103)
@pytest.mark.parametrize(
    ("window", "hint"),
    [
        ("start_step: 1, end_step: 3", "the window starts at step 1"),
        ("start_step: 5, end_step: 30", "the window is 26 steps long"),
        ("start_step: 5, end_step: 7", ""),
    ],
)
def test_advice_on_the_window(tmp_path: Path, window: str, hint: str) -> None:
    section, diagnostics = read(tmp_path, f"profiler: {{enable_profiling: true, {window}}}")
    assert section is not None
    assert [each.severity for each in diagnostics] == ["info"] * bool(hint)
    assert all(each.message.startswith(hint) for each in diagnostics)


@pytest.mark.row(104)
def test_examples_that_profile_leave_out_what_is_dear() -> None:
    """But for the one about memory."""
    texts = {path.name: path.read_text("utf-8") for path in REPOSITORY.glob("examples/**/*.yaml")}
    profiling = {name: text for name, text in texts.items() if re.search(r"profile: \{|enable_profiling: +True", text)}
    dear = set()
    for name, text in profiling.items():
        section = yaml.safe_load(text).get("profiler", {})
        if section.get("with_stack", True) or section.get("profile_memory", False):
            dear.add(name)
    assert len(profiling) >= 4
    assert all("memory" in name for name in dear), dear


@pytest.mark.row(105)
@pytest.mark.row(106)
@pytest.mark.row(107)
def test_ranks_are_chosen_by_profiler_rank(tmp_path: Path) -> None:
    def profiled(ranks: str) -> list[int]:
        section = section_of(tmp_path, f"enable_profiling: true, start_step: 5, end_step: 7, profiler_rank: {ranks}")
        return [rank for rank in range(4) if static_window(section, rank) is not None]

    assert profiled("[0]") == [0]
    assert profiled("[0, 1]") == [0, 1]
    assert profiled("null") == [0, 1, 2, 3]


@pytest.mark.row(108)
@pytest.mark.parametrize("label", ["dp", "tp", "pp", "cp", "rank"])
def test_a_series_may_say_where_its_rank_stands(tmp_path: Path, label: str) -> None:
    """Rules may select by it, and the manifest of a capture names it."""
    rules = tmp_path / "rules.yaml"
    rule = {
        "alert": "Local",
        "expr": f'local_loss{{{label}="1"}} > 9',
        "labels": {"severity": "critical"},
        "annotations": {"action": "look at that rank"},
    }
    rules.write_text(yaml.safe_dump({"groups": [{"name": "test", "rules": [rule]}]}))
    assert load_rules([rules]).diagnostics == ()
    bench = Bench(tmp_path)
    one = replace(incident("Local", 7), firing=(Sample(((label, "1"),), 9.5),))
    note = bench.captures.request(one, 3, now(7))
    assert note is not None
    assert json.loads((note.folder / "manifest.json").read_text())["incident"]["labels"] == {label: "1"}


@pytest.mark.row(109)
def test_where_traces_lie_and_how_to_open_them_is_in_the_docs() -> None:
    text = (REPOSITORY / "docs" / "captures.md").read_text("utf-8")
    for needed in ("output_path/rank_", "profile/rank_", "MindStudio Insight", "Perfetto", "chrome://tracing"):
        assert needed in text


@pytest.mark.row(110)
@pytest.mark.mindspore
def test_scenario_a(tmp_path: Path, scenarios: list[str]) -> None:
    section, diagnostics = read(tmp_path, scenarios[0])
    assert section is not None
    assert diagnostics == []
    window = static_window(section, 0)
    assert window is not None
    assert (window.first, window.last, window.folder) == (5, 7, Path("output/profile/rank_0"))
    assert static_window(section, 1) is None
    asked = passed_on(section)
    assert [each.name for each in asked["activities"]] == ["NPU"]
    assert asked["experimental_config"].profiler_level.name == "Level0"
    assert (asked["profile_memory"], asked["with_stack"]) == (False, False)


@pytest.mark.row(111)
@pytest.mark.mindspore
def test_scenario_b(tmp_path: Path, scenarios: list[str]) -> None:
    section, diagnostics = read(tmp_path, scenarios[1])
    assert section is not None
    assert diagnostics == []
    assert [static_window(section, rank) is not None for rank in range(3)] == [True, True, False]
    asked = passed_on(section)
    assert {each.name for each in asked["activities"]} == {"CPU", "NPU"}
    assert asked["experimental_config"].profiler_level.name == "Level1"
    assert asked["experimental_config"].mstx is True
    assert (asked["profile_memory"], asked["with_stack"]) == (False, False)


@pytest.mark.row(112)
@pytest.mark.mindspore
def test_scenario_c(tmp_path: Path, scenarios: list[str]) -> None:
    section, diagnostics = read(tmp_path, scenarios[2])
    assert section is not None
    assert diagnostics == []
    window = static_window(section, 0)
    assert window is not None
    assert (window.first, window.last) == (5, 6)
    asked = passed_on(section)
    assert asked["experimental_config"].profiler_level.name == "Level2"
    assert (asked["profile_memory"], asked["with_stack"]) == (True, True)
