"""What is made from data and lies in the repository: pages of conditions, codes, rules and functions, and `when` in the
schema.

`python -m healthwatch.rulefile.conditions.generate` writes it anew.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from healthwatch import resources
from healthwatch.promql.meaning.page import page as function_page
from healthwatch.rulefile import rulepage
from healthwatch.rulefile.codes import codes
from healthwatch.rulefile.conditions.builtin import CONDITIONS
from healthwatch.rulefile.conditions.page import index, page
from healthwatch.rulefile.conditions.schema import Schema, when_schema
from healthwatch.rulefile.conditions.spec import Condition

SHIPPED: Mapping[str, Condition] = {condition.name: condition for condition in CONDITIONS}

_WIDTH = 120


def rules_schema(conditions: Mapping[str, Condition] | None = None) -> Schema:
    """The schema of rule files with the conditions that are installed, or with those given."""
    schema: Schema = json.loads(resources.read_text("schemas/rules.schema.json"))
    return schema | {"$defs": schema["$defs"] | {"when": when_schema(conditions)}}


def pages() -> Mapping[str, str]:
    """Path below `docs` and text of every page."""
    conditions = {f"conditions/{name}.md": page(each, SHIPPED) for name, each in SHIPPED.items()}
    problems = {f"diagnostics/{name}.md": each.page for name, each in codes().items()}
    rules = {f"rules/{name}": text for name, text in rulepage.pages().items()}
    lists = {"conditions/README.md": index(SHIPPED), "functions.md": function_page()}
    return {**lists, **conditions, **problems, **rules}


def dump(node: Any, indent: int = 0, before: int = 0) -> str:
    """JSON with everything on one line that fits on one; `before` counts what stands in front on the first line."""
    flat = json.dumps(node, ensure_ascii=False)
    if indent + before + len(flat) < _WIDTH or not isinstance(node, (dict, list)) or not node:
        return flat
    inner = " " * (indent + 2)
    if isinstance(node, list):
        lines = [f"{inner}{dump(each, indent + 2)}" for each in node]
        return "[\n" + ",\n".join(lines) + f"\n{' ' * indent}]"
    keys = [(f"{json.dumps(key)}: ", value) for key, value in node.items()]
    lines = [f"{inner}{key}{dump(value, indent + 2, len(key))}" for key, value in keys]
    return "{\n" + ",\n".join(lines) + f"\n{' ' * indent}}}"


def write(root: Path) -> None:
    """Write everything into a source tree."""
    for name, text in pages().items():
        file = root / "docs" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    schema = root / "schemas" / "rules.schema.json"
    schema.write_text(dump(rules_schema(SHIPPED)) + "\n", encoding="utf-8")


if __name__ == "__main__":
    write(resources.path("").resolve())
