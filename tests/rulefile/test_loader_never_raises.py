"""Whatever stands in a file: diagnostics with a valid place, never an exception."""

from __future__ import annotations

import json
from collections.abc import Iterator
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from healthwatch import resources
from healthwatch.config import load_all, load_config
from healthwatch.diagnostics import Diagnostic, render_json, render_text
from healthwatch.rulefile import load_rules

RULES = """\
metrics: {mine: {unit: "1", labels: [a], kind: gauge}}
groups:
  - name: g
    labels: &l {severity: warning}
    rules:
      - alert: A
        expr: |
          spike_ratio(micro_norm{param=~".*x"}[$w], 3) >= $k
          and on (param) micro_norm > 0.5
        for_records: 3
        params: {w: 50, k: 8}
        labels: {<<: *l, tier: 1}
        annotations: {summary: "{{ $labels.param }} {{ printf \\"%.1f\\" $value }}"}
        inhibited_by: [B]
      - alert: B
        expr: 'mine > 5'
        for: 10m
        warmup: 60
        detail: >-
          topk(3,
          mine)
"""
CONFIG = """\
monitor:
  train_state: {local_norm: [attention], local_loss: true}
  moe_monitor: {save_tokens_per_expert_interval: 10, target_layers: [0, 5]}
callbacks:
  - {type: MaxLogitsMonitor, step_interval: 1}
profiler: {enable_profiling: true, start_step: 5, end_step: 7, profiler_rank: [0]}
healthwatch:
  run: x
  rules: [builtin:attention, ./r.yaml]
  override: {AttentionLogitHigh: {params: {limit: 50}, enabled: true}}
  escalation:
    critical: [{log: error}, {profile: {steps: 3}}, {notify: oncall, repeat: 500, after: 10m}]
    warning: [{log: warning}]
  capture: {max_captures: 3, min_free_disk: 5GiB, ranks: [culprit, 0], reference_at: 20}
  late_after: 30s
  group_by: [run, severity]
  budget: 2%
  receivers: {oncall: {urls: ["${URL}", "json://localhost/secret"], group_interval: 50}}
"""
PIECES = (
    *" \n\t:[]{}'\"#|>~?%@`0",
    *("", "- ", "&a ", "*a", "!!int ", ".nan", "1e-3", "-1", "true", "on", "010", "<<: ", "$x", "{{", "}}", "损", "é"),
    *("null", "\ufeff", "\r\n", "---\n", "[]", "{}"),
)


@st.composite
def mutated(draw: st.DrawFn, text: str) -> str:
    """The text with a few characters taken out, put in, or lines lost, doubled or moved."""
    for _ in range(draw(st.integers(1, 4))):
        start = draw(st.integers(0, len(text)))
        match draw(st.sampled_from(("replace", "drop line", "double line", "swap values"))):
            case "replace":
                text = text[:start] + draw(st.sampled_from(PIECES)) + text[start + draw(st.integers(0, 6)) :]
            case "drop line":
                lines = text.split("\n")
                text = "\n".join(lines[: start % len(lines)] + lines[start % len(lines) + 1 :])
            case "double line":
                lines = text.split("\n")
                text = "\n".join([*lines[: start % len(lines) + 1], *lines[start % len(lines) :]])
            case _:
                lines = [line for line in text.split("\n") if ": " in line]
                if len(lines) > 1:
                    line, other = draw(st.sampled_from(lines)), draw(st.sampled_from(lines))
                    value = other.split(": ", 1)[1]
                    text = text.replace(line, line.split(": ", 1)[0] + ": " + value, 1)
    return text


WRONG_NAMES = (None, 1, 1.5, True, "", "é", "nan")
ODD: tuple[Any, ...] = (*WRONG_NAMES, [], {}, [1], [None], [[]], [{}], ["x"], {"x": 1}, {"x": None}, {1: "x"})


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    yield path
    below = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, each in below:
        yield from places(each, (*path, key))


@st.composite
def odd(draw: st.DrawFn, text: str) -> str:
    """The file with something else in a place or two: where a name belongs a number, a list, a mapping or nothing."""
    data: dict[str, Any] = {"file": yaml.safe_load(text)}
    for _ in range(draw(st.integers(1, 2))):
        *way, last = draw(st.sampled_from([place for place in places(data) if place]))
        holder: Any = data
        for key in way:
            holder = holder[key]
        if isinstance(last, str) and last != "file" and draw(st.booleans()):
            holder[draw(st.sampled_from(WRONG_NAMES))] = holder.pop(last)
        else:
            holder[last] = deepcopy(draw(st.sampled_from(ODD)))  # the next turn may put something into it
    return yaml.safe_dump(data["file"], allow_unicode=True, default_flow_style=draw(st.booleans()))


def check(diagnostics: tuple[Diagnostic, ...] | list[Diagnostic], path: Path) -> None:
    lines = path.read_bytes().decode("utf-8", "replace").removeprefix("\ufeff").splitlines() or [""]
    assert render_text(diagnostics).count("[HW") >= len(diagnostics)
    assert len(json.loads(render_json(diagnostics))) == len(diagnostics)
    for found in diagnostics:
        assert found.span is not None
        assert found.message
        if found.span.line and found.span.file == str(path):
            assert found.span.line <= len(lines) + 1
            assert 1 <= found.span.column < found.span.end_column


@given(data=st.data())
@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@pytest.mark.long
def test_rule_files(tmp_path: Path, data: st.DataObject) -> None:
    path = tmp_path / "rules.yaml"
    path.write_text(data.draw(mutated(RULES) | odd(RULES)), encoding="utf-8", newline="")
    loaded = load_rules([path])
    check(loaded.diagnostics, path)
    for rule in loaded.rules:
        assert rule.for_.steps is not None or rule.for_.seconds is not None
        for template in rule.annotations.values():
            assert isinstance(template.render({"param": "p"}, 1.0), str)


@given(data=st.data())
@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@pytest.mark.long
def test_config_files(tmp_path: Path, data: st.DataObject) -> None:
    path = tmp_path / "train.yaml"
    (tmp_path / "r.yaml").write_text(RULES, encoding="utf-8")
    path.write_text(data.draw(mutated(CONFIG) | odd(CONFIG)), encoding="utf-8", newline="")
    config, diagnostics = load_config(path, {"URL": "json://localhost/hidden"})
    check(diagnostics, path)
    assert (config is None) == any(found.severity == "error" for found in diagnostics)
    checked = load_all(path, {"URL": "json://localhost/hidden"})
    check([found for found in checked.diagnostics if found.span and found.span.file == str(path)], path)
    assert "hidden" not in render_text(checked.diagnostics) + render_json(checked.diagnostics) + repr(checked.config)


def test_the_unchanged_files_are_clean(tmp_path: Path) -> None:
    (tmp_path / "r.yaml").write_text(RULES, encoding="utf-8")
    (tmp_path / "train.yaml").write_text(CONFIG, encoding="utf-8")
    checked = load_all(tmp_path / "train.yaml", {"URL": "json://localhost/hidden"})
    assert [found for found in checked.diagnostics if found.code not in ("HW020", "HW028")] == [], render_text(
        checked.diagnostics
    )
    assert resources.packs()
