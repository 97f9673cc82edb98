"""The shipped schemas are valid, and the shipped files are valid under them."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from healthwatch import resources
from healthwatch.rulefile.schema import findings, schema
from healthwatch.yamlfile import parse

NAMES = ("rules", "config")


def check_jsonschema(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    pytest.importorskip("check_jsonschema")
    command = [sys.executable, "-m", "check_jsonschema", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.mark.long
def test_metaschema() -> None:
    done = check_jsonschema("--check-metaschema", *(resources.path(f"schemas/{name}.schema.json") for name in NAMES))
    assert done.returncode == 0, done.stdout


@pytest.mark.long
def test_packs_under_the_rules_schema() -> None:
    packs = [resources.path(f"rules/{pack}.yaml") for pack in resources.packs()]
    done = check_jsonschema("--schemafile", resources.path("schemas/rules.schema.json"), *packs)
    assert done.returncode == 0, done.stdout


def mappings(part: Any, path: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    if isinstance(part, dict):
        yield path, part
        for key, value in part.items():
            yield from mappings(value, f"{path}/{key}")
    elif isinstance(part, list):
        for position, value in enumerate(part):
            yield from mappings(value, f"{path}/{position}")


@pytest.mark.parametrize("name", NAMES)
def test_choices_stay_completable(name: str) -> None:
    """oneOf gives one useless error, maxProperties ends completion in editors."""
    for path, part in mappings(schema(name)):
        assert not {"oneOf", "maxProperties"} & set(part), path


OURS = [("rules", each) for each in ("group", "rule", "metric")]
OURS += [("config", each) for each in ("healthwatch", "ladder_step", "receiver", "override")]


@pytest.mark.parametrize(("name", "part"), OURS)
def test_every_key_of_ours_is_described(name: str, part: str) -> None:
    """Editors show the description; that of a $ref counts."""
    defs = schema(name)["$defs"]
    for key, described in defs[part]["properties"].items():
        named = defs.get(described.get("$ref", "").removeprefix("#/$defs/"), {})
        assert described.get("description") or named.get("description"), key


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("groups: []\nmetrics: {a-b: {}}", '"a-b" is not a metric name'),
        ("groups: []\nmetrics: {a: {kind: gouge}}", '"kind" can\'t be "gouge"'),
        ("groups: []\nmetrics: {a: {unti: x}}", 'unknown key "unti" in metric'),
        ("groups: 3", '"groups" must be a list, not 3'),
        ("groups: [3]", 'item 1 of "groups" must be a group, not 3'),
        ("groups: [{name: g, rules: [3]}]", 'item 1 of "rules" must be a rule, not 3'),
        ("groups: [{name: [x], rules: []}]", '"name" must be text, not a list'),
        ("groups: [{name: g, rules: {}}]", '"rules" must be a list, not a mapping'),
    ],
)
def test_messages(text: str, message: str) -> None:
    (problem,) = findings(parse(text.encode(), "f"), "rules")
    assert problem.diagnostic.message == message


def test_schemas_are_plain_json() -> None:
    for name in NAMES:
        assert schema(name) == json.loads(resources.read_text(f"schemas/{name}.schema.json"))
        assert schema(name)["$schema"].endswith("2020-12/schema")
