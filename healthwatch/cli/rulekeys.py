"""What is written around conditions and expressions: the keys of a rule, and what combines conditions."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping
from typing import Any

from healthwatch.rulefile.conditions.page import COMBINED
from healthwatch.rulefile.schema import schema

_WIDTH = 110


def rule_keys() -> Mapping[str, Mapping[str, Any]]:
    """The schema of each key of a rule, those of a group behind them."""
    shapes = schema("rules")["$defs"]
    return {**shapes["group"]["properties"], **shapes["rule"]["properties"]}


def names() -> list[str]:
    return [*rule_keys(), *COMBINED]


def explained(name: str) -> Iterator[str]:
    """A key is found with its colon too."""
    name = name.removesuffix(":")
    if name in COMBINED:
        yield f"{name}: combines conditions under when\n\n{COMBINED[name]}"
    keys = rule_keys()
    if name in keys:
        owner = "rule" if name in schema("rules")["$defs"]["rule"]["properties"] else "group"
        yield "\n".join([f"{name}: a key of a {owner}", "", *_facts(keys[name])])


def _facts(key: Mapping[str, Any]) -> Iterator[str]:
    below = _resolved(key)
    yield textwrap.fill(str(key.get("description") or below.get("description", "")), _WIDTH)
    if key.get("description") and below.get("form"):
        yield f"  takes    a {below['form']}"
        if below["description"]:
            yield f"           {below['description']}"
    if "enum" in key:
        yield f"  one of   {', '.join(key['enum'])}"
    if "default" in key:
        yield f"  default  {key['default']}"


def _resolved(key: Mapping[str, Any]) -> Mapping[str, Any]:
    name = str(key.get("$ref", "")).removeprefix("#/$defs/")
    found: Mapping[str, Any] = schema("rules")["$defs"].get(name, {})
    return found
