"""Where the time of a capture went, beside a healthy reference: the largest differences first."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from healthwatch.actions.captures.shelf import Stored
from healthwatch.actions.captures.trace import Breakdown, Share

SUMMARY = "summary.md"
LISTED = 30
_TEXT = ("ms a step", "operator", "runs on")  # columns that hold no numbers

_READING = (
    "Times are milliseconds a step: the mean over the recorded steps, in brackets the least and the most of one step."
    " An operator's time is its own, without operators that ran inside it. *Steps* says in how many of the recorded"
    " steps it ran: a mean over one step proves little."
)


@dataclass(frozen=True, slots=True)
class Measure:
    """Milliseconds and calls by step of one thing in one capture; all zero where it never ran."""

    ms: tuple[float, ...]
    calls: tuple[int, ...]

    @property
    def mean(self) -> float:
        return sum(self.ms) / len(self.ms) if self.ms else 0.0

    @property
    def calls_a_step(self) -> float:
        return sum(self.calls) / len(self.calls) if self.calls else 0.0

    @property
    def steps(self) -> int:
        """In how many of the recorded steps it ran."""
        return sum(count > 0 for count in self.calls)


@dataclass(frozen=True, slots=True)
class Difference:
    """One operator in a capture and in what it is compared with, None where there is nothing to compare with."""

    track: str
    name: str
    measured: Measure
    reference: Measure | None

    @property
    def ms(self) -> float:
        """How many milliseconds a step more than in the reference."""
        return self.measured.mean - (self.reference.mean if self.reference is not None else 0.0)


def differences(measured: Breakdown, reference: Breakdown | None) -> list[Difference]:
    """Every operator of either, the largest difference first; without a reference the one that took most."""
    mine, theirs = _by_operator(measured.shares), _by_operator(reference.shares if reference is not None else ())
    found = [
        Difference(*key, _measure(mine.get(key), measured), _measure(theirs.get(key), reference) if reference else None)
        for key in {**mine, **theirs}
    ]
    return sorted(found, key=lambda one: (-abs(one.ms), one.track, one.name))


def _by_operator(shares: Iterable[Share]) -> dict[tuple[str, str], Share]:
    return {(one.track, one.name): one for one in shares}


def _measure(share: Share | None, of: Breakdown) -> Measure:
    steps = len(of.step_ms)
    return Measure(share.ms, share.calls) if share is not None else Measure((0.0,) * steps, (0,) * steps)


def summary(capture: Stored, measured: Breakdown, reference: Stored | None, in_time: bool = True) -> str:
    """The page for one capture. `in_time`: the reference was over before anything was wrong."""
    compared = reference.breakdown() if reference is not None else None
    parts = [
        f"# {_title(capture)}",
        "\n".join(_about(capture)),
        _reference_text(capture, reference, in_time),
        *tables(measured, compared, "here", "reference"),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def tables(measured: Breakdown, reference: Breakdown | None, here: str, there: str) -> list[str]:
    """The two tables as Markdown, and how to read them."""
    found = differences(measured, reference)
    head = "Operators, largest differences first" if reference is not None else "Operators"
    shown = [_operator_row(one) for one in found[:LISTED]]
    rest = found[LISTED:]
    return [
        "## A step",
        _table(("ms a step", *_columns(reference, here, there)), _step_rows(measured, reference)),
        f"## {head}",
        _table(_operator_head(reference, here, there), shown),
        f"{len(rest)} more operators, {_signed(sum(one.ms for one in rest))} ms a step together." if rest else "",
        _READING,
    ]


# What is said of the capture


def _title(capture: Stored) -> str:
    first, last = capture.steps
    return f"Profile of steps {first} to {last}: {capture.manifest.get('name') or capture.folder.name}"


def _about(capture: Stored) -> list[str]:
    manifest = capture.manifest
    lines = [f"- Run {manifest.get('run', '?')}, rank {manifest.get('rank', '?')}; {_steps(capture.recorded)} recorded"]
    first = manifest.get("incident")
    lines += [_incident(each, "Incident") for each in ([first] if first else [])]
    lines += [_incident(each, "Joined") for each in manifest["joined"]]
    if manifest.get("remark"):
        lines.append(f"- {manifest['remark']}")
    if manifest.get("trace"):
        lines.append(f"- Trace: `{manifest['trace']}`")
    return lines


def _incident(incident: dict[str, Any], what: str) -> str:
    labels = ", ".join(f"{name}={value}" for name, value in incident["labels"].items())
    series = f" on {labels}" if labels else ""
    measured = f"; measured {_number(incident['measured'])}" if incident.get("measured") is not None else ""
    before = f", before it {_number(incident['before'])}" if incident.get("before") is not None else ""
    since = f"since step {incident['since']}, told at step {incident['asked']['step']}"
    value = f"value {_number(incident['value'])}{series}{measured}{before}"
    return f"- {what}: {incident['id']} ({incident['severity']}), {since}; {value}"


def _number(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, (int, float)) else str(value)


def _reference_text(capture: Stored, reference: Stored | None, in_time: bool) -> str:
    if capture.kind == "reference":
        return ""
    if reference is None:
        return "There is no healthy reference of this run: `capture: {reference_at: STEP}` takes one."
    first, last = reference.steps
    text = f"Compared with the healthy reference of steps {first} to {last}, {_steps(reference.recorded)}"
    late = "it was taken when this had begun already, so a lasting difference may be missing below"
    return text + ("." if in_time else f"; {late if capture.incidents else 'it was taken later'}.")


def _steps(count: int) -> str:
    return "1 step" if count == 1 else f"{count} steps"


# Tables


def _columns(reference: Breakdown | None, here: str, there: str) -> tuple[str, ...]:
    return (here,) if reference is None else (here, there, "difference")


def _step_rows(measured: Breakdown, reference: Breakdown | None) -> list[tuple[str, ...]]:
    """The step as a whole, and by track how much of it an operator ran, and how much none did."""
    rows = [_step_row("the step", measured.step_ms, reference.step_ms if reference is not None else None)]
    theirs = {one.track: one for one in reference.busy} if reference is not None else {}
    for busy in measured.busy:
        base = idle = None
        if reference is not None:
            other = theirs.get(busy.track)
            base = other.ms if other is not None else (0.0,) * len(reference.step_ms)
            idle = _rest(reference.step_ms, base)
        rows.append(_step_row(f"{busy.track}: an operator runs", busy.ms, base))
        rows.append(_step_row(f"{busy.track}: none runs", _rest(measured.step_ms, busy.ms), idle))
    return rows


def _rest(whole: Sequence[float], part: Sequence[float]) -> tuple[float, ...]:
    return tuple(all_ - one for all_, one in zip(whole, part, strict=True))


def _step_row(name: str, measured: Sequence[float], reference: Sequence[float] | None) -> tuple[str, ...]:
    row = (name, _spread(measured))
    if reference is None:
        return row
    return (*row, _spread(reference), _signed(_mean(measured) - _mean(reference)))


def _operator_head(reference: Breakdown | None, here: str, there: str) -> tuple[str, ...]:
    if reference is None:
        return "operator", "runs on", here, "calls", "steps"
    return "operator", "runs on", "difference", here, there, "calls", f"{there}: calls", "steps", f"{there}: steps"


def _operator_row(one: Difference) -> tuple[str, ...]:
    mine, theirs = one.measured, one.reference
    if theirs is None:
        return one.name, one.track, _spread(mine.ms), f"{mine.calls_a_step:g}", _of(mine)
    times = (_signed(one.ms), _spread(mine.ms), _spread(theirs.ms))
    calls = (f"{mine.calls_a_step:.4g}", f"{theirs.calls_a_step:.4g}")
    return one.name, one.track, *times, *calls, _of(mine), _of(theirs)


def _of(measure: Measure) -> str:
    return f"{measure.steps} of {len(measure.ms)}"


def _spread(ms: Sequence[float]) -> str:
    if not ms or not any(ms):
        return "0"
    if len(ms) == 1:
        return _ms(ms[0])
    return f"{_ms(_mean(ms))} ({_ms(min(ms))} to {_ms(max(ms))})"


def _mean(ms: Sequence[float]) -> float:
    return sum(ms) / len(ms) if ms else 0.0


def _ms(value: float) -> str:
    return f"{value:.1f}" if abs(value) >= 10 else f"{value:.3g}"


def _signed(value: float) -> str:
    return f"{'+' if value >= 0 else '-'}{_ms(abs(value))}"


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    rule = ["---" if name in _TEXT else "---:" for name in head]
    lines = [head, rule, *rows]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines)
