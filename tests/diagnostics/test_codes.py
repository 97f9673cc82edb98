"""Every code has its line in the table, and no line is without a code."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]

_CODE = re.compile(r'"(HW\d{3})"')


def test_the_table_of_codes_is_complete() -> None:
    table = re.findall(
        r"^\| (HW\d{3}) \| \S", (ROOT / "docs" / "diagnostics.md").read_text(encoding="utf-8"), re.MULTILINE
    )
    assert table == sorted(set(table))
    sources = (path.read_text(encoding="utf-8") for path in (ROOT / "healthwatch").rglob("*.py"))
    used = {code for source in sources for code in _CODE.findall(source)}
    assert used == set(table)
