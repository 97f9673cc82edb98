"""The shipped schemas are valid, and the shipped files are valid under them."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from healthwatch import resources
from healthwatch.rulefile.schema import findings, schema
from healthwatch.yamlfile import parse

NAMES = ("rules", "config")
SCHEMAS = (*NAMES, "ruletest", "record")


def check_jsonschema(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    pytest.importorskip("check_jsonschema")
    command = [sys.executable, "-m", "check_jsonschema", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.mark.long
def test_metaschema() -> None:
    done = check_jsonschema("--check-metaschema", *(resources.path(f"schemas/{name}.schema.json") for name in SCHEMAS))
    assert done.returncode == 0, done.stdout


@pytest.mark.long
def test_packs_under_the_rules_schema() -> None:
    packs = [resources.path(f"rules/{pack}.yaml") for pack in resources.packs()]
    done = check_jsonschema("--schemafile", resources.path("schemas/rules.schema.json"), *packs)
    assert done.returncode == 0, done.stdout


@pytest.mark.long
@pytest.mark.parametrize(
    ("name", "patterns"),
    [
        ("ruletest", ("[rte]*/**/*.test.yaml", "healthwatch/cli/first/*.test.yaml")),
        ("config", ("healthwatch/cli/first/healthwatch.yaml", "examples/*/train.yaml", "examples/reference/*.yaml")),
        ("rules", ("healthwatch/cli/first/my-rules.yaml", "examples/tour/my-rules.yaml", "tests/ruletest/**/*s.yaml")),
    ],
)  # fmt: skip
def test_whatever_else_is_shipped_is_valid_under_its_schema(name: str, patterns: tuple[str, ...]) -> None:
    root = Path(__file__).resolve().parents[2]
    files = [file for pattern in patterns for file in sorted(root.glob(pattern))]
    assert len(files) >= 3
    done = check_jsonschema("--schemafile", resources.path(f"schemas/{name}.schema.json"), *files)
    assert done.returncode == 0, done.stdout


def mappings(part: Any, path: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    if isinstance(part, dict):
        yield path, part
        for key, value in part.items():
            yield from mappings(value, f"{path}/{key}")
    elif isinstance(part, list):
        for position, value in enumerate(part):
            yield from mappings(value, f"{path}/{position}")


@pytest.mark.parametrize("name", SCHEMAS)
def test_choices_stay_completable(name: str) -> None:
    """oneOf gives one useless error, maxProperties ends completion in editors."""
    for path, part in mappings(schema(name)):
        assert not {"oneOf", "maxProperties"} & set(part), path


def described(node: Mapping[str, Any], root: Mapping[str, Any]) -> dict[str, Any]:
    """A schema with what it refers to: what stands beside a $ref wins, as in editors."""
    found: dict[str, Any] = dict(node)
    while "$ref" in node:
        node = root["$defs"][node["$ref"].removeprefix("#/$defs/")]
        found = {**node, **found}
    return found


def keys(name: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Every key that a file may hold, as an editor sees it."""
    for path, part in mappings(schema(name)):
        named = part.get("properties")
        if isinstance(named, dict) and not path.endswith(("/properties", "/if")):
            yield from ((f"{path}/{key}", described(each, schema(name))) for key, each in named.items())


@pytest.mark.parametrize("name", SCHEMAS)
def test_everything_has_a_title_and_a_description(name: str) -> None:
    found = list(keys(name))
    assert len(found) > 5
    for path, each in (("", dict(schema(name))), *found):
        assert each.get("title"), path
        assert each.get("description"), path


@pytest.mark.parametrize("name", SCHEMAS)
def test_every_value_has_an_example_a_default_or_choices(name: str) -> None:
    for path, each in keys(name):
        nested = "properties" in each or each.get("type") == "boolean"
        assert nested or {"examples", "default", "enum"} & set(each) or "additionalProperties" in each, path


def at(whole: Mapping[str, Any], path: str) -> Draft202012Validator:
    """The validator of one place in a schema."""
    inner = {key: value for key, value in whole.items() if key != "$id"}
    defs = {**whole.get("$defs", {}), "whole": inner}
    return Draft202012Validator({"$defs": defs, "$ref": f"#/$defs/whole{path}"})


@pytest.mark.parametrize("name", SCHEMAS)
def test_examples_and_defaults_are_valid(name: str) -> None:
    """What an editor inserts must not be underlined."""
    whole, checked = schema(name), 0
    for path, part in mappings(whole):
        if path.endswith(("/properties", "/$defs")):
            continue
        examples = part.get("examples", [])
        given = [*(examples if isinstance(examples, list) else []), *([part["default"]] if "default" in part else [])]
        for value in given:
            validator = at(whole, path)
            assert not list(validator.iter_errors(value)), (path, value)
            checked += 1
    assert checked > 5


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
    for name in SCHEMAS:
        assert schema(name) == json.loads(resources.read_text(f"schemas/{name}.schema.json"))
        assert schema(name)["$schema"].endswith("2020-12/schema")
