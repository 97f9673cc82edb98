"""Asks the real promtool, and keeps what it said: `python tests/promtool/promtool.py` writes golden/ anew."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import yaml
from dialects import Case, promtool_rules, promtool_test, with_units
from known_cases import APART, SAME
from random_cases import alert_case, expression_case

HERE = Path(__file__).parent
GOLDEN = HERE / "golden"
PROMTOOL = HERE.parents[1] / ".tools" / "promtool"

ALERT_SEEDS = range(12)
EXPRESSION_SEEDS = range(8)
ASKED = (1, 2, 7, 20, 33, 59)

_ANSWER = re.compile(
    r'    expr: (?P<expr>"(?:[^"\\]|\\.)*"), time: (?P<step>[0-9ms]+),(?P<rest>[^\n]*(?:\n        [^\n]*)*)'
)
_SAMPLE = re.compile(r"\{([^}]*)\} ([^,\s]+)")

Answers = dict[tuple[str, int], "dict[str, float] | str"]
"""By expression and step: values by label set as text, or an error."""


def ask(case: Case, queries: list[tuple[str, int]]) -> Answers:
    """What promtool makes of expressions in its dialect at some steps; what it does not print is empty."""
    with tempfile.TemporaryDirectory() as folder:
        rules, test = Path(folder, "rules.yml"), Path(folder, "test.yml")
        rules.write_text(yaml.safe_dump(promtool_rules(case)))
        test.write_text(yaml.safe_dump(promtool_test(case, queries, rules.name), width=10_000))
        ran = subprocess.run(
            [PROMTOOL, "test", "rules", test], capture_output=True, text=True, timeout=300, check=False
        )
    said = ran.stdout + ran.stderr
    answers: Answers = {query: {} for query in queries}
    found = list(_ANSWER.finditer(said))
    for answer in found:
        answers[json.loads(answer["expr"]), _seconds(answer["step"])] = _samples(answer["rest"])
    if len(found) != said.count("    expr: ") or "FAILED" not in said:
        raise RuntimeError(f"{case.name}: promtool says {said}")
    return answers


def _seconds(text: str) -> int:
    minutes, _, seconds = text.rpartition("m")
    return int(minutes or 0) * 60 + int(seconds.rstrip("s") or 0)


def _samples(rest: str) -> dict[str, float] | str:
    if "err: " in rest:
        return rest.partition("err: ")[2].strip()
    return {labels: float(value) for labels, value in _SAMPLE.findall(rest.partition("got:")[2])}


def alert_timelines(case: Case) -> dict[str, str]:
    """A character a step for every alert that ever was: `.` inactive, `p` pending, `f` firing."""
    answers = ask(case, [("ALERTS", step) for step in range(1, case.steps + 1)])
    timelines: dict[str, list[str]] = {}
    for (_, step), alerts in answers.items():
        assert isinstance(alerts, dict), alerts
        for text in alerts:
            labels = dict(re.findall(r'(\w+)="([^"]*)"', text))
            state, rule = labels.pop("alertstate"), labels.pop("alertname")
            labels.pop("__name__")
            timeline = timelines.setdefault(alert_name(rule, labels), ["."] * case.steps)
            timeline[step - 1] = state[0]
    return {name: "".join(timeline) for name, timeline in sorted(timelines.items())}


def alert_name(rule: str, labels: dict[str, str]) -> str:
    return rule + "{" + ", ".join(f'{key}="{value}"' for key, value in sorted(labels.items())) + "}"


def values(case: Case) -> dict[str, dict[str, Any]]:
    """The results of a case's expressions by step: values as text by label set, or `error`.

    The last digits depend on the order in which promtool happened to add up, and are left out.
    """
    written = {with_units(expr): expr for expr in case.expressions}
    answers = ask(case, [(text, step) for text in written for step in ASKED])
    results: dict[str, dict[str, Any]] = {}
    for (text, step), answer in answers.items():
        found = "error" if isinstance(answer, str) else {labels: f"{value:.12g}" for labels, value in answer.items()}
        results.setdefault(written[text], {})[str(step)] = found
    return results


def golden(name: str) -> Any:
    return json.loads((GOLDEN / f"{name}.json").read_text(encoding="utf-8"))


def main() -> None:
    GOLDEN.mkdir(exist_ok=True)
    alerts = {case.name: alert_timelines(case) for case in map(alert_case, ALERT_SEEDS)}
    expressions = {case.name: values(case) for case in map(expression_case, EXPRESSION_SEEDS)}
    known = {case.name: alert_timelines(case) for case in (*SAME, *APART)}
    for name, found in (("alerts", alerts), ("expressions", expressions), ("known", known)):
        (GOLDEN / f"{name}.json").write_text(json.dumps(found, indent=1, sort_keys=True) + "\n", encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
