"""What is left to do once a trace is there: check it, and say where the time went. Also after the run has ended.

A program of its own for a training that ends before the analysis of its last trace does.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path

from healthwatch.actions.captures.limits import folder_size
from healthwatch.actions.captures.manifest import write_json, write_whole
from healthwatch.actions.captures.shelf import OPERATORS, Stored, healthy_reference, shelf, stored, wrong_since
from healthwatch.actions.captures.summary import SUMMARY, summary
from healthwatch.actions.captures.trace import Breakdown, read_aside

INTERRUPTED = "the run ended before the profile was whole"
_LIMIT = 600.0  # seconds
_LOOK_AGAIN = 1.0  # seconds
_PROGRAM = "from healthwatch.actions.captures.afterwards import main; main()"


def explain(folder: Path, breakdown: Breakdown) -> str | None:
    """Write the operators' times and the summary beside the manifest, before that says that the capture is finished.

    A healthy reference is also what those are compared with that were explained before it. Returns what went wrong: a
    capture without a summary is one all the same.
    """
    capture = stored(folder)
    if capture is None:
        return None
    try:
        write_json(folder / OPERATORS, asdict(breakdown))
        _summarise(capture, breakdown)
        for one in shelf(folder.parent) if capture.healthy else ():
            if one.kind != "reference" and (found := one.breakdown()) is not None:
                _summarise(one, found)
    except (OSError, ValueError, LookupError, TypeError) as error:
        return f"the summary could not be written: {error}"
    return None


def _summarise(capture: Stored, breakdown: Breakdown) -> None:
    others = [one for one in shelf(capture.folder.parent) if one.folder != capture.folder]
    found = None if capture.kind == "reference" else healthy_reference(others, wrong_since(capture.manifest))
    reference, in_time = found or (None, True)
    write_whole(capture.folder / SUMMARY, summary(capture, breakdown, reference, in_time))


def conclude(leftovers: Iterable[Stored], pattern: str) -> None:
    """What a run has left to its analysis, which may have ended since. Reads traces, so call it aside."""
    for one in leftovers:
        trace = _trace(one, pattern)
        if trace is None:
            interrupt(one)
            continue
        check, breakdown = read_aside(trace, one.boundaries)
        where = trace.relative_to(one.folder) if trace.is_relative_to(one.folder) else trace.absolute()
        remark = explain(one.folder, breakdown) if check.whole else None
        one.amend(
            state="finished" if check.whole else "failed",
            problem=check.problem,
            remark=remark or one.manifest.get("remark"),
            trace=where,
            check=asdict(check),
            size=folder_size(one.folder),
        )


def interrupt(one: Stored) -> Stored:
    return one.amend(state="failed", problem=INTERRUPTED)


def _trace(one: Stored, pattern: str) -> Path | None:
    """Its trace, if there is one that is no older than its last step."""
    with suppress(OSError, IndexError):
        found = [path for path in one.records.glob(pattern) if path.stat().st_mtime >= one.boundaries[-1]]
        return max(found, key=lambda path: path.stat().st_mtime, default=None)
    return None


# After the run


def leave(folder: Path, pattern: str) -> None:
    """Have a process of its own conclude the capture of a folder, whatever becomes of this one."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(each for each in sys.path if each)}
    subprocess.Popen(
        [sys.executable, "-c", _PROGRAM, str(folder), pattern],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env=environment,
        start_new_session=True,
    )


def main() -> None:
    folder, pattern = Path(sys.argv[1]), sys.argv[2]
    deadline = time.monotonic() + _LIMIT
    while (one := stored(folder)) is not None and not one.over:
        trace = _trace(one, pattern)
        if time.monotonic() > deadline or (trace is not None and read_aside(trace, one.boundaries)[0].whole):
            conclude([one], pattern)
            return
        time.sleep(_LOOK_AGAIN)
