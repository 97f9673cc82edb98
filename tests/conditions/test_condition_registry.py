"""Conditions enter by entry points, whoever made them."""

from __future__ import annotations

import re
import sys
from importlib.metadata import EntryPoint
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from healthwatch.rulefile.conditions import (
    Arguments,
    Condition,
    Expansion,
    Test,
    brief,
    expand,
    page,
    registry,
    when_schema,
)
from healthwatch.rulefile.conditions.registry import GROUP, collect
from healthwatch.rulefile.conditions.spec import SERIES
from healthwatch.stream.catalogue import catalogue


def halved(args: Arguments) -> Expansion:
    return Expansion((Test.of(f"{args.selector} / {args.selector} offset 10", "<", "0.5"),))


def condition(name: str, expander: object = halved) -> Condition:
    return Condition(
        name=name,
        summary="Half of what it was.",
        finds="Values that have halved in ten steps.",
        formula="x / x ten steps ago < 0.5",
        source="A plug-in.",
        example={"metric": "loss"},
        not_for="Anything else.",
        labels="those of the series",
        value="the ratio",
        parameters=SERIES,
        expand=expander,  # type: ignore[arg-type]
    )


@pytest.fixture
def plugin(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    module = ModuleType("somebodys_plugin")
    monkeypatch.setitem(sys.modules, "somebodys_plugin", module)
    return module


BUILTIN = EntryPoint("builtin", "healthwatch.rulefile.conditions.builtin:CONDITIONS", GROUP)


def third_party(attribute: str) -> EntryPoint:
    return EntryPoint("theirs", f"somebodys_plugin:{attribute}", GROUP)


def test_the_shipped_ones_are_installed() -> None:
    assert set(registry().conditions) >= set(collect([BUILTIN]).conditions)
    assert len(collect([BUILTIN]).conditions) == 15


def test_a_plug_in_is_like_a_built_in(plugin: ModuleType) -> None:
    plugin.halved = condition("halved")  # type: ignore[attr-defined]
    known = collect([third_party("halved"), BUILTIN])
    assert known.failures == ()
    assert list(known.conditions)[-1] == "halved"
    expanded = expand({"not": {"halved": {"metric": "loss"}}}, catalogue(), conditions=known.conditions)
    assert expanded.text == "loss / loss offset 10 >= 0.5"
    assert "halved" in when_schema(known.conditions)["properties"]
    assert "Values that have halved" in brief(known.conditions["halved"], known.conditions)
    assert "loss / loss offset 10 < 0.5" in page(known.conditions["halved"], known.conditions)


@pytest.mark.parametrize(
    ("name", "made", "reason"),
    [
        ("threshold", None, 'there is a condition "threshold" already'),
        ("quorum", None, "can't be the name of a condition"),
        ("x", 5, "TypeError"),
        ("x", [5], "5 is not a Condition"),
    ],
)
def test_one_that_fails_leaves_the_others_alone(plugin: ModuleType, name: str, made: object, reason: str) -> None:
    plugin.theirs = condition(name) if made is None else made  # type: ignore[attr-defined]
    known = collect([third_party("theirs"), third_party("nothing_there"), BUILTIN])
    assert set(known.conditions) == set(collect([BUILTIN]).conditions)
    assert len(known.failures) == 2
    assert reason in known.failures[0]


def test_one_that_expands_to_nonsense_is_a_problem_of_its_use(plugin: ModuleType) -> None:
    plugin.theirs = condition("theirs", lambda _: Expansion((Test("((", "))", "x"),)))  # type: ignore[attr-defined]
    plugin.raising = condition("raising", lambda _: 1 / 0)  # type: ignore[attr-defined]
    known = collect([third_party("theirs"), EntryPoint("raising", "somebodys_plugin:raising", GROUP)])
    for name in known.conditions:
        expanded = expand({name: {"metric": "loss"}}, catalogue(), conditions=known.conditions)
        assert [(found.kind, found.path) for found in expanded.problems] == [("bad expansion", (name,))]


def test_the_example_of_the_page_works():
    text = (Path(__file__).resolve().parents[2] / "docs" / "conditions" / "README.md").read_text(encoding="utf-8")
    (example,) = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    namespace: dict[str, Any] = {}
    exec(example, namespace)
    halved_ = namespace["HALVED"]
    expanded = expand({"halved": {"metric": "loss"}}, catalogue(), conditions={"halved": halved_})
    assert expanded.text == "loss / loss offset 10 < 0.5"
