"""Each shipped rule has a page, made from its file: that it is current is tested with the other generated pages."""

from __future__ import annotations

import re

import pytest

from healthwatch import resources
from healthwatch.rulefile import Rule, load_rules
from healthwatch.rulefile.rulepage import pages

PAGES = pages()
RULES = [rule for pack in resources.packs() for rule in load_rules([f"builtin:{pack}"]).rules]


def test_there_is_one_for_each_and_all_are_listed() -> None:
    assert set(PAGES) == {"README.md", *(f"{rule.name}.md" for rule in RULES)}
    assert all(f"[{rule.name}]({rule.name}.md)" in PAGES["README.md"] for rule in RULES)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_a_page_says_what_whoever_is_woken_needs(rule: Rule) -> None:
    page = PAGES[f"{rule.name}.md"]
    parts = dict(re.findall(r"(?ms)^## (.*?)\n\n(.*?)(?=^## |\Z)", page))
    assert str(rule.annotations["summary"]) in parts["What it says"]
    assert len(parts["Why, and where its defaults come from"].strip()) > 60
    assert rule.expression.text.strip() in parts["How it decides"]
    assert parts["As it is written"].startswith(f"```yaml\n- alert: {rule.name}\n")
    tests = [line for line in parts["Its tests"].splitlines() if line.startswith("- ")]
    own = [line for line in tests if line.startswith(f"- {rule.name}:")]
    quiet = [line for line in tests if "quiet" in line]
    assert own
    assert quiet
    assert len(tests) >= 2
