"""Every code of the table has an entry to explain it, in the same words."""

from __future__ import annotations

import re
from pathlib import Path

from healthwatch.rulefile.codes import codes

ROOT = Path(__file__).resolve().parents[2]


def test_the_table_lists_them_all():
    table = (ROOT / "docs" / "diagnostics.md").read_text(encoding="utf-8")
    rows = dict(re.findall(r"^\| (HW\d+) \| (.*) \|$", table, re.MULTILINE))
    assert rows == {name: code.title for name, code in codes().items()}


def test_each_has_a_text():
    assert all(len(code.text) > 40 for code in codes().values())
