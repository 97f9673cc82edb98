"""Runs Prometheus' promqltest scripts against our engine: `python tests/conformance/run.py DIR...`.

A step is a second, look-back is 300 steps, a subquery without a step has 60. Histogram samples are known by
name only: an evaluation that would have to compute one, or to look into it, is skipped.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from promqltest_compare import SkippedError, WrongResultError
from promqltest_engine import check
from promqltest_script import Clear, Eval, Load, read_script
from promqltest_series import ScriptError
from promqltest_storage import Storage


@dataclass(slots=True)
class Tally:
    passed: int = 0
    failures: list[str] = field(default_factory=list)
    skipped: Counter[str] = field(default_factory=Counter)

    def summary(self) -> str:
        return f"{self.passed} passed, {len(self.failures)} failed, {self.skipped.total()} skipped"


def main(folders: Iterable[str]) -> int:
    """0 if nothing failed, 1 if something did, 2 if there was nothing to run."""
    tally = Tally()
    for path in scripts(folders):
        before = len(tally.failures)
        run_script(path, tally)
        for failure in tally.failures[before:]:
            print(failure)
    for reason, count in sorted(tally.skipped.items()):
        print(f"skipped {count}: {reason}")
    print(tally.summary())
    return 1 if tally.failures else 0 if tally.passed else 2


def scripts(folders: Iterable[str]) -> Iterator[Path]:
    for folder in map(Path, folders):
        yield from [folder] if folder.is_file() else sorted(folder.glob("*.test"))


def run_script(path: Path, tally: Tally) -> None:
    """Run every evaluation of a script; one that can't be read is a failure."""
    storage = Storage()
    try:
        for command in read_script(path.read_text(encoding="utf-8")):
            match command:
                case Clear():
                    storage = Storage()
                case Load():
                    storage.load(command)
                case Eval():
                    _evaluate(path, command, storage, tally)
    except ScriptError as error:
        tally.failures.append(f"{path}: {error}")


def _evaluate(path: Path, command: Eval, storage: Storage, tally: Tally) -> None:
    try:
        check(command, storage)
    except SkippedError as skipped:
        tally.skipped[str(skipped)] += 1
    except WrongResultError as error:
        tally.failures.append(f"{path}:{command.line}: {command.text}\n    {error}")
    else:
        tally.passed += 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
