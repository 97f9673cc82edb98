"""The pages of shipped rules under `docs/rules/`, made from the packs and their tests."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from healthwatch import resources, yamlfile
from healthwatch.rulefile.load import BUILTIN, load_rules
from healthwatch.rulefile.model import Rule
from healthwatch.stream.ticks import Duration
from healthwatch.yamlfile import Document


def pages() -> Mapping[str, str]:
    """Name and text of every page, and of the one that lists them."""
    packs = {pack: load_rules([f"{BUILTIN}{pack}"]).rules for pack in resources.packs()}
    found = {f"{rule.name}.md": page(rule, pack) for pack, rules in packs.items() for rule in rules}
    return {"README.md": _index(packs), **found}


def page(rule: Rule, pack: str) -> str:
    """One rule as Markdown: what it says, how it decides, why its defaults are what they are, how it is tested."""
    document = yamlfile.load(resources.path(f"rules/{pack}.yaml"))
    sections = [
        f"# {rule.name}\n\n{_head(rule, pack)}",
        f"## What it says\n\n> {rule.annotations['summary']}\n\n{rule.annotations['action']}",
        f"## Why, and where its defaults come from\n\n{_comment(document, rule.span.line)}",
        f"## How it decides\n\n```promql\n{rule.expression.text.strip()}\n```\n\n{_keys(rule)}",
        f"## As it is written\n\n```yaml\n{_source(document, rule.span.line)}\n```",
        f"## Its tests\n\n{_tests(pack, rule.name)}",
        f"## To change it\n\nIn the config:\n\n```yaml\n{_override(rule)}\n```",
    ]
    return "\n\n".join(section for section in sections if section) + "\n"


def _head(rule: Rule, pack: str) -> str:
    return (
        f"{rule.severity.capitalize()}, of the pack `{BUILTIN}{pack}` ([rules/{pack}.yaml](../../rules/{pack}.yaml))."
    )


def _comment(document: Document, line: int) -> str:
    """What stands above the rule in its file."""
    above: list[str] = []
    for number in range(line - 1, 0, -1):
        text = document.text.line(number).strip()
        if not text.startswith("#"):
            break
        above.insert(0, text.removeprefix("#").strip())
    return " ".join(above)


def _source(document: Document, line: int) -> str:
    first = document.text.line(line)
    indent = len(first) - len(first.lstrip())
    lines = [first]
    for number in range(line + 1, len(document.text.lines) + 1):
        text = document.text.line(number)
        if text.strip() and len(text) - len(text.lstrip()) <= indent:
            break
        lines.append(text)
    return "\n".join(each[indent:].rstrip() for each in lines).rstrip()


def _keys(rule: Rule) -> str:
    """What is in force beside the expression, one row a key."""
    rows = {
        **{f"`${name}`": f"{value}" for name, value in rule.params.items()},
        "fires": _fires(rule),
        "goes on firing": _goes_on(rule),
        "not evaluated": _not_evaluated(rule),
        "held back by": ", ".join(f"[{each}]({each}.md)" for each in _inhibitors(rule)),
        "a message lists": f"`{' '.join(rule.detail.text.split())}`" if rule.detail else "",
    }
    shown = [f"| {key} | {value.replace('|', chr(92) + '|')} |" for key, value in rows.items() if value]
    return "\n".join(["| | |", "|---|---|", *shown])


def _inhibitors(rule: Rule) -> Iterable[str]:
    """Those of other packs too, which are left out where a pack is loaded alone."""
    document = yamlfile.load(resources.path(f"rules/{rule.span.file.removeprefix(BUILTIN)}.yaml"))
    written: Mapping[str, Any] = next(
        each for group in document.data["groups"] for each in group["rules"] if each["alert"] == rule.name
    )
    names: list[str] = written.get("inhibited_by", [])
    return names


def _fires(rule: Rule) -> str:
    if rule.for_records is not None:
        return f"at the {_ordinal(rule.for_records)} breach without a clear between"
    return "at the first breach" if rule.for_ == Duration(steps=0) else f"after {rule.for_} of breaches"


def _ordinal(number: int) -> str:
    return {1: "first", 2: "second", 3: "third"}.get(number, f"{number}th")


def _goes_on(rule: Rule) -> str:
    kept = f"{rule.keep_firing_for} after the last breach" if rule.keep_firing_for != Duration(steps=0) else ""
    held = f"while `{' '.join(rule.until.text.split())}`" if rule.until else ""
    return ", and ".join(filter(None, (kept, held)))


def _not_evaluated(rule: Rule) -> str:
    warmup = f"up to step {rule.warmup}" if rule.warmup else ""
    settle = f"in the first {rule.settle} steps after a start" if rule.settle else ""
    return ", and ".join(filter(None, (warmup, settle)))


def _tests(pack: str, name: str) -> str:
    """The names of the tests that ask about the rule."""
    tests = yamlfile.load(resources.path(f"rules/{pack}.test.yaml")).data["tests"]
    named = [str(each["name"]) for each in tests if name in _asked(each)]
    link = f"[rules/{pack}.test.yaml](../../rules/{pack}.test.yaml)"
    return f"In {link}; `healthwatch test` runs them.\n\n" + "\n".join(f"- {each}" for each in named)


def _asked(test: Mapping[str, Any]) -> set[str]:
    """The rules that a test expects something of, or is named after."""
    alerts = {each["alertname"] for each in test.get("alert_rule_test", [])}
    incidents = {each.get("rule", "") for each in test.get("exp_incidents") or []}
    return alerts | incidents | {str(test["name"]).split(":", maxsplit=1)[0]}


def _override(rule: Rule) -> str:
    change = next((f"{{params: {{{name}: {value}}}}}" for name, value in rule.params.items()), "{enabled: false}")
    return f"healthwatch:\n  override:\n    {rule.name}: {change}"


def _index(packs: Mapping[str, Iterable[Rule]]) -> str:
    parts = [_INTRODUCTION]
    for pack, rules in packs.items():
        rows = "\n".join(f"| [{each.name}]({each.name}.md) | {each.severity} | {_one_line(each)} |" for each in rules)
        parts.append(f"## builtin:{pack}\n\n| rule | severity | says |\n|---|---|---|\n{rows}")
    return "\n\n".join(parts) + "\n"


def _one_line(rule: Rule) -> str:
    return str(rule.annotations["summary"]).replace("|", "\\|")


_INTRODUCTION = """# Shipped rules

Each pack is a rule file with its test beside it, in `rules/`. A config without `rules:` loads all of them. What the
keys of a rule mean: [rules.md](../rules.md)."""
