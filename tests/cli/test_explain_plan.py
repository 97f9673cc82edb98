"""`healthwatch explain --plan`: nodes, who shares them, rows kept, and what the last evaluation took."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from click.testing import CliRunner

import healthwatch
from healthwatch.cli import group

RULES = """
metrics:
  heat: {labels: [card], help: Degrees.}
groups:
  - name: g
    rules:
      - alert: Jump
        expr: avg_over_time(loss[20]) > 2 * $usual
        params: {usual: 3}
        until: max_over_time(loss[40]) > 5
        labels: {severity: warning}
      - alert: High
        expr: avg_over_time(loss[20]) > 5
        labels: {severity: warning}
      - alert: Hot
        expr: heat > 90
        labels: {severity: warning}
      - alert: Any
        expr: grad_norm
        labels: {severity: warning}
      - alert: Attention
        expr: spike_ratio(micro_norm{param=~".*attn.*"}[50]) > 8
        labels: {severity: warning}
      - alert: Held
        expr: loss{split="val"} - ignoring (split) loss{split="train"} > 1
        labels: {severity: warning}
      - alert: Odd
        expr: heat{card=~"\\\\bGPU\\\\b.*x"} > 90 or heat{card="3"} > 95
        labels: {severity: warning}
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Rules, and a run of 60 steps that was watched by none of them."""
    folder = tmp_path_factory.mktemp("plan")
    (folder / "rules.yaml").write_text(RULES, encoding="utf-8")
    section = {"output": str(folder / "out"), "rules": ["builtin:loss"]}
    (folder / "c.yaml").write_text(json.dumps({"healthwatch": section}), encoding="utf-8")
    with healthwatch.load(folder / "c.yaml") as hw:
        for step in range(60):
            hw.step(9.0 if step < 45 else 0.0)
    return folder


def plan(folder: Path, name: str, *more: str) -> tuple[str, list[tuple[str, str, str]]]:
    """The first line, and of each node ms, rows and the rest."""
    result = CliRunner().invoke(group, ["explain", "--plan", str(folder / "rules.yaml"), name, *more])
    assert result.exit_code == 0, result.output
    head, _, _, *lines = result.output.splitlines()
    rows = [(line[:9].strip(), line[10:16].strip(), line[18:]) for line in lines[: lines.index("")]]
    return head, rows


def test_nodes_below_those_that_need_them_on_a_recorded_run(folder: Path) -> None:
    head, rows = plan(folder, "Jump", "--run", str(folder / "out"))
    found = re.fullmatch(r"Jump: 7 nodes, (\d+) rows kept, \d+\.\d{3} ms, as of step 60 of \S+/rank_0\.sqlite", head)
    assert found is not None, head
    assert 40 <= int(found[1]) <= 60
    assert [(kept, text) for _, kept, text in rows] == [
        ("", "expr:"),
        ("", "  avg_over_time(loss[20]) > 2 * 3"),
        ("", "    avg_over_time(loss[20])  [High]"),
        (found[1], "      loss[20]  [High]"),
        ("", "    2 * 3"),
        ("", "until:"),
        ("", "  max_over_time(loss[40]) > 5"),
        ("", "    max_over_time(loss[40])"),
        (found[1], "      loss[40]"),
    ]
    whole, inner = float(rows[1][0]), float(rows[2][0])
    assert whole > inner > 0
    assert float(rows[6][0]) > 0  # `until` holds what would end


def test_a_generated_run_has_the_series_of_a_large_model(folder: Path) -> None:
    head, rows = plan(folder, "Hot")
    assert re.fullmatch(
        r"Hot: 2 nodes, \d+ rows kept, \d\.\d{3} ms, as of step \d+ of a generated run with 8 series", head
    )
    assert [text for *_, text in rows] == ["expr:", "  heat > 90", "    heat"]
    result = CliRunner().invoke(group, ["explain", "--plan", "builtin:gradients", "ParamGradNormSpike"])
    assert "generated run with 5,000 series" in result.output
    assert re.search(r"spike_ratio\(micro_norm\[50\], 3\)  \[GradNormSpike\]\n", result.output)


def test_a_generated_run_has_series_that_the_matchers_take(folder: Path) -> None:
    head, rows = plan(folder, "Attention")
    assert "of a generated run with 5,000 series" in head
    (kept,) = {rows for _, rows, text in rows if text == '    spike_ratio(micro_norm{param=~".*attn.*"}[50])'}
    assert int(kept) >= 2 * 50  # two micro-steps each
    head, rows = plan(folder, "Held")
    assert "of a generated run with 2 series" in head
    assert all(float(ms) > 0 and int(kept or 1) > 0 for ms, kept, text in rows if "loss" in text)


def test_what_no_series_matches_is_named(folder: Path) -> None:
    def remarks(name: str, *more: str) -> list[str]:
        said = CliRunner().invoke(group, ["explain", "--plan", str(folder / "rules.yaml"), name, *more])
        assert said.exit_code == 0, said.output
        return said.output.split("\n\n")[0].splitlines()[1:]

    elsewhere = "; with --run RUN it is evaluated on recorded ones"
    assert remarks("Odd") == [f'no series of it matches heat{{card=~"\\\\bGPU\\\\b.*x"}}{elsewhere}']
    assert remarks("Attention") == remarks("Held") == remarks("Jump") == []
    run = ("--run", str(folder / "out"))
    assert remarks("Attention", *run) == ['no series of it matches micro_norm{param=~".*attn.*"}']
    assert remarks("Jump", *run) == []


def test_one_is_not_many(folder: Path) -> None:
    head, _ = plan(folder, "Any")
    assert head.startswith("Any: 1 node, ")


def test_what_is_not_asked_for_took_nothing(folder: Path) -> None:
    _, rows = plan(folder, "Jump")
    assert [ms for ms, _, text in rows if "loss[40]" in text] == ["-", "-", "-"]


def test_no_rule_of_that_name(folder: Path) -> None:
    result = CliRunner().invoke(group, ["explain", "--plan", str(folder / "rules.yaml"), "Jumb"])
    assert (result.exit_code, result.output) == (2, 'nothing is called "Jumb"; did you mean "Jump"?\n')
