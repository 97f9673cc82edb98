"""What is left to do once a trace is there: check it, and say where the time went. Also after the run has ended.

A program of its own for a training that ends before the analysis of its last trace does.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path

from healthwatch.actions.captures.alone import alone
from healthwatch.actions.captures.limits import folder_size
from healthwatch.actions.captures.manifest import write_json, write_whole
from healthwatch.actions.captures.shelf import OPERATORS, Stored, healthy_reference, shelf, stored, wrong_since
from healthwatch.actions.captures.summary import SUMMARY, summary
from healthwatch.actions.captures.trace import Breakdown, read_aside

INTERRUPTED = "the run ended before the profile was whole"
UNWRITTEN = "the summary could not be written"
LIMIT = 600.0  # seconds after its last step that a capture waits for its trace
_LOOK_AGAIN = 1.0  # seconds
_PROGRAM = "from healthwatch.actions.captures.afterwards import main; main()"


def explain(folder: Path, breakdown: Breakdown) -> str | None:
    """Write the operators' times and the summary beside the manifest. Call it `alone`, before that says "finished".

    A healthy reference is also what those are compared with that were explained before it. Returns what went wrong: a
    capture without a summary is one all the same.
    """
    try:
        write_json(folder / OPERATORS, asdict(breakdown))
        everyone = shelf(folder.parent)
        capture = next(one for one in everyone if one.folder == folder)
        everyone = [one for one in everyone if one.run == capture.run]
        _summarise(capture, breakdown, everyone)
    except Exception as error:
        return f"{UNWRITTEN}: {error}"
    for one in everyone if capture.healthy else ():
        with suppress(Exception):  # a neighbour that can't be read or written keeps the summary that it has
            _compare_again(one, capture, everyone)
    return None


def _summarise(capture: Stored, breakdown: Breakdown, everyone: Sequence[Stored]) -> None:
    found = None if capture.kind == "reference" else healthy_reference(everyone, wrong_since(capture.manifest))
    reference, in_time = found or (None, True)
    write_whole(capture.folder / SUMMARY, summary(capture, breakdown, reference, in_time))


def _compare_again(one: Stored, reference: Stored, everyone: Sequence[Stored]) -> None:
    """Where the reference that has come is the one to compare a capture with."""
    found = healthy_reference(everyone, wrong_since(one.manifest))
    if one.kind == "reference" or found is None or found[0].folder != reference.folder:
        return
    breakdown = one.breakdown()
    if breakdown is not None:
        if str(one.manifest.get("remark")).startswith(UNWRITTEN):
            one = one.amend(remark=None)
        _summarise(one, breakdown, everyone)


def conclude(folder: Path, pattern: str, *, last: bool = True) -> bool:
    """Look for what a run has left to its analysis; whether the capture is over. Reads traces, so call it aside.

    One whose trace is not whole has failed if this is the last look.
    """
    one = stored(folder)
    if one is None or one.over:
        return True
    trace = _trace(one, pattern)
    check, breakdown = read_aside(trace, one.boundaries) if trace is not None else (None, None)
    if not last and (check is None or not check.whole):
        return False
    with alone(folder.parent):
        one = stored(folder)
        if one is None or one.over:
            return True
        if trace is None or check is None or breakdown is None:
            interrupt(one)
            return True
        where = trace.relative_to(folder) if trace.is_relative_to(folder) else trace.absolute()
        one = one.amend(problem=check.problem, trace=where, check=asdict(check), size=folder_size(folder))
        if not check.whole:
            one.amend(state="failed", healthy=False)
            return True
        remark = explain(folder, breakdown)
        one.amend(state="finished", remark=remark or one.manifest.get("remark"))
    return True


def follow(folder: Path, pattern: str) -> None:
    """Conclude a capture as soon as its trace is whole, or when nobody can hope for it any more."""
    one = stored(folder)
    waited = time.time() - one.boundaries[-1] if one is not None and one.boundaries else LIMIT
    deadline = time.monotonic() + LIMIT - min(max(waited, 0.0), LIMIT)
    while not conclude(folder, pattern, last=time.monotonic() >= deadline):
        time.sleep(_LOOK_AGAIN)


def interrupt(one: Stored) -> Stored:
    return one.amend(state="failed", healthy=False, problem=INTERRUPTED)


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
    follow(Path(sys.argv[1]), sys.argv[2])
