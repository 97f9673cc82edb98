"""Pages and schema follow from the catalogue; what lies in the repository is what would be made anew."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from healthwatch import resources
from healthwatch.rulefile.conditions import Condition, expand, when_schema
from healthwatch.rulefile.conditions.builtin import CONDITIONS
from healthwatch.rulefile.conditions.generate import SHIPPED, pages
from healthwatch.stream.catalogue import catalogue

PAGES = Path(__file__).resolve().parents[2] / "docs"
MADE_ANEW = pages()
KNOWN = SHIPPED
AGAIN = "run `python -m healthwatch.rulefile.conditions.generate`"


def validator() -> Draft202012Validator:
    schema = {"$ref": "#/$defs/when", "$defs": {"when": when_schema(KNOWN)}}
    Draft202012Validator.check_schema(schema)
    return Draft202012Validator(schema)


@pytest.mark.parametrize("name", MADE_ANEW)
def test_page_is_current(name: str) -> None:
    assert (PAGES / name).read_text(encoding="utf-8") == MADE_ANEW[name], AGAIN


@pytest.mark.parametrize("folder", ["conditions", "diagnostics", "rules"])
def test_there_are_no_other_pages(folder: str) -> None:
    assert {f"{folder}/{file.name}" for file in (PAGES / folder).iterdir()} == {
        name for name in MADE_ANEW if name.startswith(f"{folder}/")
    }


def test_rules_schema_is_current() -> None:
    written = json.loads(resources.read_text("schemas/rules.schema.json"))
    assert written["$defs"]["when"] == when_schema(SHIPPED), AGAIN


@pytest.mark.parametrize("condition", CONDITIONS, ids=lambda each: each.name)
def test_examples_pass_the_schema_and_expand(condition: Condition) -> None:
    for example in (condition.example, *condition.examples):
        when = {condition.name: dict(example)}
        assert list(validator().iter_errors(when)) == []
        expanded = expand(when, catalogue(), conditions=KNOWN)
        assert expanded.problems == ()
        assert expanded.text is not None


def test_defaults_pass_the_schema() -> None:
    for condition in CONDITIONS:
        schema = when_schema(KNOWN)["properties"][condition.name]["properties"]
        for parameter in condition.parameters:
            if parameter.default is not None:
                assert Draft202012Validator(schema[parameter.name]).is_valid(parameter.default), parameter


@pytest.mark.parametrize(
    "when",
    [
        {"all": [{"nonfinite": {"metric": "loss"}}, {"not": {"drop": {"metric": "loss", "below": "$x"}}}]},
        {"nonfinite": {"metric": ["a", "b"]}, "quorum": "2.5%"},
        {"nonfinite": {"metric": "a"}, "quorum": {"at_least": 3, "by": ["rank"]}},
    ],
)
def test_schema_accepts(when: object) -> None:
    assert validator().is_valid(when)


@pytest.mark.parametrize(
    "when",
    [
        {"nonfinit": {}},
        {"nonfinite": {"metric": "loss", "abov": 1}},
        {"nonfinite": {}},
        {"all": []},
        {"spike_ratio": {"metric": "loss", "window": 0}},
        {"spike_ratio": {"metric": "loss", "above": "8"}},
        {"stalled": {"after": "10"}},
        {"nonfinite": {"metric": "loss"}, "quorum": "five"},
        {"saturation": {"metric": "x", "at_least": 2}},
    ],
)
def test_schema_refuses(when: object) -> None:
    assert not validator().is_valid(when)


def test_schema_has_no_construct_that_spoils_completion() -> None:
    def keys(node: object) -> set[str]:
        if isinstance(node, dict):
            return set(node) | {key for value in node.values() for key in keys(value)}
        return {key for each in node for key in keys(each)} if isinstance(node, list) else set()

    assert keys(when_schema(KNOWN)).isdisjoint(("oneOf", "anyOf", "maxProperties", "allOf", "if"))


def test_everything_is_described() -> None:
    for condition in CONDITIONS:
        schema = when_schema(KNOWN)["properties"][condition.name]
        assert all(each["description"] for each in (schema, *schema["properties"].values()))
