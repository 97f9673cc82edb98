"""The examples of the pages on rules and config load without a word."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from healthwatch import resources
from healthwatch.cli.check import check
from healthwatch.config import load_all
from healthwatch.diagnostics import render_text
from healthwatch.rulefile import load_rules
from healthwatch.rulefile.schema import schema

DOCS = Path(__file__).parents[2] / "docs"


def example(page: str) -> str:
    (block,) = re.findall(r"```yaml\n(.*?)```", (DOCS / page).read_text(encoding="utf-8"), re.DOTALL)
    return str(block)


def test_rules(tmp_path: Path) -> None:
    (tmp_path / "rules.yaml").write_text(example("rules.md"), encoding="utf-8")
    loaded = load_rules([tmp_path / "rules.yaml"])
    assert loaded.diagnostics == (), render_text(loaded.diagnostics)
    assert len(loaded.rules) == 2


def test_config(tmp_path: Path) -> None:
    (tmp_path / "train.yaml").write_text(example("config.md"), encoding="utf-8")
    checked = load_all(tmp_path / "train.yaml", {"SLACK_URL": "json://localhost"})
    assert checked.diagnostics == (), render_text(checked.diagnostics)
    assert checked.config is not None


def test_no_shipped_file_has_a_name_that_is_taken_for_a_slip() -> None:
    files = [str(file) for file in (DOCS.parent / "examples").glob("*/*.yaml")]
    assert len(files) >= 5
    found = check([*files, *(f"builtin:{pack}" for pack in resources.packs())]).diagnostics
    assert [each for each in found if each.code in ("HW041", "HW042")] == []


@pytest.mark.parametrize(
    ("page", "name", "part"),
    [
        ("rules.md", "rules", "rule"),
        ("rules.md", "rules", "group"),
        ("rules.md", "rules", "metric"),
        ("config.md", "config", "healthwatch"),
        ("config.md", "config", "ladder_step"),
        ("config.md", "config", "receiver"),
        ("config.md", "config", "override"),
    ],
)
def test_every_key_stands_on_its_page(page: str, name: str, part: str) -> None:
    text = (DOCS / page).read_text(encoding="utf-8")
    for key in schema(name)["$defs"][part]["properties"]:
        assert re.search(rf"`{key}\b", text), key
