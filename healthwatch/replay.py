"""What a recorded run or a log says when its samples go through the engine once more."""

from __future__ import annotations

import tempfile
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import Any, Protocol

from healthwatch import resources
from healthwatch.diagnostics import Diagnostic, Invalid, errors, suggest
from healthwatch.engine import Engine, Outcome
from healthwatch.readers import Options, open_log
from healthwatch.recording import Run, recall, write_rules
from healthwatch.rulefile import Rule, load_rules
from healthwatch.rulefile.load import BUILTIN
from healthwatch.stream import Frame, SeriesTable

Overrides = Mapping[str, Mapping[str, Any]]
Params = Mapping[str, Mapping[str, float]]

SQLITE = b"SQLite format 3\0"


class Source(Protocol):
    """What frames come from; their series are those of its table."""

    @property
    def table(self) -> SeriesTable: ...

    def frames(self) -> Iterator[Frame]: ...


@dataclass(frozen=True, slots=True)
class Replay:
    """Frames and the rules that judge them."""

    source: Source
    rules: tuple[Rule, ...]
    no_data_after: int = 200
    clock_events: Mapping[tuple[int, int, float], Sequence[float]] = field(default_factory=dict)

    def outcomes(self) -> Iterator[Outcome]:
        """One outcome a frame and clock event, in the source's order; a step that comes again goes back first (R12)."""
        engine = Engine(self.rules, self.source.table, no_data_after=self.no_data_after)
        last = 0
        for number, frame in enumerate(self.source.frames()):
            rewound = engine.rewind(frame.step) if frame.step <= last else ()
            if frame.step <= last:
                recall(engine, islice(self.source.frames(), number), frame.step)
            last = frame.step
            outcome = engine.step(frame)
            yield replace(outcome, transitions=(*rewound, *outcome.transitions))
            for time in self.clock_events.get((frame.attempt, frame.step, frame.time), ()):
                ticked = engine.tick(time)
                if ticked is not None:
                    yield ticked


def load_replay(
    path: Path | str,
    sources: Sequence[str] = (),
    params: Params | None = None,
    *,
    log_format: str | None = None,
    options: Options = Options(),
) -> Replay:
    """A replay of a run file, of the run of the lowest rank in a folder, or of a log.

    Args:
        path: `rank_<r>.sqlite`, the folder that holds it, or a log in any format that can be read.
        sources: rule files or `builtin:<pack>`; without any, the rules that the run's last attempt was watched with,
            or all shipped packs for a log.
        params: values of `params` by rule, on top of the run's own `override`.
        log_format: the format of a log, where it is not to be recognised.
        options: what a log does not say itself.

    Raises:
        Invalid: there is no such run or log, or the rules can't be used; it carries all problems.
        OSError: a log can't be read.
    """
    if log_format is not None or _is_log(Path(path)):
        log = open_log(path, log_format, options)
        return Replay(log, _load(sources or _packs(), {}, params or {}))
    run = Run.open(path)
    meta = run.meta
    with tempfile.TemporaryDirectory(prefix="healthwatch-") as folder:
        recorded = [] if sources else write_rules(meta, Path(folder))
        if not sources and not recorded:
            message = f"{run.path.as_posix()} holds no rules; name some with --rules"
            raise Invalid([Diagnostic("HW303", "error", message)])
        rules = _load([*sources, *recorded], meta.get("override", {}), params or {})
    return Replay(run, rules, meta.get("no_data_after", 200), run.clock_events())


def _is_log(path: Path) -> bool:
    """A file that is no run file; what is not there is for the run to refuse."""
    if not path.is_file():
        return False
    with path.open("rb") as file:
        head = file.read(len(SQLITE))
    return head != SQLITE and path.suffix != ".sqlite"


def _packs() -> list[str]:
    return [f"{BUILTIN}{pack}" for pack in resources.packs()]


def _load(sources: Sequence[str | Path], overrides: Overrides, params: Params) -> tuple[Rule, ...]:
    loaded = load_rules(sources, _with_params(overrides, params))
    found = [*loaded.diagnostics, *_unknown(params, loaded.parameters)]
    if errors(found):
        raise Invalid(found)
    return loaded.rules


def _with_params(overrides: Overrides, params: Params) -> Overrides:
    merged = {name: dict(override) for name, override in overrides.items()}
    for name, values in params.items():
        override = merged.setdefault(name, {})
        override["params"] = {**override.get("params", {}), **values}
    return merged


def _unknown(params: Params, known: Mapping[str, Collection[str]]) -> Iterator[Diagnostic]:
    """Parameters that no rule has: a changed number that changes nothing would look like an answer."""
    for rule, values in params.items():
        if rule not in known:
            mend = suggest(rule, known, "rules")
            yield Diagnostic("HW014", "error", f'no rule is called "{rule}"', help=mend)
            continue
        for name in [name for name in values if name not in known[rule]]:
            mend = suggest(name, known[rule], "its parameters") or "it has none"
            yield Diagnostic("HW019", "error", f'rule "{rule}" has no parameter "{name}"', help=mend)
