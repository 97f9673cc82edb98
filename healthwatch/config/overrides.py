"""What is wrong with the `override` of a config or a rule test, told where it stands."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from healthwatch.config.section import Section
from healthwatch.diagnostics import Diagnostic, suggest
from healthwatch.rulefile.model import Loaded
from healthwatch.rulefile.shipped import meant


def check_overrides(section: Section, overrides: Mapping[str, Mapping[str, Any]], rules: Loaded) -> None:
    """Report rules and parameters that there are not, and what is wrong with a rule only because of its override."""
    for name, override in overrides.items():
        if name not in rules.parameters:
            mend = meant(name, rules.parameters)
            section.report("HW014", f'no rule is called "{name}"', "override", name, at_key=True, help=mend)
            continue
        for param in override.get("params", {}):
            if param not in rules.parameters[name]:
                message = f'rule "{name}" has no parameter "{param}"'
                mend = suggest(param, rules.parameters[name], "its parameters") or "it has none"
                section.report("HW019", message, "override", name, "params", param, at_key=True, help=mend)
    for each in rules.overridden:
        found, place = each.found, ("override", each.rule, *each.path)
        label = f'rule "{each.rule}"' if found.span is None else f'rule "{each.rule}" of {found.span.file}'
        fields = {"severity": found.severity, "help": found.help, "label": label}
        section.report(found.code, found.message, *place, at_key=found.code == "HW041", **fields)


def of_the_files(rules: Loaded) -> tuple[Diagnostic, ...]:
    """What is wrong with the rule files themselves."""
    moved = {each.found for each in rules.overridden}
    return tuple(each for each in rules.diagnostics if each not in moved)
