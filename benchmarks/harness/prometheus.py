"""The workload's rules as Prometheus rule files, and promtool's own evaluation of them."""

from __future__ import annotations

import re
import resource
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import yaml

from harness.histories import Replay
from harness.workload import Workload

RULES = "adef"
PROMQL = {
    "a": "x > 8 * quantile_over_time(0.5, x[48500ms] offset 1s)",  # 49 samples, wherever the window is closed
    "d": "x != x or abs(x) == Inf",
    "e": "max by (layer) (x) / avg by (layer) (x) > 4",
    "f": "x > 2 * x offset 100s",
}
"""Rules b and c have no expression there: no deviation from the median, no exponential mean."""

_TOOLS = Path(__file__).parents[2] / ".tools"


def tool(name: str) -> str | None:
    """The path of a program that is installed, or lies in `.tools`."""
    return shutil.which(name) or shutil.which(name, path=str(_TOOLS))


def rule_file() -> dict[str, Any]:
    rules = [{"alert": name, "expr": PROMQL[name], "for": "2s"} for name in RULES]
    return {"groups": [{"name": "bench", "interval": "1s", "rules": rules}]}


def children() -> float:
    """Processor time of all child processes that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def promtool(work: Workload, program: str) -> Replay:
    steps = len(work.values)
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "rules.yml").write_text(yaml.safe_dump(rule_file()))
        test = Path(folder, "test.yml")
        test.write_text(yaml.safe_dump(_test_file(work), width=1_000_000))
        before = children()
        said = subprocess.run([program, "test", "rules", test], capture_output=True, text=True, check=False)
        seconds = children() - before
    found = re.search(r"got:.*\{\} ([0-9.eE+]+)", said.stdout + said.stderr, re.DOTALL)
    if found is None:
        raise SystemExit(f"promtool on {steps} steps: {(said.stdout + said.stderr)[:2000]}")
    return Replay(seconds, int(float(found[1])))


def _test_file(work: Workload) -> dict[str, Any]:
    """A test that expects nothing of all alerts, so that promtool prints how many it got."""
    steps = len(work.values)
    series = [
        {"series": f"x{{{_labels(labels)}}}", "values": " ".join(["_", *map(_number, column.tolist())])}
        for labels, column in zip(work.labels, work.values.T, strict=True)
    ]
    asked = [{"expr": f"sum(count_over_time(ALERTS[{steps + 1}s]))", "eval_time": f"{steps}s"}]
    test = {"interval": "1s", "input_series": series, "promql_expr_test": asked}
    return {"rule_files": ["rules.yml"], "evaluation_interval": "1s", "tests": [test]}


def _labels(labels: dict[str, str]) -> str:
    return ",".join(f'{name}="{value}"' for name, value in labels.items())


def _number(value: float) -> str:
    return {"inf": "Inf", "nan": "NaN"}.get(repr(value), repr(value))
